//! The last deadlock, kept to be looked at: who waited in the circle, and for what. Never needed for
//! locking itself.
//!
//! Bounded: so many waits of a circle, so many bytes of a key, one deadlock.

use std::time::Duration;

use frondb_core::clock::Nanos;

use crate::graph::{Graph, Wait};
use crate::info::{Locked, WaitInfo, locked};

/// Waits of a circle that are kept. Longer ones are rare, and nobody reads them to the end.
const WAITS_MAX: usize = 16;

/// Bytes of a key, and numbers of blockers, that are kept.
const KEY_BYTES_MAX: usize = 1024;
const BLOCKERS_MAX: usize = 16;

/// A deadlock as it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeadlockInfo {
    /// How long ago.
    pub ago: Duration,
    /// Id of the transaction that was chosen as the victim.
    pub victim: u64,
    /// How many transactions the circle had.
    pub transactions: usize,
    /// What each waited for, in the order of the circle: each waits for the next one, the last for
    /// the first. The first 16 of them; keys are cut to 1,024 bytes.
    pub waits: Vec<WaitInfo>,
}

/// The same, with the time it was found.
pub(crate) struct LastDeadlock {
    pub(crate) at: Nanos,
    pub(crate) info: DeadlockInfo,
}

impl LastDeadlock {
    /// `circle` is one of the graph, and all of it waits.
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
