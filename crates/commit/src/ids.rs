//! [`Ids`]: gives out ids that are never used again.

use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use frondb_core::{NodeId, RunId, TreeId};

/// The largest id of each kind that was given out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LargestIds {
    /// Id of a tree.
    pub tree: u32,
    /// Id of a run.
    pub run: u64,
    /// Id of a node.
    pub node: u64,
    /// Number of a transaction. Recovery also takes the numbers of commits and prepares in the log
    /// into account.
    pub txn: u64,
}

/// Gives out ids of trees, runs, nodes and transactions, each only once. Any thread may use it.
#[derive(Debug)]
pub struct Ids {
    tree: AtomicU32,
    run: Arc<AtomicU64>,
    node: AtomicU64,
    txn: AtomicU64,
}

impl Ids {
    /// Creates the counters; they continue after the ids in `largest`.
    #[must_use]
    pub fn after(largest: LargestIds) -> Arc<Self> {
        Arc::new(Self {
            tree: largest.tree.into(),
            run: Arc::new(largest.run.into()),
            node: largest.node.into(),
            txn: largest.txn.into(),
        })
    }

    /// Returns the largest ids so far.
    #[must_use]
    pub fn largest(&self) -> LargestIds {
        LargestIds {
            tree: self.tree.load(Ordering::Relaxed),
            run: self.run.load(Ordering::Relaxed),
            node: self.node.load(Ordering::Relaxed),
            txn: self.txn.load(Ordering::Relaxed),
        }
    }

    /// Returns an id for a new tree.
    pub fn next_tree(&self) -> TreeId {
        TreeId(self.tree.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Returns an id for a new run.
    pub fn next_run(&self) -> RunId {
        RunId(self.run.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Returns an id for a new node.
    pub fn next_node(&self) -> NodeId {
        NodeId(self.node.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Returns a number for a transaction, or for the locks of a call outside of transactions.
    pub fn next_txn(&self) -> u64 {
        self.txn.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the counter of run ids, for jobs that increment it themselves.
    #[must_use]
    pub fn runs(&self) -> &Arc<AtomicU64> {
        &self.run
    }
}
