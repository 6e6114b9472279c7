//! The order of commits, the calls of the commit hook, and how many commits share a sync.

use std::sync::Arc;

use frondb::{Batch, CommitInfo, Committing, Durability, ErrorKind, TransactionOptions, Wait};
use frondb_core::sync::Mutex;

use crate::support;

/// The hook is called once for each commit, of a batch or in one or two phases, as soon as the
/// commit is visible. The calls come in the order in which snapshots see the commits.
#[test]
fn the_hook_is_called_for_commits_in_their_order() {
    let (db, tree) = support::database_with_tree();
    let notified: Arc<Mutex<Vec<CommitInfo>>> = Arc::default();
    let hook = Arc::clone(&notified);
    db.set_commit_hook(Some(Arc::new(move |info: &CommitInfo| hook.lock().push(*info))));
    let committed: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4_u8)
            .map(|thread| {
                let (db, tree) = (&db, &tree);
                scope.spawn(move || {
                    let mut ids = Vec::new();
                    for i in 0..50_u8 {
                        let key = [thread, i];
                        if i % 5 == 0 {
                            let mut batch = Batch::new();
                            batch.put(tree, &key, b"batch");
                            db.write(&batch, Durability::NoSync).unwrap();
                            continue;
                        }
                        let transaction = db.begin(TransactionOptions::new()).unwrap();
                        transaction.put(tree, &key, b"transaction").unwrap();
                        if i % 5 == 1 {
                            transaction.prepare(&key).unwrap();
                        }
                        if i % 5 == 2 {
                            transaction.rollback().unwrap();
                        } else {
                            transaction.commit().unwrap();
                            ids.push(transaction.id());
                        }
                    }
                    ids
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    // A transaction without writes does not cause a commit.
    db.begin(TransactionOptions::new()).unwrap().commit().unwrap();
    db.set_commit_hook(None);
    tree.put(b"after", b"").unwrap();

    let notified = notified.lock().clone();
    assert!(notified.windows(2).all(|pair| pair[0].seq < pair[1].seq && pair[0].end < pair[1].end));
    let mut ids: Vec<u64> =
        notified.iter().map(|info| info.transaction).filter(|id| *id > 0).collect();
    ids.sort_unstable();
    let mut expected = committed;
    expected.sort_unstable();
    assert_eq!(ids, expected);
    assert_eq!(notified.iter().filter(|info| info.transaction == 0).count(), 4 * 10);
}

/// Rule 21: if other transactions hold locks, a writer keeps its locks until its rows are visible.
#[test]
fn rows_are_locked_until_they_are_visible() {
    let (db, tree) = support::database_with_tree();
    // A batch takes locks only if other transactions hold locks in its tree.
    let other = db.begin(TransactionOptions::new()).unwrap();
    other.get_for_update(&tree, b"another", Wait::NoWait).unwrap();
    let found: Arc<Mutex<Vec<Option<ErrorKind>>>> = Arc::default();
    let (hook, (theirs, rows)) = (Arc::clone(&found), (db.clone(), tree.clone()));
    db.set_commit_hook(Some(Arc::new(move |_: &CommitInfo| {
        let asks = theirs.begin(TransactionOptions::new()).unwrap();
        let row = asks.get_for_update(&rows, b"k", Wait::NoWait);
        hook.lock().push(row.err().map(|error| error.kind()));
    })));
    let mut batch = Batch::new();
    batch.put(&tree, b"k", b"batch");
    db.write(&batch, Durability::NoSync).unwrap();
    for prepares in [false, true] {
        let transaction = db.begin(TransactionOptions::new()).unwrap();
        transaction.put(&tree, b"k", b"transaction").unwrap();
        if prepares {
            transaction.prepare(b"x").unwrap();
        }
        transaction.commit().unwrap();
    }
    db.set_commit_hook(None);
    assert_eq!(*found.lock(), [Some(ErrorKind::Busy); 3]);
}

/// Group commit: a hundred commits that wait at the same time share one sync. A hundred prepares
/// together with their commits also share one sync.
#[test]
fn commits_that_wait_together_share_a_sync() {
    let (db, tree) = support::database_with_tree();
    for prepares in [false, true] {
        let options = TransactionOptions::new().durability(Durability::Sync);
        let transactions: Vec<_> = (0..100_u8)
            .map(|i| {
                let transaction = db.begin(options.clone()).unwrap();
                transaction.put(&tree, &[i], b"v").unwrap();
                transaction
            })
            .collect();
        let before = db.stats().wal_syncs;
        let mut waits: Vec<Committing> = Vec::new();
        if prepares {
            for (i, transaction) in transactions.iter().enumerate() {
                waits.push(transaction.prepare_in_order(&[i as u8]).unwrap());
            }
        }
        for transaction in &transactions {
            waits.push(transaction.commit_in_order().unwrap());
        }
        assert_eq!(db.stats().wal_syncs, before);
        waits.into_iter().for_each(|wait| wait.wait().unwrap());
        assert_eq!(db.stats().wal_syncs, before + 1);
    }
}

/// Commits happen in the order of the calls, and locks are released before the wait for the sync.
#[test]
fn commits_happen_in_the_order_of_the_calls() {
    let (db, tree) = support::database_with_tree();
    let options = TransactionOptions::new().durability(Durability::Sync);
    let mut waits = Vec::new();
    for value in [b"one", b"two"] {
        let transaction = db.begin(options.clone()).unwrap();
        transaction.put(&tree, b"k", value).unwrap();
        waits.push(transaction.commit_in_order().unwrap());
        assert_eq!(tree.get(b"k").unwrap().as_deref(), Some(&value[..]));
    }
    assert!(db.locks().is_empty());
    db.close().unwrap();
    // The close of the database has made the commits durable.
    waits.into_iter().for_each(|wait| wait.wait().unwrap());
}

/// If the hook panics, the commit is not undone: the private runs and large values that it wrote to
/// disk stay in the trees.
#[test]
fn a_hook_that_panics_changes_nothing_about_the_commit() {
    let (db, tree) = support::database_with_tree();
    db.set_commit_hook(Some(Arc::new(|info: &CommitInfo| {
        assert_eq!(info.transaction, 0, "a hook that panics at transactions, as this test has it");
    })));
    let transaction = db.begin(TransactionOptions::new()).unwrap();
    transaction.put(&tree, b"large", &[1; 200_000]).unwrap();
    for i in 0..20_000_u32 {
        transaction.put(&tree, &i.to_be_bytes(), &[1; 50]).unwrap();
    }
    assert!(db.stats().spills > 0);
    transaction.commit().unwrap();
    drop(transaction);
    assert!(db.locks().is_empty());
    for i in 0..20_u8 {
        tree.put(&[b"z", &[i][..]].concat(), &[2; 200_000]).unwrap();
    }
    db.flush().unwrap();
    assert_eq!(tree.get(b"large").unwrap().as_deref(), Some(&[1; 200_000][..]));
    for i in 0..20_000_u32 {
        assert_eq!(tree.get(&i.to_be_bytes()).unwrap().as_deref(), Some(&[1; 50][..]));
    }
}
