//! [`Attachment`]: a part of a large commit whose data is on disk already, as private runs (rules 18
//! and 19).
//!
//! SeqNos: local number `n` of a part becomes `base + n`; the parts of a commit follow each other in
//! the order in which they are given, and the messages in its record come last.

use frondb_core::budget::Budget;
use frondb_core::sync::Arc;
use frondb_core::{Lsn, RangeDelete, SeqNo, TreeId};
use frondb_memtable::Memtable;
use frondb_run::Run;
use frondb_space::Extent;
use frondb_tree::{AttachedRuns, MemSource, TreeCore};

/// What a transaction has written to one tree, on disk: a part of its commit.
#[derive(Clone)]
pub struct Attachment {
    /// The tree.
    pub tree: Arc<TreeCore>,
    /// Newest first, with local numbers for SeqNos. Where two hold the same key, the one with the
    /// larger largest number has the newer message.
    pub runs: Vec<Arc<Run>>,
    /// With local numbers for SeqNos.
    pub range_deletes: Vec<RangeDelete>,
    /// Extents of the large values that the runs refer to.
    pub values: Vec<Vec<Extent>>,
    /// The largest local number: the commit reserves so many SeqNos.
    pub numbers: u64,
    /// Whether the runs are fit for a base: puts only, a key once in all of them, written as bases.
    pub are_base: bool,
}

impl Attachment {
    /// The source of this part in its tree, with SeqNos.
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

/// Trees, and how many SeqNos each part takes, as records have it.
pub fn parts_of(attachments: &[Attachment]) -> Vec<(TreeId, u64)> {
    attachments.iter().map(|part| (part.tree.id, part.numbers)).collect()
}
