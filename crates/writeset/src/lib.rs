//! Layer 4: the write set of a transaction, which contains the transaction's uncommitted writes.
//!
//! ```text
//!  put, delete, ... --> TreeWrites    messages in the log's encoding, numbered 1, 2, ... per tree
//!                         |  read     an index is built: a memtable with the numbers as SeqNos
//!                         |  too many bytes: sorted, folded, written as a private run
//!  rollback to a savepoint: the messages numbered after the savepoint are removed
//!  commit: messages in memory are logged as they are; private runs become part of the trees
//! ```
//!
//! Message numbers are local to a tree and a transaction (rule 20). For readers of the transaction,
//! its own messages are newer than all committed ones: their SeqNos start at [`OWN_SEQS`]. Between
//! own and committed messages there may be an overlay, whose messages are read but never committed
//! ([`OVERLAY_SEQS`]).
//!
//! This crate does not depend on locks, logs or trunks.

mod arena;
mod base;
mod empty;
mod env;
pub mod op;
mod own;
mod savepoint;
mod set;
mod sort;
mod sorted;
mod spill;
mod writes;

pub use base::BaseRuns;
pub use empty::{FoundEmpty, OwnAround, OwnEmptyRanges, Seen};
pub use env::{SpillEnv, TreeSpill};
pub use own::{OVERLAY_SEQS, OWN_SEQS, OwnWrites};
pub use savepoint::SavepointId;
pub use set::{Sealed, SpillOf, WriteSet};
pub use sort::{Duplicates, SortBuffer, SortedSource};
pub use writes::{Place, TreeWrites};
