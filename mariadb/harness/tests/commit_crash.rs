//! Kills a server at each step of a commit. After a restart, either the tables of both engines and
//! the binary log have the transaction, or none of them has it.
//!
//! ```text
//!   bulk statement: ...   |  the binary log does not have it: it is rolled back
//!   commit: not prepared  |
//!   commit: prepared      |
//!   commit: not ordered   |  the binary log has it: it is committed, though no client was told
//!   commit: ordered       |
//!   commit: done          |
//! ```
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use frondb_mariadb_harness::{Client, Options, Server};

/// The crash points, each with whether the binary log then has the transaction.
const PLACES: [(&str, bool); 5] = [
    ("commit: not prepared", false),
    ("commit: prepared", false),
    ("commit: not ordered", true),
    ("commit: ordered", true),
    ("commit: done", true),
];

fn options() -> Options {
    Options::new().plugin_from_environment().set_all([
        "frondb-memory=64M",
        "innodb-buffer-pool-size=16M",
        "server-id=1",
        "log-bin=binlog",
        "binlog-format=statement",
        "sync-binlog=1",
    ])
}

fn start(name: &str) -> Server {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let server = Server::start_fresh(&folder, options()).unwrap();
    let tables = [
        "CREATE TABLE t (id INT PRIMARY KEY, v INT, KEY (v)) ENGINE=FronDB",
        "CREATE TABLE other (id INT PRIMARY KEY) ENGINE=InnoDB",
        "INSERT INTO t VALUES (1000, 1000)",
    ];
    server.connect_to("test").unwrap().run(tables).unwrap();
    server
}

fn texts(client: &mut Client, query: &str, column: usize) -> Vec<String> {
    let rows = client.query(query).unwrap().rows;
    let text = |row: &Vec<Option<Vec<u8>>>| row[column].clone().unwrap_or_default();
    rows.iter().map(|row| String::from_utf8_lossy(&text(row)).into_owned()).collect()
}

fn is_logged(client: &mut Client, statement: &str) -> bool {
    let logs = texts(client, "SHOW BINARY LOGS", 0);
    logs.iter().any(|log| {
        let events = texts(client, &format!("SHOW BINLOG EVENTS IN '{log}'"), 5);
        events.iter().any(|event| event.contains(statement))
    })
}

/// Whether a row exists. Fails if the two indexes disagree.
fn has(client: &mut Client, id: usize) -> bool {
    let counts = ["PRIMARY", "v"].map(|index| {
        client
            .number(&format!(
                "SELECT count(*) FROM t FORCE INDEX ({index}) WHERE v = {id} AND id = {id}"
            ))
            .unwrap()
    });
    assert_eq!(counts[0], counts[1], "the indexes of row {id}");
    counts[0] == 1
}

