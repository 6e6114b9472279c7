//! Estimates of a transaction's own messages in a range: in memory, spilled, and after rollbacks.

use frondb::{ErrorKind, Transaction, TransactionOptions, Tree, TreeOptions};

use crate::support;

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

fn put(transaction: &Transaction, tree: &Tree, rows: std::ops::Range<u32>, value: &[u8]) {
    for n in rows {
        transaction.put(tree, &key(n), value).unwrap();
    }
}

/// Returns whether an estimate is within an eighth of the truth: it assumes that keys are evenly
/// spread in a block.
fn is_near(found: u64, truth: u64) -> bool {
    found.abs_diff(truth) <= truth / 8 + 64
}

#[test]
fn own_messages_are_counted_before_the_commit() {
    let (db, tree) = support::database_with_tree();
    let other = db.create_tree("other", TreeOptions::new()).unwrap();
    tree.put(&key(5), b"committed").unwrap();
    let transaction = db.begin(TransactionOptions::new()).unwrap();
    let count =
        |lo: u32, hi: u32| transaction.own_messages(&tree, &key(lo), Some(&key(hi))).unwrap();
    assert_eq!(transaction.own_messages(&tree, b"", None).unwrap(), 0);
    put(&transaction, &tree, 0..1000, b"value");
    transaction.delete(&tree, &key(5)).unwrap();
    assert_eq!(count(0, 1000), 1001);
    assert_eq!(count(100, 300), 200);
    assert_eq!((count(1000, 2000), count(300, 100)), (0, 0));
    assert_eq!(transaction.own_messages(&tree, &key(900), None).unwrap(), 100);
    assert_eq!(transaction.own_messages(&other, b"", None).unwrap(), 0);
    // Counts of the tree do not include messages of open transactions.
    assert_eq!(tree.messages(b"", None).unwrap().all, 1);
    transaction.commit().unwrap();
    let ended = transaction.own_messages(&tree, b"", None).unwrap_err();
    assert_eq!(ended.kind(), ErrorKind::Invalid);
}

#[test]
fn spilled_messages_are_counted_too() {
    let (db, tree) = support::database_with_tree();
    let transaction = db.begin(TransactionOptions::new()).unwrap();
    put(&transaction, &tree, 0..40_000, &[7; 300]);
    assert!(db.stats().private_run_bytes > 0, "nothing was spilled");
    for (lo, hi) in [(0, 40_000), (10_000, 30_000), (39_000, 40_000), (20_000, 20_500)] {
        let found = transaction.own_messages(&tree, &key(lo), Some(&key(hi))).unwrap();
        assert!(is_near(found, u64::from(hi - lo)), "{lo}..{hi}: {found}");
    }
    let savepoint = transaction.set_savepoint().unwrap();
    put(&transaction, &tree, 40_000..41_000, b"value");
    transaction.roll_back_to(savepoint).unwrap();
    let whole = transaction.own_messages(&tree, b"", None).unwrap();
    assert!((40_000..=41_000).contains(&whole), "{whole}");
    transaction.rollback().unwrap();
}
