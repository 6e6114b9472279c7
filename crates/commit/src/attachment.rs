//! [`Attachment`]: the private runs that a large commit adds to one tree, on disk before the commit
//! (rules 18 and 19).
//!
//! SeqNos: before the commit, the messages of a part have local numbers from 1. The commit turns
//! local number `n` into SeqNo `base + n`. The parts of a commit take the first SeqNos, in their
//! order, and the messages in the log record take the last.

use frondb_core::budget::Budget;
use frondb_core::sync::Arc;
use frondb_core::{Lsn, RangeDelete, SeqNo, TreeId};
use frondb_memtable::Memtable;
use frondb_run::Run;
use frondb_space::Extent;
use frondb_tree::{AttachedRuns, MemSource, TreeCore};

/// One part of a commit: the private runs of one tree, with their range deletes and large values.
#[derive(Clone)]
pub struct Attachment {
    /// The tree that gets the runs.
    pub tree: Arc<TreeCore>,
    /// The runs, newest first, with local numbers in place of SeqNos. If two runs hold the same
    /// key, the run whose largest local number is larger has the newer message.
    pub runs: Vec<Arc<Run>>,
    /// The range deletes, with local numbers in place of SeqNos.
    pub range_deletes: Vec<RangeDelete>,
    /// Extents of the large values that the runs refer to.
    pub values: Vec<Vec<Extent>>,
    /// The largest local number: the number of SeqNos that the part takes.
    pub numbers: u64,
    /// Whether the runs can serve as the base of a leaf: they hold puts only, each key once, and
    /// are encoded like bases.
    pub are_base: bool,
}

impl Attachment {
    /// Creates the frozen source that holds this part in its tree. The message with local number 1
    /// gets the SeqNo after `base`; `lsns` are the beginning and the end of the commit's log
    /// record.
    pub fn source(
        &self,
        budget: &Arc<Budget>,
        txn: u64,
        part: u32,
        base: SeqNo,
        lsns: (Lsn, Lsn),
    ) -> Arc<MemSource> {
        let seq = |local: SeqNo| SeqNo(base.get() + local.get());
        let memtable = Memtable::new(Arc::clone(budget));
        let mut deletes: Vec<&RangeDelete> = self.range_deletes.iter().collect();
        deletes.sort_by_key(|delete| delete.seq);
        for delete in deletes {
            memtable.add_range_delete(RangeDelete { seq: seq(delete.seq), ..delete.clone() });
        }
        let source = MemSource::attached_runs(
            memtable,
            AttachedRuns {
                txn,
                part,
                runs: self.runs.iter().map(|run| Arc::clone(run).attached(base)).collect(),
                last: seq(SeqNo(self.numbers)),
                are_base: self.are_base,
            },
        );
        source.logged(lsns.0, lsns.1);
        for value in &self.values {
            source.add_value(value.clone());
        }
        source
    }
}

/// Returns the tree of each part and the number of SeqNos that the part takes, as the log record
/// lists them.
pub fn parts_of(attachments: &[Attachment]) -> Vec<(TreeId, u64)> {
    attachments.iter().map(|part| (part.tree.id, part.numbers)).collect()
}
