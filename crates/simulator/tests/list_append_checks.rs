//! Tests of the list-append checks themselves: on histories with planted faults, which the checks
//! must name, and on histories of correct and of broken in-memory databases.
//!
//! `FRONDB_HISTORIES` sets the number of histories of each in-memory database. Their seeds begin
//! with `FRONDB_FIRST_SEED`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use frondb_simulator::list_append::anomaly::{Class, Edge};
use frondb_simulator::list_append::broken::{self, Isolation};
use frondb_simulator::list_append::{
    Anomaly, History, Recorded, check_read_committed, check_serializable, check_snapshot_isolation,
};
use frondb_testkit::seed;

fn history(transactions: &[Recorded], last: &[(u32, &[u64])]) -> History {
    let last = last.iter().map(|(key, list)| (*key, list.to_vec())).collect();
    History { transactions: transactions.to_vec(), last }
}

/// A transaction that is concurrent with all others, unless a test changes that.
fn t() -> Recorded {
    Recorded::new(0, 100)
}

type Check = fn(&History) -> Vec<Anomaly>;
const CHECKS: [Check; 3] = [check_read_committed, check_snapshot_isolation, check_serializable];

/// For each level, whether its check reports something; the weakest level first.
fn found_by(history: &History) -> [bool; 3] {
    CHECKS.map(|check| !check(history).is_empty())
}

const BY_ALL: [bool; 3] = [true; 3];
const BY_SNAPSHOT: [bool; 3] = [false, true, true];
const BY_SERIALIZABLE: [bool; 3] = [false, false, true];
const BY_NONE: [bool; 3] = [false; 3];

fn class(history: &History) -> Class {
    let found = check_serializable(history);
    let [Anomaly::Cycle { class, path }] = &found[..] else { panic!("{found:?}") };
    assert!(path.len() > 1 || path.iter().any(|(_, edge)| *edge == Edge::RealTime), "{path:?}");
    *class
}

#[test]
fn correct_histories_pass() {
    let reads = t().read(1, &[]).append(1, 1).read(1, &[1]);
    let gives_up = t().append(2, 2).set_savepoint().append(2, 3).read(2, &[2, 3]);
    let gives_up = gives_up.roll_back_to(0).read(2, &[2]).append(2, 4);
    let loses = t().read(1, &[]).append(1, 9).rolled_back();
    let sees = Recorded::new(101, 102).read(1, &[1]).read(2, &[2, 4]);
    let right = history(&[reads, gives_up, loses, sees], &[(1, &[1]), (2, &[2, 4])]);
    assert_eq!(found_by(&right), BY_NONE);
    assert_eq!(found_by(&History::default()), BY_NONE);
}

/// G0: two transactions overwrite each other in both orders.
#[test]
fn a_dirty_write_is_found() {
    let both = [t().append(1, 1).append(2, 2), t().append(1, 3).append(2, 4)];
    let dirty = history(&both, &[(1, &[1, 3]), (2, &[4, 2])]);
    assert_eq!(found_by(&dirty), BY_ALL);
    assert_eq!(class(&dirty), Class::G0);
}

#[test]
fn reading_what_was_rolled_back_is_found() {
    let both = [t().append(1, 1).rolled_back(), t().read(1, &[1])];
    let aborted = history(&both, &[]);
    let found = check_read_committed(&aborted);
    assert_eq!(found, [Anomaly::G1a { transaction: 1, key: 1, value: 1 }]);
    // The read is also found if the reader itself is rolled back, and if only a rollback to a
    // savepoint undid the write.
    let both = [t().append(1, 1).rolled_back(), t().read(1, &[1]).rolled_back()];
    assert_eq!(found_by(&history(&both, &[])), BY_ALL);
    let gave_up = t().set_savepoint().append(1, 1).roll_back_to(0).append(1, 2);
    assert_eq!(found_by(&history(&[gave_up, t().read(1, &[1])], &[(1, &[2])])), BY_ALL);
}

