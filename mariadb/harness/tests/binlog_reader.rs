//! A reader of the binary log, as change data capture uses it. mariadb-binlog follows a server like
//! a replica, across kills of the server, and must have read exactly the rows of the tables.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "why a history ended")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use frondb_mariadb_harness::{Client, Error, Options, Server, StaleTail, free_port, stale_tail};

const KILLS: u64 = 4;
/// Most histories that may begin until one is complete: after a kill, InnoDB's recovery may take old
/// log for new log, and the server may then abort at a later commit.
const HISTORIES: u64 = 3;
/// Commits before each kill.
const COMMITS: u64 = 150;
/// Longest time for the reader to catch up.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A process of mariadb-binlog that writes what it reads to files. Dropping the reader kills the
/// process.
struct Reader(Child);

impl Reader {
    fn follow(port: u16, folder: &Path, from: &str) -> Self {
        let child = Command::new("mariadb-binlog")
            .args(["--no-defaults", "--read-from-remote-server", "--raw", "--stop-never"])
            .args(["--host=127.0.0.1", "--user=reader", "--stop-never-slave-server-id=77"])
            .arg(format!("--port={port}"))
            .arg(format!("--result-file={}/", folder.display()))
            .arg(from)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// The files that the reader has written, in their order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.collect();
    files.sort();
    files
}

/// The ids that the files insert into `table`, and the number of rows that they insert into it.
fn inserted(folder: &Path, table: &str) -> (BTreeSet<u64>, usize) {
    let done = Command::new("mariadb-binlog")
        .args(["--no-defaults", "--base64-output=decode-rows", "--verbose"])
        .args(files(folder))
        .output()
        .unwrap();
    // The reader may still be writing the last event, so ignore whether the program failed.
    let text = String::from_utf8_lossy(&done.stdout);
    let (mut ids, mut rows, mut is_ours) = (BTreeSet::new(), 0, false);
    for line in text.lines() {
        if let Some(into) = line.strip_prefix("### INSERT INTO ") {
            is_ours = into == format!("`test`.`{table}`");
        } else if let Some(id) = line.strip_prefix("###   @1=").filter(|_| is_ours) {
            ids.insert(id.trim().parse().unwrap());
            rows += 1;
        }
    }
    (ids, rows)
}

fn ids(client: &mut Client, table: &str) -> BTreeSet<u64> {
    let rows = client.query(format!("SELECT id FROM {table} ORDER BY id")).unwrap().rows;
    let id = |row: Vec<Option<Vec<u8>>>| String::from_utf8(row[0].clone().unwrap()).unwrap();
    rows.into_iter().map(|row| id(row).parse().unwrap()).collect()
}

/// Commits transactions until the server is gone.
fn write(mut client: Client, next: &AtomicU64, done: &AtomicU64) {
    loop {
        let id = next.fetch_add(1, Ordering::Relaxed);
        let written = client.run([
            "BEGIN".to_owned(),
            format!("INSERT INTO ours VALUES ({id}, {})", id % 10),
            format!("INSERT INTO theirs VALUES ({id})"),
            "COMMIT".to_owned(),
        ]);
        match written {
            Ok(()) => drop(done.fetch_add(1, Ordering::Relaxed)),
            Err(Error::Lost(_)) => return,
            Err(error) => panic!("a writer: {error}"),
        }
    }
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn a_reader_of_the_binary_log_has_the_rows_of_the_tables_across_kills() {
    for _ in 0..HISTORIES {
        match history() {
            Ok(()) => return,
            Err(stale) => println!("{stale}"),
        }
    }
    panic!("InnoDB has misread its log in {HISTORIES} histories");
}

/// Returns where InnoDB has misread its log, and panics if that does not explain a wrong state.
fn misread(server: &Server, what: &str) -> StaleTail {
    let stale = stale_tail(server).unwrap();
    stale.unwrap_or_else(|| panic!("{what}\n{}", server.log().unwrap()))
}

/// Kills one server several times. Returns an error if InnoDB's log has become unreliable.
fn history() -> Result<(), StaleTail> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("binlog-reader");
    let port = free_port().unwrap();
    let options = Options::new().plugin_from_environment().port(port).set_all([
        "server-id=1",
        "log-bin=binlog",
        "binlog-format=row",
        "sync-binlog=1",
        "frondb-memory=64M",
        "innodb-buffer-pool-size=16M",
    ]);
    let mut server = Server::start_fresh(&folder, options).unwrap();
    let mut client = server.connect_to("test").unwrap();
    client
        .run([
            "CREATE TABLE ours (id BIGINT PRIMARY KEY, n INT, KEY (n)) ENGINE=FronDB",
            "CREATE TABLE theirs (id BIGINT PRIMARY KEY) ENGINE=InnoDB",
            "CREATE USER reader@'%'",
            "GRANT REPLICATION SLAVE ON *.* TO reader@'%'",
        ])
        .unwrap();
    let read = folder.join("read");
    fs::create_dir_all(&read).unwrap();
    let next = AtomicU64::new(1);
    for _ in 0..KILLS {
        // The new reader reads the last file again from its beginning: mariadb-binlog copies whole
        // files, and cannot continue one.
        let from = files(&read).last().map_or_else(
            || "binlog.000001".to_owned(),
            |last| last.file_name().unwrap().to_string_lossy().into_owned(),
        );
        let reader = Reader::follow(port, &read, &from);
        let done = AtomicU64::new(0);
        let writers: Vec<_> = (0..3).map(|_| server.connect_to("test").unwrap()).collect();
        std::thread::scope(|scope| {
            let start = |client| scope.spawn(|| write(client, &next, &done));
            let writers: Vec<_> = writers.into_iter().map(start).collect();
            let is_gone = || writers.iter().all(|writer| writer.is_finished());
            while done.load(Ordering::Relaxed) < COMMITS && !is_gone() {
                std::thread::yield_now();
            }
            server.kill().unwrap();
        });
        drop(reader);
        if done.load(Ordering::Relaxed) < COMMITS {
            return Err(misread(&server, "the server has ended by itself"));
        }
        server.start().unwrap();
    }
    let from = files(&read).last().unwrap().file_name().unwrap().to_string_lossy().into_owned();
    let _reader = Reader::follow(port, &read, &from);
    let mut client = server.connect_to("test").unwrap();
    let (ours, theirs) = (ids(&mut client, "ours"), ids(&mut client, "theirs"));
    if ours != theirs {
        return Err(misread(&server, "half of a transaction"));
    }
    assert!(ours.len() as u64 >= KILLS * COMMITS);
    let begin = Instant::now();
    loop {
        let (found, rows) = inserted(&read, "ours");
        if found == ours {
            assert_eq!(rows, ours.len(), "a row was read twice");
            // The rows of both tables are in the same transactions, so the reader has the rows of
            // `theirs` now or very soon.
            if inserted(&read, "theirs").0 == theirs {
                return Ok(());
            }
        }
        let extra: Vec<_> = found.difference(&ours).collect();
        assert!(extra.is_empty(), "the log has what the table lacks: {extra:?}");
        assert!(begin.elapsed() < TIMEOUT, "{} of {} rows", found.len(), ours.len());
        std::thread::sleep(Duration::from_millis(100));
    }
}
