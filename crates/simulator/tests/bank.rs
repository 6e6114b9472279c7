//! A bank: accounts in two trees, threads that transfer money between them, and auditors that add
//! the accounts up. Every read, plain or locking, finds the same sum, also after a crash at any
//! moment. All transfers that were acknowledged as durable exist. Each transfer writes a receipt in
//! the same transaction.
//!
//! ```text
//!  transfer   read for update, put | serializable get, put | update function under snapshot
//!             isolation; sometimes with a memo so large that it spills, or prepared and decided by
//!             another thread
//!  audit      a plain cursor of a repeatable read | a locking cursor
//!  crash      power loss or kill -9: reopened, prepared transactions decided at random, audited
//! ```
//! `FRONDB_SEED` selects the threads' actions, `FRONDB_TRANSFERS` the number of transfers of each
//! thread.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use frondb::testing::TestDb;
use frondb::{
    Db, Durability, Error, ErrorKind, Isolation, Options, Result, Transaction,
    TransactionCursorOptions, TransactionOptions, Tree, TreeOptions, UpdateFn, Wait,
};
use frondb_core::prng::Prng;
use frondb_core::sync::atomic::{AtomicBool, Ordering};
use frondb_core::sync::{Arc, Mutex};
use frondb_testkit::seed;
use frondb_testkit::{CrashMode, MemoryDevice};

const ACCOUNTS: u64 = 16;
const START: i64 = 1000;
const WRITERS: u64 = 4;

/// Adds the operand to the value.
struct Add;

impl UpdateFn for Add {
    fn name(&self) -> &str {
        "add"
    }

    fn apply(&self, _: &[u8], existing: Option<&[u8]>, operand: &[u8]) -> Result<Vec<u8>, String> {
        let sum = existing.map_or(0, amount) + amount(operand);
        Ok(sum.to_be_bytes().to_vec())
    }

    fn combine(&self, _: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some((amount(older) + amount(newer)).to_be_bytes().to_vec())
    }
}

fn amount(bytes: &[u8]) -> i64 {
    i64::from_be_bytes(bytes.try_into().unwrap())
}

#[derive(Clone)]
struct Bank {
    db: Db,
    accounts: [Tree; 2],
    receipts: Tree,
}

impl Bank {
    fn open(device: &MemoryDevice) -> Self {
        let options = Options::new()
            .memory_bytes(16 << 20)
            .write_buffer_bytes(64 << 10)
            .background_threads(1)
            .reserve_bytes(0)
            .update_fn(Add);
        let db = TestDb::on(Arc::new(device.clone())).options(options).open().unwrap();
        let tree = |name| db.open_tree(name).or_else(|_| db.create_tree(name, account_options()));
        let accounts = [tree("giro").unwrap(), tree("savings").unwrap()];
        let receipts = tree("receipts").unwrap();
        Self { db, accounts, receipts }
    }

    fn fill(&self) {
        let transaction = self.db.begin(TransactionOptions::new()).unwrap();
        for account in 0..ACCOUNTS {
            let (tree, key) = self.account(account);
            transaction.put(tree, &key, &START.to_be_bytes()).unwrap();
        }
        transaction.commit().unwrap();
    }

    fn account(&self, account: u64) -> (&Tree, [u8; 8]) {
        (&self.accounts[account as usize % 2], account.to_be_bytes())
    }

    /// The sum of all accounts, read by a plain or a locking cursor of one transaction.
    fn sum(&self, locking: bool) -> Result<i64> {
        let options = TransactionOptions::new().lock_timeout(Duration::from_secs(120));
        let transaction = self.db.begin(options)?;
        let mut sum = 0;
        for tree in &self.accounts {
            let options = TransactionCursorOptions::new();
            let options = if locking { options.for_share(Wait::Timeout) } else { options };
            let mut cursor = transaction.cursor_with(tree, options)?;
            while cursor.next()? {
                sum += amount(cursor.value()?);
            }
        }
        Ok(sum)
    }

    /// Returns whether the audit was complete; a locking audit may be the victim of a deadlock.
    fn check_sum(&self, locking: bool, when: &str) -> bool {
        let result = self.sum(locking);
        match &result {
            Ok(sum) => assert_eq!(*sum, START * ACCOUNTS as i64, "{when}"),
            Err(error) => assert!(is_expected(error), "{when}: {error}"),
        }
        result.is_ok()
    }
}

