//! [`Ids`]: numbers that are given out once.

use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use frondb_core::{NodeId, RunId, TreeId};

/// The largest number of each kind that has been given out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LargestIds {
    /// Of a tree.
    pub tree: u32,
    /// Of a run.
    pub run: u64,
    /// Of a node.
    pub node: u64,
    /// Of a transaction: the log says it, too.
    pub txn: u64,
}

/// Gives out numbers of trees, runs, nodes and transactions; none is used again. Any thread may ask.
#[derive(Debug)]
pub struct Ids {
    tree: AtomicU32,
    run: Arc<AtomicU64>,
    node: AtomicU64,
    txn: AtomicU64,
}

impl Ids {
    /// Goes on behind `largest`.
    #[must_use]
    pub fn behind(largest: LargestIds) -> Arc<Self> {
        Arc::new(Self {
            tree: largest.tree.into(),
            run: Arc::new(largest.run.into()),
            node: largest.node.into(),
            txn: largest.txn.into(),
        })
    }

    /// The largest numbers so far.
    #[must_use]
    pub fn largest(&self) -> LargestIds {
        LargestIds {
            tree: self.tree.load(Ordering::Relaxed),
            run: self.run.load(Ordering::Relaxed),
            node: self.node.load(Ordering::Relaxed),
            txn: self.txn.load(Ordering::Relaxed),
        }
    }

    /// A number for a tree.
    pub fn next_tree(&self) -> TreeId {
        TreeId(self.tree.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// A number for a run.
    pub fn next_run(&self) -> RunId {
        RunId(self.run.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// A number for a node.
    pub fn next_node(&self) -> NodeId {
        NodeId(self.node.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// A number for a transaction, or for the locks of a call that is none.
    pub fn next_txn(&self) -> u64 {
        self.txn.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Where numbers of runs come from, for jobs that give them out themselves.
    #[must_use]
    pub fn runs(&self) -> &Arc<AtomicU64> {
        &self.run
    }
}
