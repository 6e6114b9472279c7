//! A replica applies transactions in parallel and commits them in the primary's order. The
//! transactions use few rows. So a later transaction often holds a lock that an earlier one needs,
//! while the later one waits for the earlier one's commit. Only an engine that reports such waits
//! to the server makes progress: lock waits have no timeout here, so another engine would hang. A
//! replica that does not read the rows before it changes them finds conflicts only by the locks of
//! its writes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the seed")]

use std::path::Path;

use frondb_core::prng::Prng;
use frondb_mariadb_harness::{Client, Options, Server, free_port};

const WRITERS: u64 = 6;
const TRANSACTIONS: u64 = 150;
const ROWS: u64 = 8;
/// Longest time for the replica to catch up, seconds.
const CATCH_UP: u64 = 100;

/// What the replica reads before it writes. This also determines the format of the binary log.
#[derive(Clone, Copy, PartialEq)]
enum Reads {
    /// Rows and unique keys are read; the binary log has statements where they are safe.
    All,
    /// Nothing is read: each change is a row event with full images.
    None,
}

fn start(name: &str, options: Options, id: u64, reads: Reads) -> Server {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let options = options.plugin_from_environment().set_all([
        format!("server-id={id}"),
        "log-bin=binlog".to_owned(),
        "log-slave-updates".to_owned(),
        format!("binlog-format={}", if reads == Reads::None { "ROW" } else { "MIXED" }),
        "frondb-memory=64M".to_owned(),
        "frondb-lock-wait-timeout=100000".to_owned(),
        "innodb-buffer-pool-size=16M".to_owned(),
    ]);
    Server::start_fresh(&folder, options).unwrap()
}

/// Runs short transactions with group commit, which update the same few rows, the lower id first.
fn write(mut client: Client, mut random: Prng, writer: u64) {
    let mut done = 0;
    while done < TRANSACTIONS {
        let mut rows = [random.below(ROWS), random.below(ROWS)];
        rows.sort_unstable();
        let id = writer * 1_000_000 + done;
        let commit = client.run([
            "BEGIN".to_owned(),
            format!("UPDATE hot SET n = n + 1 WHERE id = {}", rows[0]),
            format!("UPDATE hot SET n = n + 1 WHERE id = {}", rows[1]),
            format!("INSERT INTO cold VALUES ({id}, {})", rows[0]),
            format!("DELETE FROM cold WHERE k = {} LIMIT 1", rows[1]),
            "COMMIT".to_owned(),
        ]);
        match commit {
            Ok(()) => done += 1,
            // Deadlocks between the writers are expected.
            Err(error) if error.code() == Some(1213) => {}
            Err(error) => panic!("a writer: {error}"),
        }
    }
}

fn replicate(mode: &str, reads: Reads, seed: u64) {
    let port = free_port().unwrap();
    let primary = start(&format!("primary-{mode}"), Options::new().port(port), 1, reads);
    let replica = start(&format!("replica-{mode}"), Options::new(), 2, reads);
    let mut there = replica.connect().unwrap();
    let mut here = primary.connect_to("test").unwrap();
    there
        .run([
            format!("SET GLOBAL slave_parallel_mode = {mode}"),
            "SET GLOBAL slave_parallel_threads = 8".to_owned(),
            "SET GLOBAL slave_transaction_retries = 1000".to_owned(),
            format!(
                "CHANGE MASTER TO master_host = '127.0.0.1', master_port = {port}, \
                 master_user = 'replica', master_use_gtid = slave_pos"
            ),
        ])
        .unwrap();
    if reads == Reads::None {
        let off = "SET GLOBAL read_only = 1, GLOBAL frondb_rpl_lookup_rows = 0, \
                   GLOBAL frondb_rpl_unique_checks = 0";
        there.run([off.to_owned()]).unwrap();
    }
    here.run([
        "CREATE TABLE hot (id INT PRIMARY KEY, n INT, KEY (n)) ENGINE=FronDB",
        "CREATE TABLE cold (id BIGINT PRIMARY KEY, k INT, KEY (k)) ENGINE=FronDB",
        "INSERT INTO hot SELECT seq, 0 FROM seq_0_to_7",
        "CREATE USER replica@'%'",
        "GRANT REPLICATION SLAVE ON *.* TO replica@'%'",
    ])
    .unwrap();
    let mut random = Prng::new(seed);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (client, random) =
                (primary.connect_to("test").unwrap(), Prng::new(random.next_u64()));
            scope.spawn(move || write(client, random, writer));
        }
    });
    // The whole binary log exists before the replica starts, so the replica's threads can apply
    // many transactions ahead of the oldest uncommitted one.
    there.query("START SLAVE").unwrap();
    let position = here.value("SELECT @@gtid_binlog_pos").unwrap();
    let caught_up = there.number(&format!("SELECT MASTER_GTID_WAIT('{position}', {CATCH_UP}) = 0"));
    let error = there.query("SHOW SLAVE STATUS").unwrap();
    assert_eq!(caught_up, Ok(1), "{mode}: the replica stands still: {:?}", error.rows);
    there.query("USE test").unwrap();
    for table in ["hot", "cold"] {
        let query = format!("SELECT * FROM {table} ORDER BY id");
        assert_eq!(here.query(&query).unwrap().rows, there.query(&query).unwrap().rows);
        let checked = there.query(format!("CHECK TABLE {table} EXTENDED")).unwrap().rows;
        assert_eq!(checked[0][3].as_deref(), Some(&b"OK"[..]), "{mode}: {table}: {checked:?}");
    }
    let skipped = there.number("SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'frondb_rpl_lookups_skipped'").unwrap();
    assert_eq!(skipped > 0, reads == Reads::None, "{mode}: {skipped} lookups were skipped");
    let retried = there.value("SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'slave_retried_transactions'").unwrap();
    println!("{mode}: {retried} transactions were tried again");
    there.query("STOP SLAVE").unwrap();
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn a_parallel_replica_catches_up() {
    let seed = std::env::var("FRONDB_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("FRONDB_SEED={seed}");
    for mode in ["conservative", "optimistic", "aggressive"] {
        for reads in [Reads::All, Reads::None] {
            replicate(mode, reads, seed);
        }
    }
}
