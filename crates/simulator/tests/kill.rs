//! `kill -9` at any moment, on a real file system. A child process writes rows and index entries,
//! reports acknowledged commits through a pipe, and is killed; the parent opens the files. Every
//! acknowledged commit exists, even if it was not synced. A commit in progress exists completely or
//! not at all. The index has exactly the entries of the rows. Commits are batches, transactions
//! with a savepoint that is rolled back, and prepared transactions, which the parent may have to
//! decide.
//!
//! `FRONDB_KILL_ROUNDS` sets the number of rounds, `FRONDB_SEED` the rows and the moments of the
//! kills.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use frondb::{Batch, Db, Durability, TransactionOptions, Tree};
use frondb_core::prng::Prng;
use frondb_simulator::Setup;
use frondb_simulator::functions::Function;
use frondb_testkit::{TempDir, seed};

/// Environment variable of the child process: seed, number of the first commit to make, directory.
const CHILD: &str = "FRONDB_KILL_CHILD";

const ROWS: u64 = 3000;

/// Small sizes, so that a flush or a merge is always under way.
fn setup() -> Setup {
    Setup { threads: 2, write_buffer_bytes: 64 << 10, ..Setup::tall() }
}

/// The value of each row, by row number.
type Rows = BTreeMap<u64, u64>;

/// The changes of commit `n`: rows that it puts and rows that it deletes. A pure function, so that
/// parent and child compute the same changes without communication.
fn changes(seed: u64, n: u64) -> Vec<(u64, Option<u64>)> {
    let mut prng = Prng::new(seed ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let count = 1 + prng.below(40);
    (0..count)
        .map(|_| {
            let row = prng.below(ROWS);
            (row, prng.chance(3, 4).then(|| prng.below(1 << 40)))
        })
        .collect()
}

fn apply(rows: &mut Rows, changes: &[(u64, Option<u64>)]) {
    for &(row, value) in changes {
        match value {
            Some(value) => rows.insert(row, value),
            None => rows.remove(&row),
        };
    }
}

fn entry(value: u64, row: u64) -> Vec<u8> {
    [value.to_be_bytes(), row.to_be_bytes()].concat()
}

fn open(path: &Path) -> (Db, Tree, Tree) {
    let db = Db::open(path, setup().options()).unwrap();
    if db.list_trees().is_empty() {
        db.create_tree("rows", setup().tree_options(Function::None)).unwrap();
    }
    if db.list_trees().len() == 1 {
        db.create_tree("values", setup().tree_options(Function::None)).unwrap();
    }
    let (rows, values) = (db.open_tree("rows").unwrap(), db.open_tree("values").unwrap());
    (db, rows, values)
}

/// Writes: each has a tree, a key and a value; `None` deletes the key.
type Writes<'a> = Vec<(&'a Tree, Vec<u8>, Option<Vec<u8>>)>;

/// Commits the writes, in one of several ways that `n` selects.
fn commit(db: &Db, writes: &Writes<'_>, n: u64, durability: Durability) {
    if n.is_multiple_of(3) {
        let mut batch = Batch::new();
        for (tree, key, value) in writes {
            match value {
                Some(value) => batch.put(tree, key, value),
                None => batch.delete(tree, key),
            }
        }
        return db.write(&batch, durability).unwrap();
    }
    let transaction = db.begin(TransactionOptions::new().durability(durability)).unwrap();
    for (i, (tree, key, value)) in writes.iter().enumerate() {
        if i % 7 == 3 {
            let savepoint = transaction.set_savepoint().unwrap();
            transaction.delete_range(tree, b"", None).unwrap();
            // Some transactions write so much that they spill.
            let large = if n.is_multiple_of(40) { 30_000 } else { 30 };
            (0..12_u8).for_each(|k| transaction.put(tree, &[k], &vec![k; large]).unwrap());
            transaction.roll_back_to(savepoint).unwrap();
        }
        match value {
            Some(value) => transaction.put(tree, key, value).unwrap(),
            None => transaction.delete(tree, key).unwrap(),
        }
    }
    if n % 3 == 1 {
        return transaction.commit().unwrap();
    }
    transaction.prepare(&n.to_be_bytes()).unwrap();
    drop(transaction);
    db.commit_prepared(&n.to_be_bytes(), durability).unwrap();
}

