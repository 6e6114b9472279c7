//! kill -9 under load with the binary log on. A history is ten kills of one server. After each
//! restart the tables have every acknowledged transaction completely, indexes agree with rows,
//! prepared transactions can be resolved, and a second server that applies the binary log has the
//! same rows. InnoDB's recovery can take old log for new log: if InnoDB's log shows that, the test
//! makes the other checks, ends the history and begins another one.
//!
//! ```text
//!   writers      BEGIN; move money; a line in the journal and one in a table of InnoDB; COMMIT
//!   coordinator  XA START .. PREPARE .. COMMIT or ROLLBACK, some left prepared. Not in the binary
//!                log, because the server does not make logged XA transactions crash-safe
//!   rotator      FLUSH BINARY LOGS, at which the server requests a checkpoint of commits
//! ```
//!
//! `FRONDB_SEED` sets when the server dies, `FRONDB_KILL_HISTORIES` the number of histories.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the seed")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use frondb_core::prng::Prng;
use frondb_mariadb_harness::{
    Client, Error, Options, Reply, Result, Server, StaleTail, stale_tail,
};

/// Kills in a history.
const ROUNDS: u64 = 10;
/// Most histories that may begin until one is complete. About one kill in a thousand leaves InnoDB
/// a log that it misreads.
const HISTORIES: u64 = 3;
const WRITERS: u64 = 4;
const ACCOUNTS: u64 = 50;
const BALANCE: u64 = 1000;

/// Lock wait timeout and deadlock, after which the transaction is rolled back.
const LOCK_ERRORS: [Option<u16>; 2] = [Some(1205), Some(1213)];

fn options() -> Options {
    Options::new().plugin_from_environment().set_all([
        "frondb-memory=64M",
        "innodb-buffer-pool-size=16M",
        "server-id=1",
        "binlog-format=row",
        "sync-binlog=1",
    ])
}

/// What a thread knows about its transactions when the server has died.
#[derive(Default)]
struct Known {
    /// Acknowledged commits, by their id in the journal.
    committed: BTreeSet<u64>,
    /// Prepared transactions whose decision was not sent.
    prepared: BTreeSet<u64>,
    /// Acknowledged rollbacks.
    rolled_back: BTreeSet<u64>,
}

fn make_tables(client: &mut Client) -> Result {
    client.run([
        "CREATE TABLE accounts (id INT PRIMARY KEY, balance INT, KEY (balance)) ENGINE=FronDB",
        "CREATE TABLE journal (id BIGINT PRIMARY KEY, source INT, KEY (source)) ENGINE=FronDB",
        "CREATE TABLE other (id BIGINT PRIMARY KEY) ENGINE=InnoDB",
        "CREATE TABLE branches (id BIGINT PRIMARY KEY, v INT, UNIQUE (v)) ENGINE=FronDB",
    ])?;
    for id in 0..ACCOUNTS {
        client.query(format!("INSERT INTO accounts VALUES ({id}, {BALANCE})"))?;
    }
    Ok(())
}

/// Runs one transaction of a writer.
fn transfer(client: &mut Client, random: &mut Prng, id: u64) -> Result {
    let (from, to, amount) = (random.below(ACCOUNTS), random.below(ACCOUNTS), random.below(50));
    client.run([
        "BEGIN".to_owned(),
        format!("UPDATE accounts SET balance = balance - {amount} WHERE id = {from}"),
        format!("INSERT INTO journal VALUES ({id}, {from})"),
        format!("UPDATE accounts SET balance = balance + {amount} WHERE id = {to}"),
        format!("INSERT INTO other VALUES ({id})"),
        "COMMIT".to_owned(),
    ])
}

fn write(mut client: Client, mut random: Prng, first: u64) -> Known {
    let mut known = Known::default();
    for id in first.. {
        match transfer(&mut client, &mut random, id) {
            Ok(()) => drop(known.committed.insert(id)),
            Err(error) if LOCK_ERRORS.contains(&error.code()) => {
                if client.query("ROLLBACK").is_err() {
                    break;
                }
            }
            Err(Error::Lost(_)) => break,
            Err(error) => panic!("a transfer: {error}"),
        }
    }
    known
}