fn account_options() -> TreeOptions {
    TreeOptions::new().update_fn("add", 1)
}

fn is_expected(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Deadlock | ErrorKind::Conflict)
}

/// Receipts with a known outcome: acknowledged as durable, or rolled back.
#[derive(Clone, Default)]
struct Ledger {
    durable: BTreeSet<u64>,
    never: BTreeSet<u64>,
}

/// A prepared transfer that another thread decides: its receipt, and whether it is committed.
type Undecided = (u64, bool);

struct Writer {
    bank: Bank,
    prng: Prng,
    ledger: Arc<Mutex<Ledger>>,
    undecided: Sender<Undecided>,
}

impl Writer {
    fn transfer(&mut self, receipt: u64) {
        let kind = self.prng.below(3);
        let from = self.prng.below(ACCOUNTS);
        let to = (from + 1 + self.prng.below(ACCOUNTS - 1)) % ACCOUNTS;
        let sum = self.prng.below(50) as i64;
        let sync = self.prng.chance(1, 2);
        let is_large = self.prng.chance(1, 40);
        let prepares = self.prng.chance(1, 8);
        let options = TransactionOptions::new()
            .isolation(if kind == 1 { Isolation::Serializable } else { Isolation::RepeatableRead })
            .snapshot_isolation(kind == 2)
            // If the deciding thread fails, prepared transactions keep their locks. With a timeout
            // the writers fail too instead of waiting forever.
            .lock_timeout(Duration::from_secs(120))
            .durability(if sync { Durability::Sync } else { Durability::NoSync });
        loop {
            let transaction = self.bank.db.begin(options.clone()).unwrap();
            let written = self.write(&transaction, kind, (from, to, sum), receipt, is_large);
            let ended = written.and_then(|()| match prepares {
                true => transaction.prepare(&receipt.to_be_bytes()),
                false => transaction.commit(),
            });
            match ended {
                Ok(()) if prepares => {
                    drop(transaction);
                    self.undecided.send((receipt, self.prng.chance(2, 3))).unwrap();
                    return;
                }
                Ok(()) => {
                    if sync {
                        self.ledger.lock().durable.insert(receipt);
                    }
                    return;
                }
                Err(error) => assert!(is_expected(&error), "{error}"),
            }
        }
    }

    fn write(
        &self,
        transaction: &Transaction,
        kind: u64,
        (from, to, sum): (u64, u64, i64),
        receipt: u64,
        is_large: bool,
    ) -> Result<()> {
        for (account, change) in [(from, -sum), (to, sum)] {
            let (tree, key) = self.bank.account(account);
            let found = match kind {
                0 => transaction.get_for_update(tree, &key, Wait::Timeout)?,
                1 => transaction.get(tree, &key)?,
                _ => {
                    transaction.update(tree, &key, &change.to_be_bytes())?;
                    continue;
                }
            };
            let new = amount(&found.unwrap()) + change;
            transaction.put(tree, &key, &new.to_be_bytes())?;
        }
        let key = receipt.to_be_bytes();
        if is_large {
            // More than a sixteenth of the memory, so that the transaction spills.
            for page in 0..40_u8 {
                let memo = [&key[..], &[page]].concat();
                transaction.put(&self.bank.receipts, &memo, &[page; 30_000])?;
            }
        }
        transaction.put(&self.bank.receipts, &key, &sum.to_be_bytes())
    }
}

/// Decides the transactions that writers have prepared.
fn decide(bank: &Bank, ledger: &Mutex<Ledger>, undecided: &Receiver<Undecided>) {
    for (receipt, commits) in undecided {
        let xid = receipt.to_be_bytes();
        if commits {
            bank.db.commit_prepared(&xid, Durability::Sync).unwrap();
            ledger.lock().durable.insert(receipt);
        } else {
            bank.db.rollback_prepared(&xid).unwrap();
            ledger.lock().never.insert(receipt);
        }
    }
}