#[test]
fn reading_what_is_overwritten_later_is_found() {
    let both = [t().append(1, 1).append(1, 2), t().read(1, &[1])];
    let found = check_read_committed(&history(&both, &[(1, &[1, 2])]));
    assert_eq!(found, [Anomaly::G1b { transaction: 1, key: 1, value: 1 }]);
}

/// G1c: each of two transactions reads what the other wrote.
#[test]
fn circular_reads_are_found() {
    let both = [t().append(1, 1).read(2, &[2]), t().append(2, 2).read(1, &[1])];
    let circular = history(&both, &[(1, &[1]), (2, &[2])]);
    assert_eq!(found_by(&circular), BY_ALL);
    assert_eq!(class(&circular), Class::G1c);
}

/// G-single: a transaction sees half of another transaction's commit.
#[test]
fn fractured_reads_are_found() {
    let both = [t().append(1, 1).append(2, 2), t().read(1, &[1]).read(2, &[])];
    let fractured = history(&both, &[(1, &[1]), (2, &[2])]);
    assert_eq!(found_by(&fractured), BY_SNAPSHOT);
    assert_eq!(class(&fractured), Class::GSingle);
}

/// Two transactions both read the empty list and append to it, one after the other.
#[test]
fn lost_updates_are_found() {
    let both = [t().read(1, &[]).append(1, 1), t().read(1, &[]).append(1, 2)];
    let lost = history(&both, &[(1, &[1, 2])]);
    assert_eq!(found_by(&lost), BY_SNAPSHOT);
    assert_eq!(class(&lost), Class::GSingle);
    // Or the second transaction overwrites the first one's append.
    let found = check_read_committed(&history(&both, &[(1, &[2])]));
    assert_eq!(found, [Anomaly::LostAppend { transaction: 0, key: 1, value: 1 }]);
}

/// G2-item: each of two transactions reads what the other then overwrites. Snapshot isolation
/// allows this.
#[test]
fn write_skew_is_found_where_it_is_forbidden() {
    let both = [t().read(1, &[]).append(2, 2), t().read(2, &[]).append(1, 1)];
    let skew = history(&both, &[(1, &[1]), (2, &[2])]);
    assert_eq!(found_by(&skew), BY_SERIALIZABLE);
    assert_eq!(class(&skew), Class::G2Item);
}

/// Two readers see two commits in opposite orders, which makes two rw edges that are not adjacent.
#[test]
fn a_long_fork_is_found() {
    let writers = [t().append(1, 1), t().append(2, 2)];
    let readers = [t().read(1, &[1]).read(2, &[]), t().read(1, &[]).read(2, &[2])];
    let fork = history(&[writers, readers].concat(), &[(1, &[1]), (2, &[2])]);
    assert_eq!(found_by(&fork), BY_SNAPSHOT);
    assert_eq!(class(&fork), Class::GNonadjacent);
}

/// A transaction that begins after a commit has returned must see that commit.
#[test]
fn reading_an_old_state_is_found_by_real_time() {
    let old = [Recorded::new(1, 2).append(1, 1), Recorded::new(3, 4).read(1, &[])];
    let stale = history(&old, &[(1, &[1])]);
    assert_eq!(found_by(&stale), BY_SNAPSHOT);
    assert_eq!(class(&stale), Class::GSingle);
    // Concurrent transactions may read the old state.
    let at_once = [Recorded::new(1, 4).append(1, 1), Recorded::new(3, 6).read(1, &[])];
    assert_eq!(found_by(&history(&at_once, &[(1, &[1])])), BY_NONE);
    // A transaction's append must not precede the append of a transaction that had ended before it
    // began.
    let before = [Recorded::new(1, 2).append(1, 1), Recorded::new(3, 4).append(1, 2)];
    assert_eq!(found_by(&history(&before, &[(1, &[2, 1])])), BY_ALL);
}

