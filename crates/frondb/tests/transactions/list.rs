//! [`Db::transactions`]: the entries of active, waiting and prepared transactions, and when the
//! entries disappear.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use frondb::testing::TestDb;
use frondb::{
    Db, Durability, ErrorKind, Isolation, Transaction, TransactionCursorOptions, TransactionInfo,
    TransactionOptions, Tree, TreeOptions, Wait,
};
use frondb_core::clock::ManualClock;
use frondb_core::sync::atomic::{AtomicBool, Ordering};
use frondb_testkit::MemoryDevice;

fn open(device: &Arc<MemoryDevice>, clock: &Arc<ManualClock>) -> Db {
    let (device, clock) = (Arc::clone(device), Arc::clone(clock));
    TestDb::on(device).clock(clock).open().unwrap()
}

struct World {
    device: Arc<MemoryDevice>,
    clock: Arc<ManualClock>,
    db: Db,
    tree: Tree,
}

fn world() -> World {
    let (device, clock) = (Arc::new(MemoryDevice::new()), Arc::new(ManualClock::new()));
    let db = open(&device, &clock);
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    World { device, clock, db, tree }
}

impl World {
    fn begin(&self, isolation: Isolation) -> Transaction {
        let options = TransactionOptions::new().isolation(isolation).durability(Durability::NoSync);
        self.db.begin(options.lock_timeout(Duration::from_secs(3600))).unwrap()
    }

    fn info(&self, transaction: &Transaction) -> TransactionInfo {
        let mut list = self.db.transactions().into_iter();
        list.find(|info| info.transaction == transaction.id()).unwrap()
    }

