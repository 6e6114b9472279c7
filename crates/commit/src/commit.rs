//! [`Commit`]: the writes of one log record, and [`Committed`], the result of the commit.

use frondb_core::sync::Arc;
use frondb_core::{Lsn, Result, TreeId};
use frondb_space::Extent;
use frondb_tree::TreeCore;

use crate::attachment::Attachment;
use crate::messages::Messages;
use crate::pending_parts::{check_trees, was_dropped};

/// The writes of a commit, which one log record describes.
#[derive(Clone, Copy)]
pub struct Commit<'a> {
    /// The number of the transaction; 0 for a batch.
    pub txn: u64,
    /// Parts whose runs are on disk and pending in the manifest already.
    pub attachments: &'a [Attachment],
    /// Messages that go into memtables.
    pub sections: &'a [Messages<'a>],
}

/// Extents of the large values that a commit's messages refer to, by tree.
pub type CommitValues = Vec<(TreeId, Vec<Extent>)>;

/// A commit that is in the memtables and visible, and may not be durable yet.
pub struct Committed {
    /// The end of the commit's log record. The commit is durable when the log is durable up to this
    /// position.
    pub end: Lsn,
    /// The trees that the commit has messages for.
    pub trees: Vec<Arc<TreeCore>>,
    /// The trees to which the commit attached runs; the caller must request their flushes.
    pub attached: Vec<Arc<TreeCore>>,
}

impl Commit<'_> {
    /// Returns the number of SeqNos that the commit takes.
    #[must_use]
    pub fn numbers(&self) -> u64 {
        self.attachments.iter().map(|part| part.numbers).sum::<u64>()
            + self.sections.iter().map(|section| section.count).sum::<u64>()
    }

    /// Checks that no tree of the commit was dropped.
    ///
    /// # Errors
    /// `NotFound`, naming the tree.
    pub(crate) fn check_trees(&self) -> Result<()> {
        if let Some(section) = self.sections.iter().find(|section| section.tree.is_dropped()) {
            return Err(was_dropped(section.tree));
        }
        check_trees(self.attachments)
    }
}