/// Prepares named transactions, each with one row, and decides most of them.
fn coordinate(server: &Server, mut random: Prng, first: u64) -> Known {
    let mut known = Known::default();
    let mut step = |known: &mut Known, id: u64| -> Result {
        let mut client = server.connect_to("test")?;
        client.run([
            "SET sql_log_bin = 0".to_owned(),
            format!("XA START '{id}'"),
            format!("INSERT INTO branches VALUES ({id}, {id})"),
            format!("XA END '{id}'"),
            format!("XA PREPARE '{id}'"),
        ])?;
        known.prepared.insert(id);
        match random.below(3) {
            // Close the connection and leave the transaction prepared.
            0 => return Ok(()),
            1 => {
                known.prepared.remove(&id);
                client.query(format!("XA COMMIT '{id}'"))?;
                known.committed.insert(id);
            }
            _ => {
                known.prepared.remove(&id);
                client.query(format!("XA ROLLBACK '{id}'"))?;
                known.rolled_back.insert(id);
            }
        }
        Ok(())
    };
    for id in first.. {
        match step(&mut known, id) {
            Ok(()) => {}
            Err(Error::Lost(_)) => break,
            Err(error) => panic!("a branch: {error}"),
        }
    }
    known
}

fn rotate(mut client: Client) {
    // Repeat until the server has died.
    while client.query("FLUSH BINARY LOGS").is_ok() {}
}

/// Runs the load until the server is killed.
fn load_and_kill(server: &mut Server, random: &mut Prng, round: u64) -> (Known, Known) {
    let after = Duration::from_millis(random.range(200..1500));
    let number = |thread: u64| (round * WRITERS + thread) * 1_000_000;
    let clients: Vec<_> =
        (0..WRITERS).map(|_| server.connect_to("test").expect("a connection")).collect();
    let rotator = server.connect_to("test").expect("a connection");
    let pid = server.pid().expect("it runs");
    let known = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..)
            .zip(clients)
            .map(|(thread, client)| {
                let random = Prng::new(random.next_u64());
                scope.spawn(move || write(client, random, number(thread)))
            })
            .collect();
        let (server, forked) = (&*server, Prng::new(random.next_u64()));
        let coordinator = scope.spawn(move || coordinate(server, forked, number(0)));
        scope.spawn(move || rotate(rotator));
        std::thread::sleep(after);
        let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
        assert!(killed.expect("kill can be run").success());
        let mut written = Known::default();
        for thread in threads {
            written.committed.append(&mut thread.join().expect("a writer").committed);
        }
        (written, coordinator.join().expect("the coordinator"))
    });
    server.kill().expect("it can be waited for");
    known
}

fn numbers(client: &mut Client, query: &str) -> BTreeSet<u64> {
    let reply = client.query(query).unwrap();
    let number = |value: &[u8]| std::str::from_utf8(value).unwrap().parse().unwrap();
    reply.rows.iter().map(|row| number(row[0].as_deref().unwrap())).collect()
}

/// Checks the tables after a restart.
fn check_tables(client: &mut Client, written: &Known) {
    let total = client.number("SELECT SUM(balance) FROM accounts").unwrap();
    assert_eq!(total, ACCOUNTS * BALANCE, "money came or went");
    let journal = numbers(client, "SELECT id FROM journal");
    let lost: Vec<_> = written.committed.difference(&journal).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    for (table, index, columns) in
        [("accounts", "balance", "id, balance"), ("journal", "source", "id, source")]
    {
        let read = |client: &mut Client, index: &str| -> Reply {
            let query = format!("SELECT {columns} FROM {table} FORCE INDEX ({index}) ORDER BY id");
            client.query(query).unwrap()
        };
        assert_eq!(read(client, index).rows, read(client, "PRIMARY").rows, "an index of {table}");
    }
}

/// Checks that each transaction is in both engines or in neither. If InnoDB's recovery took old log
/// for the end of its log, returns an error that says where (see `innodb_log.rs`).
fn check_halves(client: &mut Client, server: &Server) -> std::result::Result<(), StaleTail> {
    let journal = numbers(client, "SELECT id FROM journal");
    let other = numbers(client, "SELECT id FROM other");
    let halves: Vec<_> = journal.symmetric_difference(&other).collect();
    if halves.is_empty() {
        return Ok(());
    }
    let stale = stale_tail(server).unwrap();
    Err(stale.unwrap_or_else(|| panic!("half of a transaction: {halves:?}")))
}

