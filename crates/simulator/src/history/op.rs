//! The operations of a history, and the steps of its transactions.

use frondb::{Codec, Isolation};

use crate::functions::Function;
use crate::model::{Bytes, Message, Move, TreeNumber};

/// A call of a transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // The names of the fields explain them.
pub enum Step {
    /// Writes a message.
    Write(TreeNumber, Message),
    /// Inserts an entry; the call must fail if the key has a value.
    Insert(TreeNumber, Bytes, Bytes),
    /// Puts entries with a bulk statement, if one can begin on the tree.
    Bulk(TreeNumber, Vec<(Bytes, Bytes)>),
    /// Reads a key, locked for update or as the isolation level requires.
    Get { tree: TreeNumber, key: Bytes, locked: bool },
    /// Reads a range, locked for update or as the isolation level requires.
    Scan {
        tree: TreeNumber,
        lower: Option<Bytes>,
        upper: Option<Bytes>,
        backward: bool,
        limit: usize,
        locked: bool,
    },
    /// Sets a savepoint.
    SetSavepoint,
    /// Rolls back to a savepoint; its index is this number modulo the number of savepoints.
    RollBackTo(usize),
    /// Releases a savepoint, chosen in the same way, and all later ones.
    Release(usize),
}

/// The end of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Committed.
    Commit,
    /// Rolled back.
    RollBack,
    /// Dropped, which rolls it back.
    Drop,
    /// Prepared, and left to a later [`Op::Decide`].
    Prepare,
}

/// One call, or a few that belong together.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // The names of the fields explain them.
pub enum Op {
    /// Commits a batch.
    Write { messages: Vec<(TreeNumber, Message)>, sync: bool },
    /// Point reads, now or at a snapshot, with `get`, `exists` and `multi_get`.
    Get { tree: TreeNumber, keys: Vec<Bytes>, at: Option<u32> },
    /// Reads a range with a new cursor.
    Scan {
        tree: TreeNumber,
        lower: Option<Bytes>,
        upper: Option<Bytes>,
        at: Option<u32>,
        backward: bool,
        limit: usize,
    },
    /// Takes a snapshot.
    TakeSnapshot { snapshot: u32 },
    /// Drops a snapshot.
    DropSnapshot { snapshot: u32 },
    /// Opens a cursor and keeps it.
    OpenCursor {
        cursor: u32,
        tree: TreeNumber,
        lower: Option<Bytes>,
        upper: Option<Bytes>,
        at: Option<u32>,
    },
    /// Moves a kept cursor several times.
    MoveCursor { cursor: u32, moves: Vec<Move> },
    /// Drops a kept cursor.
    CloseCursor { cursor: u32 },
    /// Creates a tree.
    CreateTree { tree: TreeNumber, name: String, function: Function },
    /// Renames a tree.
    RenameTree { tree: TreeNumber, from: String, to: String },
    /// Changes the codec of a tree.
    SetCodec { tree: TreeNumber, codec: Codec },
    /// Drops a tree.
    DropTree { tree: TreeNumber, name: String },
    /// Makes everything durable.
    Sync,
    /// Flushes all memtables.
    Flush,
    /// Optimizes a tree; cancels after this many leaves.
    Optimize { tree: TreeNumber, leaves: u64 },
    /// Flushes, snapshots the manifest, and releases the log.
    Checkpoint,
    /// Executes pieces of background work.
    Work { pieces: u32, idle: bool },
    /// Advances the clock.
    Sleep { millis: u64 },
    /// Drops all handles and opens the database again, with or without closing it first.
    Reopen { close: bool },
    /// Verifies all trees and compares all contents.
    CheckAll,
    /// Begins a transaction.
    Begin { transaction: u32, isolation: Isolation, sync: bool },
    /// Executes steps of a transaction.
    Steps { transaction: u32, steps: Vec<Step> },
    /// Ends a transaction.
    End { transaction: u32, end: End },
    /// Commits several transactions in this order, then waits for all of them.
    CommitTogether { transactions: Vec<u32> },
    /// Commits or rolls back a prepared transaction.
    Decide { transaction: u32, commit: bool, sync: bool },
}

impl Step {
    /// Returns the tree that the step uses.
    #[must_use]
    pub fn tree(&self) -> Option<TreeNumber> {
        match self {
            Self::Write(tree, _)
            | Self::Insert(tree, ..)
            | Self::Bulk(tree, _)
            | Self::Get { tree, .. }
            | Self::Scan { tree, .. } => Some(*tree),
            Self::SetSavepoint | Self::RollBackTo(_) | Self::Release(_) => None,
        }
    }
}