/// The child process: writes until it is killed.
fn write_until_killed(path: &Path, seed: u64, first: u64) {
    let mut model = Rows::new();
    (0..first).for_each(|n| apply(&mut model, &changes(seed, n)));
    let (db, rows, values) = open(path);
    let mut out = std::io::stdout();
    for n in first.. {
        let mut writes = Writes::default();
        let changes = changes(seed, n);
        for change in &changes {
            let (row, value) = *change;
            if let Some(old) = model.get(&row) {
                writes.push((&values, entry(*old, row), None));
            }
            match value {
                Some(value) => {
                    let bytes = value.to_be_bytes().to_vec();
                    writes.push((&rows, row.to_be_bytes().to_vec(), Some(bytes)));
                    writes.push((&values, entry(value, row), Some(Vec::new())));
                }
                None => writes.push((&rows, row.to_be_bytes().to_vec(), None)),
            }
            apply(&mut model, &[*change]);
        }
        let durability = if n % 5 == 0 { Durability::Sync } else { Durability::NoSync };
        commit(&db, &writes, n, durability);
        writeln!(out, "ack {n}").unwrap();
        out.flush().unwrap();
        if n % 97 == 0 {
            db.checkpoint().unwrap();
        }
    }
}

fn read(tree: &Tree) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = tree.cursor().unwrap();
    let mut entries = Vec::new();
    while cursor.next().unwrap() {
        let key = cursor.key().to_vec();
        entries.push((key, cursor.value().unwrap().to_vec()));
    }
    entries
}

/// Checks the database; returns its number of commits, which must be `acked` or one more.
fn check(path: &Path, seed: u64, acked: u64) -> u64 {
    let (db, rows, values) = open(path);
    // All acknowledged transactions were decided. The one in progress may be decided either way.
    for xid in db.prepared() {
        assert_eq!(xid, acked.to_be_bytes());
        match seed % 2 {
            0 => db.rollback_prepared(&xid).unwrap(),
            _ => db.commit_prepared(&xid, Durability::Sync).unwrap(),
        }
    }
    let (found_rows, found_values) = (read(&rows), read(&values));
    let mut model = Rows::new();
    (0..acked).for_each(|n| apply(&mut model, &changes(seed, n)));
    let matches = |model: &Rows| {
        let rows = model.iter().map(|(r, v)| (r.to_be_bytes().to_vec(), v.to_be_bytes().to_vec()));
        let mut entries: Vec<_> = model.iter().map(|(r, v)| (entry(*v, *r), Vec::new())).collect();
        entries.sort();
        (found_rows.iter().cloned().eq(rows), found_values == entries)
    };
    let mut count = acked;
    if matches(&model) != (true, true) {
        let without = matches(&model);
        apply(&mut model, &changes(seed, acked));
        count += 1;
        assert_eq!(
            matches(&model),
            (true, true),
            "after {acked} acknowledged commits: (rows, index) match neither these ({without:?}) \
             nor with one more; {} rows, {} entries",
            found_rows.len(),
            found_values.len()
        );
    }
    let report = db.verify(&mut |_, _, _| true).unwrap();
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    count
}

#[test]
fn acknowledged_commits_survive_kill_9() {
    if let Ok(child) = std::env::var(CHILD) {
        let mut words = child.splitn(3, ' ');
        let mut number = || words.next().unwrap().parse::<u64>().unwrap();
        let (seed, first) = (number(), number());
        return write_until_killed(Path::new(words.next().unwrap()), seed, first);
    }
    let seed = seed::from_env("FRONDB_SEED", 1);
    let rounds = seed::from_env("FRONDB_KILL_ROUNDS", 20);
    let dir = TempDir::new("kill");
    let mut prng = Prng::new(seed);
    let mut commits = 0;
    for round in 0..rounds {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "acknowledged_commits_survive_kill_9", "--nocapture"])
            .env(CHILD, format!("{seed} {commits} {}", dir.path().display()))
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut acked = commits;
        let mut read_ack = |acked: &mut u64| {
            let Some(line) = lines.next() else { return false };
            // Skip lines that the test harness of the child prints.
            if let Some(n) = line.unwrap().strip_prefix("ack ") {
                *acked = n.parse::<u64>().unwrap() + 1;
            }
            true
        };
        let wanted = commits + 10 + prng.below(250);
        while acked < wanted {
            assert!(read_ack(&mut acked), "seed {seed}, round {round}: the child ended by itself");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        while read_ack(&mut acked) {}
        commits = check(dir.path(), seed, acked);
        println!("seed {seed}, round {round}: {acked} acknowledged, {commits} found");
    }
}