/// Opens the database that a crash has left, decides the prepared transactions, and audits the
/// bank.
fn check_crash(device: &MemoryDevice, ledger: &Ledger, prng: &mut Prng, when: &str) {
    let bank = Bank::open(device);
    bank.check_sum(false, when);
    let mut later = Vec::new();
    for xid in bank.db.prepared() {
        let commits = prng.chance(1, 2);
        let result = match commits {
            true => bank.db.commit_prepared(&xid, Durability::NoSync),
            false => bank.db.rollback_prepared(&xid),
        };
        result.unwrap_or_else(|error| panic!("{when}: {error}"));
        later.push((xid, commits));
    }
    bank.check_sum(true, when);
    for (xid, commits) in later {
        assert_eq!(bank.receipts.exists(&xid).unwrap(), commits, "{when}: decided");
    }
    for receipt in &ledger.durable {
        let there = bank.receipts.exists(&receipt.to_be_bytes()).unwrap();
        assert!(there, "{when}: transfer {receipt} is lost");
    }
    for receipt in &ledger.never {
        let there = bank.receipts.exists(&receipt.to_be_bytes()).unwrap();
        assert!(!there, "{when}: transfer {receipt} was rolled back");
    }
    assert!(bank.db.locks().is_empty(), "{when}");
    let report = bank.db.verify(&mut |_, _, _| true).unwrap();
    assert!(report.faults.is_empty(), "{when}: {:?}", report.faults);
}

#[test]
fn the_sum_never_changes() {
    let seed = seed::from_env("FRONDB_SEED", 1);
    let transfers = seed::from_env("FRONDB_TRANSFERS", 250);
    println!("seed {seed}");
    let device = MemoryDevice::new();
    let bank = Bank::open(&device);
    bank.fill();
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let done = AtomicBool::new(false);
    let (sender, undecided) = channel();
    let (mut audits, mut crashes) = ([0, 0], 0);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|number| {
                let (bank, ledger) = (bank.clone(), Arc::clone(&ledger));
                let prng = Prng::new(seed << 8 | number);
                let mut writer = Writer { bank, prng, ledger, undecided: sender.clone() };
                scope.spawn(move || {
                    (0..transfers).for_each(|i| writer.transfer(number << 32 | i));
                })
            })
            .collect();
        drop(sender);
        let (deciding, decided) = (&bank, &ledger);
        let decider = scope.spawn(move || decide(deciding, decided, &undecided));
        let auditor = scope.spawn(|| {
            let mut audits = [0, 0];
            while !done.load(Ordering::SeqCst) {
                for locking in [false, true] {
                    let seen = bank.check_sum(locking, "while transfers go on");
                    audits[usize::from(locking)] += u64::from(seen);
                }
            }
            audits
        });
        let crasher = scope.spawn(|| {
            let mut prng = Prng::new(seed);
            let mut crashes = 0;
            while !done.load(Ordering::SeqCst) {
                // Copy the acknowledged transfers before the crash, because more of them may be
                // acknowledged later.
                let known = ledger.lock().clone();
                let modes = [
                    CrashMode::LoseUnsynced,
                    CrashMode::KeepAll,
                    CrashMode::Random(prng.next_u64()),
                ];
                let mode = modes[crashes % 3];
                let when = format!("crash {crashes}, {mode:?}");
                check_crash(&device.crash(mode), &known, &mut prng, &when);
                crashes += 1;
            }
            crashes
        });
        let ended = writers.into_iter().try_for_each(|writer| writer.join());
        let decided = decider.join();
        done.store(true, Ordering::SeqCst);
        (audits, crashes) = (auditor.join().unwrap(), crasher.join().unwrap());
        ended.unwrap();
        decided.unwrap();
    });
    println!(
        "{audits:?} audits plain and locking, {crashes} crashes, {} spills",
        bank.db.stats().spills
    );
    assert!(audits[0] > 0 && crashes > 0);
    assert!(bank.db.stats().spills > 0 && bank.db.locks().is_empty());
    assert_eq!(bank.db.prepared(), Vec::<Vec<u8>>::new());
    let ledger = ledger.lock().clone();
    check_crash(&device.crash(CrashMode::LoseUnsynced), &ledger, &mut Prng::new(seed), "the end");
}