/// Runs statements, the last of which kills the server at `place`; then starts the server again.
fn die(server: &mut Server, place: &str, statements: &[String]) -> Client {
    server.stop().unwrap();
    server.restart_with(options().environment("FRONDB_CRASH_AT", place)).unwrap();
    let mut client = server.connect_to("test").unwrap();
    assert!(client.run(statements).is_err(), "{place}: the server did not die");
    server.wait_for_end().unwrap();
    server.restart_with(options()).unwrap();
    server.connect_to("test").unwrap()
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn a_crash_in_a_commit_leaves_the_whole_transaction_or_none() {
    let mut server = start("commit-crash");
    for (id, (place, is_committed)) in PLACES.into_iter().enumerate() {
        let insert = format!("INSERT INTO t VALUES ({id}, {id})");
        let statements = [
            "BEGIN".to_owned(),
            insert.clone(),
            format!("INSERT INTO other VALUES ({id})"),
            "COMMIT".to_owned(),
        ];
        let mut client = die(&mut server, place, &statements);
        assert_eq!(is_logged(&mut client, &insert), is_committed, "{place}: the binary log");
        assert_eq!(has(&mut client, id), is_committed, "{place}: the table");
        let others = client.number(&format!("SELECT count(*) FROM other WHERE id = {id}")).unwrap();
        assert_eq!(others == 1, is_committed, "{place}: the other engine's table");
        assert!(texts(&mut client, "XA RECOVER", 3).is_empty(), "{place}: something is undecided");
        // The transaction must not have left a lock.
        client.query(format!("REPLACE INTO t VALUES ({id}, {id})")).unwrap();
    }
    server.stop().unwrap();
}

/// The rows of a bulk statement are in the transaction's private runs. So after the crash all of
/// them exist or none, depending on whether the binary log has the transaction.
#[test]
#[ignore = "needs a server: make test-mariadb"]
fn a_crash_keeps_all_rows_of_a_bulk_statement_or_none() {
    const ROWS: u64 = 3000;
    let mut server = start("bulk-statement-crash");
    let table = "CREATE TABLE b (id INT PRIMARY KEY, v INT, UNIQUE KEY (v)) ENGINE=FronDB";
    server.connect_to("test").unwrap().run([table]).unwrap();
    let places = [("bulk statement: finished", false)].into_iter().chain(PLACES);
    for (id, (place, is_committed)) in places.enumerate() {
        let insert = format!("INSERT INTO b SELECT seq, seq + {id} FROM seq_1_to_{ROWS}");
        let statements = [
            "BEGIN".to_owned(),
            format!("INSERT INTO t VALUES ({id}, {id})"),
            insert.clone(),
            format!("UPDATE b SET v = v + {ROWS} WHERE id = 7"),
            "COMMIT".to_owned(),
        ];
        let mut client = die(&mut server, place, &statements);
        assert_eq!(is_logged(&mut client, &insert), is_committed, "{place}: the binary log");
        assert_eq!(has(&mut client, id), is_committed, "{place}: the other table");
        for index in ["PRIMARY", "v"] {
            let count =
                format!("SELECT count(*) FROM b FORCE INDEX ({index}) WHERE id > 0 AND v > 0");
            let expected = if is_committed { ROWS } else { 0 };
            assert_eq!(client.number(&count).unwrap(), expected, "{place}: {index}");
        }
        assert!(texts(&mut client, "XA RECOVER", 3).is_empty(), "{place}: something is undecided");
        client.run(["CHECK TABLE b EXTENDED", "TRUNCATE b"]).unwrap();
    }
    server.stop().unwrap();
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn a_crash_in_an_xa_transaction_keeps_prepared_transactions() {
    let mut server = start("xa-crash");
    for (id, (place, _)) in PLACES.into_iter().enumerate() {
        let statements = [
            "SET sql_log_bin = 0".to_owned(),
            format!("XA START '{id}'"),
            format!("INSERT INTO t VALUES ({id}, {id})"),
            format!("XA END '{id}'"),
            format!("XA PREPARE '{id}'"),
            format!("XA COMMIT '{id}'"),
        ];
        let mut client = die(&mut server, place, &statements);
        let is_prepared = texts(&mut client, "XA RECOVER", 3) == [id.to_string()];
        let is_there = has(&mut client, id);
        match place {
            "commit: not prepared" => assert!(!is_prepared && !is_there, "{place}: it is there"),
            "commit: prepared" | "commit: not ordered" => {
                assert!(is_prepared && !is_there, "{place}: it is not prepared");
            }
            // The commit waits for the disk after this point, so either outcome is correct.
            "commit: ordered" => {
                assert_ne!(is_prepared, is_there, "{place}: it is lost, or twice there")
            }
            _ => assert!(!is_prepared && is_there, "{place}: it is lost"),
        }
        if is_prepared {
            client.query("SET sql_log_bin = 0").unwrap();
            client.query(format!("XA COMMIT '{id}'")).unwrap();
            assert!(has(&mut client, id), "{place}: committed afterwards and not there");
        }
    }
    server.stop().unwrap();
}