    fn messages_and_locks(&self, transaction: &Transaction) -> (u64, u64) {
        let info = self.info(transaction);
        (info.messages, info.locks)
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_transaction_is_listed_from_its_begin_to_its_end() {
    let world = world();
    assert_eq!(world.db.transactions(), []);
    let first = world.begin(Isolation::ReadCommitted);
    world.clock.advance(SECOND * 5);
    let second = world.begin(Isolation::Serializable);
    world.clock.advance(SECOND);
    let expected = |transaction: &Transaction, isolation, age| TransactionInfo {
        transaction: transaction.id(),
        isolation: Some(isolation),
        age,
        messages: 0,
        locks: 0,
        waited: None,
        xid: None,
    };
    let of_first = expected(&first, Isolation::ReadCommitted, SECOND * 6);
    let of_second = expected(&second, Isolation::Serializable, SECOND);
    assert_eq!(world.db.transactions(), [of_first, of_second]);
    first.commit().unwrap();
    assert_eq!(world.db.transactions().len(), 1, "the handle is there, the transaction is not");
    drop(second);
    assert_eq!(world.db.transactions(), []);
    // The entries are reused for other transactions and show nothing of the earlier ones.
    let third = world.begin(Isolation::ReadUncommitted);
    let of_third = expected(&third, Isolation::ReadUncommitted, Duration::ZERO);
    assert_eq!(world.db.transactions(), [of_third]);
    drop(first);
    third.rollback().unwrap();
    assert_eq!(world.db.transactions(), []);
}

#[test]
fn messages_and_locks_are_those_that_it_has() {
    let world = world();
    for key in 0..10_u8 {
        world.tree.put(&[key], b"x").unwrap();
    }
    let transaction = world.begin(Isolation::ReadCommitted);
    transaction.put(&world.tree, b"a", b"1").unwrap();
    transaction.put(&world.tree, b"a", b"2").unwrap();
    assert_eq!(world.messages_and_locks(&transaction), (2, 1));
    let savepoint = transaction.set_savepoint().unwrap();
    transaction.delete_range(&world.tree, b"b", Some(b"c")).unwrap();
    let other = world.db.create_tree("other", TreeOptions::new()).unwrap();
    transaction.insert(&other, b"a", b"").unwrap();
    assert_eq!(world.messages_and_locks(&transaction), (4, 3));
    // A rollback to a savepoint keeps the locks, but undone messages do not count.
    transaction.roll_back_to(savepoint).unwrap();
    assert_eq!(world.messages_and_locks(&transaction), (2, 3));
    transaction.get_for_update(&world.tree, b"z", Wait::Timeout).unwrap();
    assert_eq!(world.messages_and_locks(&transaction), (2, 4));
    let options = TransactionCursorOptions::new().range(..&[9_u8][..]).for_share(Wait::Timeout);
    let mut cursor = transaction.cursor_with(&world.tree, options).unwrap();
    while cursor.next().unwrap() {
        if cursor.key() >= &[3] {
            cursor.unlock().unwrap();
        }
    }
    assert_eq!(world.messages_and_locks(&transaction), (2, 7), "three rows of nine were kept");
    assert_eq!(world.db.locks().len(), 7);
}

/// Beyond a transaction's share of the memory, its row locks become range locks and its writes go
/// to disk.
#[test]
fn a_large_one_counts_all_its_messages_and_few_locks() {
    const ROWS: u32 = 50_000;
    let world = world();
    let transaction = world.begin(Isolation::RepeatableRead);
    for key in 0..ROWS {
        transaction.put(&world.tree, &key.to_be_bytes(), b"value").unwrap();
    }
    assert!(world.db.stats().spills > 0);
    let (messages, locks) = world.messages_and_locks(&transaction);
    assert_eq!(messages, ROWS.into());
    assert!(locks < u64::from(ROWS), "{locks} locks of {ROWS} rows");
    assert_eq!(locks, world.db.locks().len() as u64);
}

#[test]
fn the_list_shows_waiting_transactions_and_no_victims() {
    let world = world();
    let (one, two) = (world.begin(Isolation::default()), world.begin(Isolation::default()));
    one.put(&world.tree, b"a", b"").unwrap();
    one.put(&world.tree, b"c", b"").unwrap();
    two.put(&world.tree, b"b", b"").unwrap();
    std::thread::scope(|threads| {
        let put = threads.spawn(|| two.put(&world.tree, b"a", b""));
        while world.db.lock_waits().is_empty() {
            std::thread::yield_now();
        }
        world.clock.advance(SECOND * 7);
        assert_eq!(world.info(&two).waited, Some(SECOND * 7));
        assert_eq!(world.info(&one).waited, None);
        assert_eq!(world.messages_and_locks(&two), (1, 1), "what it waits for it has not");
        one.put(&world.tree, b"b", b"").unwrap();
        assert_eq!(put.join().unwrap().unwrap_err().kind(), ErrorKind::Deadlock);
    });
    let ids: Vec<u64> = world.db.transactions().iter().map(|info| info.transaction).collect();
    assert_eq!(ids, [one.id()]);
}

#[test]
fn a_prepared_one_is_listed_until_it_is_decided() {
    let mut world = world();
    for round in 0..4 {
        let transaction = world.begin(Isolation::Serializable);
        world.clock.advance(SECOND * 3);
        transaction.put(&world.tree, b"a", b"1").unwrap();
        transaction.put(&world.tree, b"b", b"1").unwrap();
        transaction.prepare(b"x").unwrap();
        let mut expected = TransactionInfo {
            transaction: transaction.id(),
            isolation: Some(Isolation::Serializable),
            age: SECOND * 3,
            messages: 2,
            locks: 2,
            waited: None,
            xid: Some(b"x".to_vec()),
        };
        assert_eq!(world.db.transactions(), [expected.clone()]);
        match round {
            0 => transaction.commit().unwrap(),
            1 => transaction.rollback().unwrap(),
            _ => {
                drop(transaction);
                assert_eq!(world.db.transactions(), [expected.clone()]);
            }
        }
        if round == 3 {
            world.db.close().unwrap();
            world.db = open(&world.device, &world.clock);
            world.tree = world.db.open_tree("t").unwrap();
            world.clock.advance(SECOND);
            (expected.isolation, expected.age) = (None, SECOND);
            assert_eq!(world.db.transactions(), [expected]);
        }
        if round >= 2 {
            world.db.commit_prepared(b"x", Durability::NoSync).unwrap();
        }
        assert_eq!(world.db.transactions(), [], "round {round}");
    }
}

/// Lists are taken while threads begin and end transactions. Each entry describes one transaction,
/// and transactions that stay open are in every list.
#[test]
fn lists_agree_with_transactions_that_begin_and_end() {
    let world = world();
    let stay: Vec<Transaction> = (0..200).map(|_| world.begin(Isolation::default())).collect();
    let ids: BTreeSet<u64> = stay.iter().map(Transaction::id).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for thread in 0..2_u8 {
            let (world, done) = (&world, &done);
            threads.spawn(move || {
                for i in 0..2000_u32 {
                    // The isolation level tells how many messages the transaction has.
                    let odd = i % 2 == 1;
                    let level =
                        if odd { Isolation::ReadCommitted } else { Isolation::RepeatableRead };
                    let transaction = world.begin(level);
                    if odd {
                        transaction.put(&world.tree, &[thread], b"").unwrap();
                    }
                }
                done.store(true, Ordering::Release);
            });
        }
        while !done.load(Ordering::Acquire) {
            let list = world.db.transactions();
            assert!(list.windows(2).all(|pair| pair[0].transaction < pair[1].transaction));
            let listed: BTreeSet<u64> = list.iter().map(|info| info.transaction).collect();
            assert!(listed.is_superset(&ids));
            for info in list {
                let is_fine =
                    info.messages == 0 || info.isolation == Some(Isolation::ReadCommitted);
                assert!(is_fine, "{info:?}");
            }
        }
    });
    drop(stay);
    assert_eq!(world.db.transactions(), []);
}
