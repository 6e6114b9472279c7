//! Layer 4: what a transaction has written and not committed.
//!
//! ```text
//!  put, delete, ... --> TreeWrites    messages in the log's encoding, numbered 1, 2, 3 ... a tree
//!                         |  read     an index is made: a memtable with numbers for SeqNos
//!                         |  too many bytes: sorted, folded, written as a private run
//!  rollback to a savepoint: cut off behind its numbers
//!  commit: what is in memory is logged as it stands; private runs become part of the trees
//! ```
//!
//! Numbers are local to a tree and a transaction (rule 20). To a reader of the transaction its own
//! messages are newer than everything committed: their SeqNos are [`OWN_SEQS`] and up. Between the two
//! may lie an overlay, whose messages are read and never committed ([`OVERLAY_SEQS`], decision 0036).
//!
//! The crate knows nothing of locks, logs and trunks.

mod arena;
pub mod op;
mod own;
mod savepoint;
mod set;
mod sort;
mod sorted;
mod spill;
mod writes;

pub use own::{OVERLAY_SEQS, OWN_SEQS, OwnWrites};
pub use savepoint::SavepointId;
pub use set::{Sealed, SpillOf, WriteSet};
pub use sort::{LeftOut, SortBuffer, SortedSource};
pub use spill::{SpillEnv, TreeSpill};
pub use writes::TreeWrites;
