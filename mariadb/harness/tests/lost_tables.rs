//! Starts a server on a data directory without FronDB's files, as mariadb-backup restores it. The
//! server's log lists the tables that have lost their rows, and each statement that uses such a
//! table gives the reason.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use frondb_mariadb_harness::{Client, Options, Server};

const ER_NO_SUCH_TABLE_IN_ENGINE: u16 = 1932;
const WARNING: &str = "FronDB: tables with a definition but without data: ";
/// Longest time of the search for tables without rows.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The name of the search's thread in `/proc`.
const THREAD: &str = "frondb-lost";

/// Waits until the server's search has ended; returns the server's log without its first `before`
/// bytes. The search begins before the server answers.
fn log_of_search(server: &Server, before: usize) -> String {
    let tasks = format!("/proc/{}/task", server.pid().unwrap());
    let is_search = |task: fs::DirEntry| {
        fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == THREAD)
    };
    let begin = Instant::now();
    while fs::read_dir(&tasks).unwrap().flatten().any(is_search) {
        assert!(begin.elapsed() < TIMEOUT, "the search does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
    server.log().unwrap().split_off(before)
}

fn warnings(client: &mut Client) -> String {
    let rows = client.query("SHOW WARNINGS").unwrap().rows;
    let texts = rows.into_iter().map(|row| String::from_utf8(row[2].clone().unwrap()).unwrap());
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn tables_without_rows_are_named_at_the_start() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lost-tables");
    let options = Options::new().plugin_from_environment();
    let mut server = Server::start_fresh(&folder, options).unwrap();
    let mut client = server.connect_to("test").unwrap();
    client
        .run([
            "CREATE TABLE plain (a INT PRIMARY KEY) ENGINE=FronDB",
            "CREATE TABLE `with spaces` (a INT, b TEXT, KEY (a)) ENGINE=FronDB COMMENT 'long'",
            "CREATE TABLE parts (a INT PRIMARY KEY) ENGINE=FronDB PARTITION BY HASH (a) PARTITIONS 3",
            "CREATE SEQUENCE s ENGINE=FronDB",
            "CREATE VIEW v AS SELECT * FROM plain",
            "CREATE TABLE theirs (a INT PRIMARY KEY, f VARCHAR(30) DEFAULT 'FronDB') ENGINE=InnoDB COMMENT 'FronDB'",
            "CREATE TABLE theirs_in_parts (a INT PRIMARY KEY) ENGINE=InnoDB PARTITION BY HASH (a)",
            "CREATE TABLE aria (a INT) ENGINE=Aria",
            "INSERT INTO plain VALUES (1)",
        ])
        .unwrap();
    let before = server.log().unwrap().len();
    server.restart().unwrap();
    let log = log_of_search(&server, before);
    assert!(!log.contains(WARNING), "{log}");
    server.stop().unwrap();

    let data = server.data();
    fs::rename(data.join("#sql-frondb"), data.join("#elsewhere")).unwrap();
    // A copied file keeps the file time of a machine whose clock was ahead.
    let copied = fs::File::options().append(true).open(data.join("test/plain.frm")).unwrap();
    copied.set_modified(SystemTime::now() + Duration::from_secs(100_000)).unwrap();
    let before = server.log().unwrap().len();
    server.start().unwrap();
    let log = log_of_search(&server, before);
    let line = log.lines().find(|line| line.contains(WARNING)).unwrap();
    let names =
        "`test`.`parts`, `test`.`plain`, `test`.`s`, `test`.`with spaces`; mariadb-backup does";
    assert!(line.contains(names), "{line}");
    assert!(line.contains("#sql-frondb") && line.contains("DROP TABLE"), "{line}");
    assert_eq!(log.matches(WARNING).count(), 1, "{log}");

    let mut client = server.connect_to("test").unwrap();
    for table in ["plain", "parts", "`with spaces`"] {
        let error = client.query(format!("SELECT * FROM {table}")).unwrap_err();
        assert_eq!(error.code(), Some(ER_NO_SUCH_TABLE_IN_ENGINE), "{table}: {error}");
        let said = warnings(&mut client);
        assert!(said.contains("mariadb-backup does not copy FronDB's files"), "{table}: {said}");
    }
    client
        .run(["SELECT * FROM theirs", "DROP TABLE plain, parts, `with spaces`", "DROP SEQUENCE s"])
        .unwrap();
    client.run(["CREATE TABLE plain (a INT PRIMARY KEY) ENGINE=FronDB"]).unwrap();
    let before = server.log().unwrap().len();
    server.restart().unwrap();
    let log = log_of_search(&server, before);
    assert!(!log.contains(WARNING), "{log}");
    server.stop().unwrap();
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn of_many_tables_some_are_named_and_the_rest_counted() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lost-tables-many");
    let options = Options::new().plugin_from_environment();
    let mut server = Server::start_fresh(&folder, options).unwrap();
    let mut client = server.connect_to("test").unwrap();
    let table = |i: u32| format!("CREATE TABLE t{i:02} (a INT) ENGINE=FronDB");
    client.run((0..25).map(table)).unwrap();
    server.stop().unwrap();
    fs::remove_dir_all(server.data().join("#sql-frondb")).unwrap();
    let before = server.log().unwrap().len();
    server.start().unwrap();
    let log = log_of_search(&server, before);
    assert!(log.contains("`test`.`t08`, `test`.`t09` and 15 more; mariadb-backup"), "{log}");
    server.stop().unwrap();
}