/// Checks that the prepared transactions exist, and resolves them. Then checks the rows of all XA
/// transactions.
fn check_branches(client: &mut Client, known: &Known) {
    let recovered = client.query("XA RECOVER").unwrap();
    let name = |value: &[u8]| std::str::from_utf8(value).unwrap().parse().unwrap();
    let prepared: BTreeSet<u64> =
        recovered.rows.iter().map(|row| name(row[3].as_deref().unwrap())).collect();
    let lost: Vec<_> = known.prepared.difference(&prepared).collect();
    assert!(lost.is_empty(), "prepared and lost: {lost:?}");
    client.query("SET sql_log_bin = 0").unwrap();
    let mut expected = known.committed.clone();
    for id in prepared {
        // A transaction whose decision was being sent may also still be prepared.
        let commits = known.prepared.contains(&id) && id % 2 == 0;
        let decision = if commits { "COMMIT" } else { "ROLLBACK" };
        client.query(format!("XA {decision} '{id}'")).unwrap();
        if commits {
            expected.insert(id);
        }
    }
    client.query("SET sql_log_bin = 1").unwrap();
    let left = client.query("XA RECOVER").unwrap();
    assert!(left.rows.is_empty(), "{} transactions are still prepared", left.rows.len());
    let rows = numbers(client, "SELECT id FROM branches");
    let lost: Vec<_> = expected.difference(&rows).collect();
    assert!(lost.is_empty(), "committed and lost: {lost:?}");
    let back: Vec<_> = known.rolled_back.intersection(&rows).collect();
    assert!(back.is_empty(), "rolled back and there: {back:?}");
    assert_eq!(rows, numbers(client, "SELECT v FROM branches FORCE INDEX (v)"));
}

/// Applies new binary logs to another server.
fn replay(logs: &[String], folder: &Path, to: &Server) {
    let mut reader = Command::new("mariadb-binlog")
        .args(logs)
        .current_dir(folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("mariadb-binlog can be run");
    let text = reader.stdout.take().expect("it has an output");
    let client = Command::new("mariadb")
        .args(["--no-defaults", "-uroot", "-S"])
        .arg(to.socket())
        .stdin(text)
        .status()
        .expect("mariadb can be run");
    assert!(reader.wait().expect("it ends").success(), "a binary log cannot be read");
    assert!(client.success(), "a binary log cannot be run");
}

fn names_of_logs(client: &mut Client) -> Vec<String> {
    let logs = client.query("SHOW BINARY LOGS").unwrap();
    let name = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
    logs.rows.iter().map(|row| name(row[0].as_deref().unwrap())).collect()
}

/// Applies the new part of the binary log to `replica`, and checks that `tables` then have the same
/// rows on both servers.
fn compare(server: &Server, replica: &Server, replayed: &mut usize, tables: &[&str]) {
    let mut client = server.connect_to("test").unwrap();
    client.query("FLUSH BINARY LOGS").unwrap();
    let logs = names_of_logs(&mut client);
    let whole = logs.len() - 1;
    replay(&logs[*replayed..whole], &server.data(), replica);
    *replayed = whole;
    let mut other = replica.connect_to("test").unwrap();
    for table in tables {
        let query = format!("SELECT * FROM {table} ORDER BY id");
        let (here, there) = (client.query(&query).unwrap(), other.query(&query).unwrap());
        assert_eq!(here.rows, there.rows, "{table} and the binary log");
    }
}

/// Kills one server many times. Returns an error if InnoDB's log has become unreliable.
fn history(random: &mut Prng) -> std::result::Result<(), StaleTail> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let logging = options().set("log-bin=binlog");
    let mut server = Server::start_fresh(&folder.join("killed"), logging).unwrap();
    let replica = Server::start_fresh(&folder.join("replayed"), options()).unwrap();
    make_tables(&mut server.connect_to("test").unwrap()).unwrap();
    let mut replayed = 0;
    let mut journaled = 0;
    for round in 0..ROUNDS {
        let (written, branches) = load_and_kill(&mut server, random, round);
        server.start().unwrap();
        let mut client = server.connect_to("test").unwrap();
        check_tables(&mut client, &written);
        check_branches(&mut client, &branches);
        compare(&server, &replica, &mut replayed, &["accounts", "journal"]);
        check_halves(&mut client, &server)?;
        compare(&server, &replica, &mut replayed, &["other"]);
        journaled += written.committed.len();
        println!(
            "round {round}: {} transfers and {} branches acknowledged, {} left prepared",
            written.committed.len(),
            branches.committed.len() + branches.rolled_back.len(),
            branches.prepared.len()
        );
    }
    assert!(journaled > 0, "nothing was written before the kills");
    server.stop().unwrap();
    Ok(())
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn tables_and_binary_log_agree_after_kills() {
    let seed = std::env::var("FRONDB_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("FRONDB_SEED={seed}");
    let wanted = std::env::var("FRONDB_KILL_HISTORIES").ok().and_then(|count| count.parse().ok());
    let mut random = Prng::new(seed);
    for _ in 0..wanted.unwrap_or(1) {
        one_good_history(&mut random);
    }
}

fn one_good_history(random: &mut Prng) {
    for _ in 0..HISTORIES {
        match history(random) {
            Ok(()) => return,
            Err(stale) => println!("another history: {stale}"),
        }
    }
    panic!("InnoDB misread its log in {HISTORIES} histories");
}
