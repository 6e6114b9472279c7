//! A record of the last deadlock for the status: the transactions of the cycle, and the locks for
//! which they waited. Locking itself never needs the record.
//!
//! The record is bounded: a limited number of waits, limited bytes of each key, one deadlock.

use std::time::Duration;

use frondb_core::clock::Nanos;

use crate::graph::{Graph, Wait};
use crate::info::{Locked, WaitInfo, locked};

/// Maximum number of recorded waits. Longer cycles are rare, and no user needs more.
const WAITS_MAX: usize = 16;

/// Maximum recorded bytes of a key, and maximum number of recorded blockers of a wait.
const KEY_BYTES_MAX: usize = 1024;
const BLOCKERS_MAX: usize = 16;

/// A deadlock, as it was when it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeadlockInfo {
    /// Time since the deadlock was found.
    pub ago: Duration,
    /// Id of the transaction that was chosen as the victim.
    pub victim: u64,
    /// Number of transactions in the cycle.
    pub transactions: usize,
    /// The wait of each transaction, in the order of the cycle: each transaction waits for the
    /// next, the last for the first. At most 16 waits, each with at most 16 blockers; keys are
    /// truncated to 1,024 bytes.
    pub waits: Vec<WaitInfo>,
}

/// A deadlock with the time at which it was found.
pub(crate) struct LastDeadlock {
    pub(crate) at: Nanos,
    pub(crate) info: DeadlockInfo,
}

impl LastDeadlock {
    /// Records `cycle`, a cycle of the graph whose members all wait.
    pub(crate) fn new(graph: &Graph, cycle: &[u64], victim: u64, now: Nanos) -> Self {
        let members = cycle.iter().take(WAITS_MAX);
        let waits = members.filter_map(|id| Some(wait_info(*id, graph.get(*id)?, now))).collect();
        let transactions = cycle.len();
        Self { at: now, info: DeadlockInfo { ago: Duration::ZERO, victim, transactions, waits } }
    }
}

fn wait_info(transaction: u64, wait: &Wait, now: Nanos) -> WaitInfo {
    let mut wanted = locked(wait.wanted.clone());
    match &mut wanted {
        Locked::Row { key } => key.truncate(KEY_BYTES_MAX),
        Locked::Gap { lo, hi } | Locked::Scanned { lo, hi } | Locked::Range { lo, hi } => {
            lo.truncate(KEY_BYTES_MAX);
            hi.iter_mut().for_each(|hi| hi.truncate(KEY_BYTES_MAX));
        }
    }
    WaitInfo {
        transaction,
        tree: wait.tree,
        wanted,
        mode: wait.mode,
        blockers: wait.blockers.iter().take(BLOCKERS_MAX).copied().collect(),
        waited: now.since(wait.since),
    }
}
