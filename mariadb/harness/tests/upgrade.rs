//! Data of earlier versions: this plugin opens it, recovers what was only in the log, answers like
//! the version that wrote it, and can write to it. `tests/kept` has the data of each version in the
//! state in which a kill left it, with a prepared transaction. `examples/keep_data.rs` makes this
//! data.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use frondb_mariadb_harness::{Client, Options, Server, Value};

fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kept")
}

/// The versions whose data is in `tests/kept`.
fn versions() -> Vec<String> {
    let files = fs::read_dir(kept()).unwrap().map(|file| file.unwrap().path());
    let answers = files.filter(|path| path.extension() == Some(OsStr::new("txt")));
    answers.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

/// A server that has not been started, on the data of `version`.
fn server_on(version: &str) -> Server {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("upgrade").join(version);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    let options = Options::new().plugin_from_environment().set("frondb-memory=64M");
    let server = Server::create(&folder, options).unwrap();
    let packed = kept().join(format!("{version}.tar.gz"));
    let unpacked = Command::new("tar")
        .args(["--extract", "--gzip", "--no-same-owner", "--file"])
        .arg(packed)
        .arg("--directory")
        .arg(server.data())
        .status();
    assert!(unpacked.unwrap().success());
    server
}

fn connect(server: &Server) -> Client {
    let mut client = server.connect_to("kept").unwrap();
    client.run(["SET NAMES utf8mb4"]).unwrap();
    client
}

/// Runs every query in the file and compares the answers.
fn check_answers(client: &mut Client, version: &str) {
    let text = fs::read_to_string(kept().join(format!("{version}.txt"))).unwrap();
    let value =
        |value: &Value| value.as_ref().map_or("NULL".into(), |v| String::from_utf8_lossy(v).into());
    let rebuild = "kept.versioned\tcheck\terror\tTable rebuild required. Please do \"ALTER TABLE \
                   `versioned` FORCE\" or dump/reload to fix it!";
    let mut asked = 0;
    for entry in text.split_terminator("\n\n") {
        let (question, expected) = entry.split_once("\n----").unwrap();
        let rows = client.query(question).unwrap().rows;
        let lines =
            rows.iter().map(|row| row.iter().map(value).collect::<Vec<String>>().join("\t"));
        let found = lines.collect::<Vec<_>>().join("\n");
        // MariaDB 11.8 shows numbers of table options without quotes.
        let expected = expected.trim_start_matches('\n');
        let unquoted = expected.replace("='4'", "=4").replace("='4096'", "=4096");
        // Its history ends in 2106, so it asks for new rows of a table with history, with any engine.
        let found = found.replace(rebuild, "kept.versioned\tcheck\tstatus\tOK");
        assert!(found == expected || found == unquoted, "{version}: {question}: {found}");
        asked += 1;
    }
    assert!(asked > 15, "{asked} questions");
}

/// Writes that must work on the tables of every version.
fn write_on(client: &mut Client) {
    client
        .run([
            "XA COMMIT 'kept'",
            "ALTER TABLE versioned FORCE",
            "INSERT INTO plain (n, s) SELECT n, s FROM plain WHERE n BETWEEN 40 AND 44",
            "UPDATE packed_none SET b = concat(b, '!') WHERE a <= 100",
            "DELETE FROM packed_lz4 WHERE a % 2",
            "REPLACE INTO packed_zlib SELECT * FROM packed_none",
            "ALTER TABLE packed_lzma COMPRESSION='zstd', ADD KEY (a, b)",
            "UPDATE large SET b = 'short' WHERE id = 5",
            "INSERT INTO parts SELECT id + 1000, k FROM parts",
            "UPDATE computed SET a = a + 1",
            "ALTER TABLE altered ADD COLUMN again INT DEFAULT 1",
            "UPDATE versioned SET a = 11 WHERE id = 1",
        ])
        .unwrap();
}

fn check_written(client: &mut Client) {
    for (question, expected) in [
        ("SELECT cast(f AS INT) FROM plain WHERE id = 1", -1),
        ("SELECT count(*) FROM keyless WHERE a = 4711", 1),
        ("SELECT count(*) FROM plain", 2521),
        ("SELECT count(*) FROM packed_none WHERE b LIKE '%!'", 100),
        ("SELECT count(*) FROM packed_lz4", 450),
        ("SELECT sum(length(b)) FROM large", 1_000_005),
        ("SELECT count(*) FROM parts", 600),
        ("SELECT count(*) FROM computed FORCE INDEX (v) WHERE v = 22", 6),
        ("SELECT sum(again) FROM altered", 101),
        ("SELECT count(*) FROM versioned FOR SYSTEM_TIME ALL", 4),
    ] {
        assert_eq!(client.value(question).unwrap(), expected.to_string(), "{question}");
    }
    let tables = "plain, packed_none, packed_lz4, packed_zlib, packed_lzma, large, parts, keyless, \
                  computed, altered, versioned";
    for row in client.query(format!("CHECK TABLE {tables} EXTENDED")).unwrap().rows {
        assert_eq!(row[3].as_deref(), Some(&b"OK"[..]), "{row:?}");
    }
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn data_of_earlier_versions_is_served() {
    let versions = versions();
    assert!(!versions.is_empty());
    for version in versions {
        let mut server = server_on(&version);
        // Version 0.1.0 had the folder `#frondb`, which the server listed as a database. A start
        // renames it.
        let earlier = server.data().join("#frondb");
        // While a process has the database open, a start does not rename the folder.
        let lock = fs::File::create(earlier.join("LOCK")).unwrap();
        lock.lock().unwrap();
        server.start().unwrap();
        let log = server.log().unwrap();
        assert!(log.contains("another process has the database in #frondb open"), "{log}");
        server.stop().unwrap();
        drop(lock);
        server.start().unwrap();
        assert!(!earlier.exists() && server.data().join("#sql-frondb/SUPER").exists());
        check_answers(&mut connect(&server), &version);
        // A kill in the middle of an upgrade does no harm.
        server.kill().unwrap();
        server.start().unwrap();
        let mut client = connect(&server);
        check_answers(&mut client, &version);
        write_on(&mut client);
        check_written(&mut client);
        drop(client);
        server.restart().unwrap();
        let mut client = connect(&server);
        check_written(&mut client);
        client.run(["DROP DATABASE kept"]).unwrap();
    }
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn data_of_a_newer_series_of_the_server_is_refused() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("newer-series");
    let options = Options::new().plugin_from_environment().set("frondb=FORCE");
    let mut server = Server::start_fresh(&folder, options).unwrap();
    server.connect_to("test").unwrap().run(["CREATE TABLE t (a INT) ENGINE=FronDB"]).unwrap();
    server.stop().unwrap();
    let database = server.data().join("#sql-frondb");
    let used_by = |series: u64| {
        let db = frondb::Db::open(&database, frondb::Options::new()).unwrap();
        let counters = db.open_tree("mariadb/counters").unwrap();
        let used = counters.get("server").unwrap().unwrap();
        counters.put("server", series.to_le_bytes()).unwrap();
        db.close().unwrap();
        u64::from_le_bytes(used.try_into().unwrap())
    };
    let own = used_by(9907);
    server.start().unwrap_err();
    let log = server.log().unwrap();
    let shown = format!("{}.{}", own / 100, own % 100);
    let refusal = format!("MariaDB 99.7 has used the data, and this server is {shown}: ");
    assert!(log.contains(&refusal), "{log}");
    // Nothing has changed, so the newer server still finds its data. So does this one, after an
    // older one has used the data.
    assert_eq!(used_by(own - 1), 9907);
    server.start().unwrap();
    assert_eq!(server.connect_to("test").unwrap().number("SELECT count(*) FROM t").unwrap(), 0);
    server.stop().unwrap();
    assert_eq!(used_by(own), own);
}
