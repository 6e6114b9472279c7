//! Reduces a failing history: removes operations and messages as long as it still fails.
//!
//! Set `FRONDB_SHRINK=1` and `FRONDB_SEED` to make a test print the smallest history that it finds.

use crate::history::{History, Op};

/// Returns the smallest history found for which `fails` is still true. `fails` must be
/// deterministic.
pub fn shrink(history: &History, fails: &dyn Fn(&History) -> bool) -> History {
    let mut best = history.clone();
    loop {
        let before = size(&best);
        let ops = without(&best.ops, &|ops| fails(&History { ops }));
        best.ops = ops;
        for i in 0..best.ops.len() {
            let Op::Write { messages, sync } = best.ops[i].clone() else { continue };
            let kept = without(&messages, &|messages| {
                let mut ops = best.ops.clone();
                ops[i] = Op::Write { messages, sync };
                fails(&History { ops })
            });
            best.ops[i] = Op::Write { messages: kept, sync };
        }
        if size(&best) == before {
            return best;
        }
    }
}

fn size(history: &History) -> usize {
    let messages = |op: &Op| match op {
        Op::Write { messages, .. } => messages.len(),
        _ => 0,
    };
    history.ops.iter().map(|op| 1 + messages(op)).sum()
}

/// Removes sequences of items, long ones first.
fn without<T: Clone>(items: &[T], fails: &dyn Fn(Vec<T>) -> bool) -> Vec<T> {
    let mut best = items.to_vec();
    let mut length = best.len();
    while length > 0 {
        let mut at = 0;
        while at < best.len() {
            let mut fewer = best[..at].to_vec();
            fewer.extend_from_slice(&best[(at + length).min(best.len())..]);
            if fails(fewer.clone()) {
                best = fewer;
            } else {
                at += length;
            }
        }
        length /= 2;
    }
    best
}