#[test]
fn reads_that_do_not_fit_the_transaction_are_found() {
    let missing = history(&[t().append(1, 1).read(1, &[])], &[(1, &[1])]);
    let found = check_read_committed(&missing);
    assert_eq!(found, [Anomaly::OwnAppendMissing { transaction: 0, key: 1 }]);
    // A transaction reads a value before it appends the value, or still reads it after it has
    // rolled the append back.
    assert_eq!(found_by(&history(&[t().read(1, &[1]).append(1, 1)], &[(1, &[1])])), BY_ALL);
    let stays = t().set_savepoint().append(1, 1).roll_back_to(0).read(1, &[1]);
    assert_eq!(found_by(&history(&[stays], &[])), BY_ALL);
    let twice = t().read(1, &[]).read(1, &[1]);
    let changed = history(&[t().append(1, 1), twice], &[(1, &[1])]);
    assert_eq!(found_by(&changed), BY_SNAPSHOT);
    let back = history(&[t().append(1, 1), t().read(1, &[1]).read(1, &[])], &[(1, &[1])]);
    assert_eq!(found_by(&back), BY_ALL);
}

#[test]
fn lists_that_never_were_are_found() {
    let writers = [t().append(1, 1), t().append(1, 2)];
    let reader = |list: &[u64]| [&writers[..], &[t().read(1, list)]].concat();
    assert_eq!(found_by(&history(&reader(&[2]), &[(1, &[1, 2])])), BY_ALL);
    assert_eq!(found_by(&history(&reader(&[2, 1]), &[(1, &[1, 2])])), BY_ALL);
    assert_eq!(found_by(&history(&reader(&[7]), &[(1, &[1, 2])])), BY_ALL);
    assert_eq!(found_by(&history(&writers, &[(1, &[1, 2, 7])])), BY_ALL);
    assert_eq!(found_by(&history(&writers, &[(1, &[1, 2, 1])])), BY_ALL);
    assert_eq!(found_by(&history(&writers, &[(1, &[1])])), BY_ALL);
}

/// The number of histories under `isolation` that the check of each level rejects, and the number
/// of all histories.
fn objections(isolation: Isolation) -> ([u64; 3], u64) {
    let seeds = seed::from_env("FRONDB_HISTORIES", 60);
    let mut sums = [0; 3];
    let first = seed::from_env("FRONDB_FIRST_SEED", 0);
    for seed in first..first + seeds {
        let found = found_by(&broken::history(isolation, seed, 400));
        sums.iter_mut().zip(found).for_each(|(sum, found)| *sum += u64::from(found));
    }
    println!("{isolation:?}: {sums:?} of {seeds} histories refused");
    (sums, seeds)
}

/// With few lists and many concurrent sessions, nearly every history has the anomaly.
fn nearly_all(seeds: u64) -> std::ops::RangeInclusive<u64> {
    seeds * 9 / 10..=seeds
}

#[test]
fn a_correct_database_passes_at_its_level() {
    assert_eq!(objections(Isolation::Serial).0, [0, 0, 0]);
    let ([0, 0, skewed], seeds) = objections(Isolation::Snapshot) else { panic!("refused") };
    assert!(nearly_all(seeds).contains(&skewed), "snapshot isolation allows write skew");
    let ([0, single, any], seeds) = objections(Isolation::ReadCommitted) else { panic!("refused") };
    assert!(nearly_all(seeds).contains(&single) && nearly_all(seeds).contains(&any));
}

#[test]
fn a_broken_database_is_refused() {
    let ([0, single, any], seeds) = objections(Isolation::TwoSnapshots) else { panic!("refused") };
    assert!(nearly_all(seeds).contains(&single) && nearly_all(seeds).contains(&any));
    for isolation in [Isolation::LostUpdates, Isolation::Dirty] {
        let (found, seeds) = objections(isolation);
        assert_eq!(found, [seeds; 3]);
    }
}
