//! [`Attachment`]: the part of a large commit that goes to one tree and is on disk already, as
//! private runs (rules 18 and 19).
//!
//! SeqNos: before the commit, the messages of a part have local numbers from 1. The commit turns
//! local number `n` into SeqNo `base + n`. Its parts take their SeqNos in the order in which they
//! are given, and the messages in its log record take the last SeqNos.

use frondb_core::budget::Budget;
use frondb_core::sync::Arc;
use frondb_core::{Lsn, RangeDelete, SeqNo, TreeId};
use frondb_memtable::Memtable;
use frondb_run::Run;
use frondb_space::Extent;
use frondb_tree::{AttachedRuns, MemSource, TreeCore};

/// One part of a commit: what the transaction has written to one tree, on disk.
#[derive(Clone)]
pub struct Attachment {
    /// The tree that the part was written to.
    pub tree: Arc<TreeCore>,
    /// The runs, newest first, with local numbers in place of SeqNos. If two runs hold the same
    /// key, the run whose largest local number is larger has the newer message.
    pub runs: Vec<Arc<Run>>,
    /// The range deletes, with local numbers in place of SeqNos.
    pub range_deletes: Vec<RangeDelete>,
    /// Extents of the large values that the runs refer to.
    pub values: Vec<Vec<Extent>>,
    /// The largest local number. The commit reserves this many SeqNos.
    pub numbers: u64,
    /// Whether the runs can serve as the base of a leaf: they hold puts only, each key once, and
    /// are written as bases.
    pub are_base: bool,
}

impl Attachment {
    /// The frozen source that holds this part in its tree. The first message gets the SeqNo after
    /// `base`; `lsns` are the beginning and the end of the log record of the commit.
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

/// The tree of each part and the number of SeqNos that it takes, as the log record lists them.
pub fn parts_of(attachments: &[Attachment]) -> Vec<(TreeId, u64)> {
    attachments.iter().map(|part| (part.tree.id, part.numbers)).collect()
}
