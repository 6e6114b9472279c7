//! Open transactions of a simulation, and the model's record of them.

use std::collections::BTreeSet;

use frondb::{Isolation, Savepoint, Transaction};

use crate::model::{Message, State, TreeNumber};

pub(super) struct OpenTransaction {
    pub(super) transaction: Transaction,
    pub(super) isolation: Isolation,
    pub(super) sync: bool,
    /// The state that a repeatable read sees, starting with the first read.
    pub(super) snapshot: Option<State>,
    /// The transaction's messages, without the messages that were rolled back.
    pub(super) messages: Vec<(TreeNumber, Message)>,
    pub(super) savepoints: Vec<(Savepoint, usize)>,
    /// Trees to which the transaction ever wrote.
    pub(super) touched: BTreeSet<TreeNumber>,
    /// Number of completed steps of the current operation, which may be retried.
    pub(super) done: usize,
}

/// Ranges of locked keys in any tree: the first key, and the first key after the range; `None` if
/// the range has no end.
pub(super) type LockedKeys = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// Returns whether a message has no effect, so that it is not written.
pub(super) fn is_nothing(message: &Message) -> bool {
    matches!(message, Message::DeleteRange(lo, Some(hi)) if hi <= lo)
}

impl OpenTransaction {
    pub(super) fn wrote(&mut self, tree: TreeNumber, message: Message) {
        self.touched.insert(tree);
        self.messages.push((tree, message));
    }
}
