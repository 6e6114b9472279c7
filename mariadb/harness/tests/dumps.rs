//! mariadb-dump and mydumper while others write: the dump contains one state of FronDB's and
//! InnoDB's tables, and another server can load it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use frondb_mariadb_harness::{Client, Error, Options, Server};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("dumps").join(name)
}

fn start(name: &str) -> Server {
    let options = Options::new().plugin_from_environment().set_all([
        "server-id=1",
        "log-bin=binlog",
        "binlog-format=row",
        "frondb-memory=64M",
        "innodb-buffer-pool-size=16M",
    ]);
    Server::start_fresh(&folder(name), options).unwrap()
}

fn make_tables(client: &mut Client) {
    client
        .run([
            "CREATE TABLE ours (id INT PRIMARY KEY, t TEXT, KEY (t(20))) ENGINE=FronDB",
            "CREATE TABLE parts (id INT PRIMARY KEY) ENGINE=FronDB PARTITION BY HASH (id) PARTITIONS 3",
            "CREATE TABLE theirs (id INT PRIMARY KEY) ENGINE=InnoDB",
        ])
        .unwrap();
}

/// Writes transactions that use both engines until `stops` is set.
fn write(mut client: Client, writer: u64, stops: &AtomicBool) {
    for id in writer * 1_000_000.. {
        if stops.load(Ordering::Relaxed) {
            break;
        }
        let written = client.run([
            "BEGIN".to_owned(),
            format!("INSERT INTO ours VALUES ({id}, repeat('\u{e9}', {}))", id % 500),
            format!("INSERT INTO parts VALUES ({id})"),
            format!("INSERT INTO theirs VALUES ({id})"),
            "COMMIT".to_owned(),
        ]);
        match written {
            Ok(()) => {}
            // Roll back: the next BEGIN would commit what the failed transaction has written.
            Err(Error::Server { .. }) => client.run(["ROLLBACK"]).unwrap(),
            Err(error) => panic!("a writer: {error}"),
        }
    }
}

/// Stops the writers when dropped, also if `work` panics. Otherwise the test would never end.
struct Stopping<'a>(&'a AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` while two writers write, after these have written 200 rows.
fn under_load(server: &Server, work: impl FnOnce()) {
    let stops = AtomicBool::new(false);
    let mut client = server.connect_to("test").unwrap();
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (client, stops) = (server.connect_to("test").unwrap(), &stops);
            scope.spawn(move || write(client, writer, stops));
        }
        let stopping = Stopping(&stops);
        while client.number("SELECT count(*) FROM ours").unwrap() < 200 {}
        work();
        drop(stopping);
    });
}

fn run(command: &mut Command) {
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?}: {said}");
}

fn check(copy: &Server) {
    let mut client = copy.connect_to("test").unwrap();
    let mut ids =
        |table: &str| client.query(format!("SELECT id FROM {table} ORDER BY id")).unwrap().rows;
    let theirs = ids("theirs");
    assert!(theirs.len() >= 200);
    assert_eq!(ids("ours"), theirs);
    assert_eq!(ids("parts"), theirs);
    let engine = "SELECT count(*) FROM information_schema.tables WHERE engine = 'FronDB'";
    assert!(client.number(engine).unwrap() >= 1);
    let checked = client.query("CHECK TABLE ours, parts EXTENDED").unwrap().rows;
    assert!(checked.iter().all(|row| row[3].as_deref() == Some(b"OK")), "{checked:?}");
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn mariadb_dump_has_one_state_of_both_engines() {
    let server = start("dumped");
    make_tables(&mut server.connect_to("test").unwrap());
    let file = folder("dump.sql");
    under_load(&server, || {
        run(Command::new("mariadb-dump")
            .args(["--no-defaults", "--user=root", "--single-transaction", "--master-data=2"])
            .arg(format!("--socket={}", server.socket().display()))
            .args(["--databases", "test"])
            .arg(format!("--result-file={}", file.display())));
    });
    let copy = start("dump-copy");
    run(Command::new("mariadb")
        .args(["--no-defaults", "--user=root"])
        .arg(format!("--socket={}", copy.socket().display()))
        .stdin(File::open(&file).unwrap()));
    check(&copy);
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn a_dump_of_all_databases_of_a_server_that_installed_the_plugin_loads() {
    let fresh = |name: &str| {
        let plugin = std::env::var_os("FRONDB_PLUGIN").unwrap();
        let options = Options::new().plugin_in_folder(plugin).set("innodb-buffer-pool-size=16M");
        Server::start_fresh(&folder(name), options).unwrap()
    };
    let server = fresh("installed");
    let mut client = server.connect_to("test").unwrap();
    client.run(["INSTALL SONAME 'ha_frondb'"]).unwrap();
    make_tables(&mut client);
    client
        .run([
            "INSERT INTO theirs SELECT seq FROM seq_1_to_300",
            "INSERT INTO ours SELECT id, repeat('x', id) FROM theirs",
            "INSERT INTO parts SELECT id FROM theirs",
        ])
        .unwrap();
    let file = folder("all.sql");
    run(Command::new("mariadb-dump")
        .args(["--no-defaults", "--user=root", "--single-transaction", "--all-databases"])
        .arg(format!("--socket={}", server.socket().display()))
        .arg(format!("--result-file={}", file.display())));
    let copy = fresh("installed-copy");
    copy.connect().unwrap().run(["INSTALL SONAME 'ha_frondb'"]).unwrap();
    run(Command::new("mariadb")
        .args(["--no-defaults", "--user=root"])
        .arg(format!("--socket={}", copy.socket().display()))
        .stdin(File::open(&file).unwrap()));
    check(&copy);
}

#[test]
#[ignore = "needs a server and mydumper: make test-mariadb"]
fn mydumper_has_one_state_of_both_engines() {
    let server = start("mydumped");
    make_tables(&mut server.connect_to("test").unwrap());
    for (name, options) in [("locked", &[][..]), ("unlocked", &["--trx-consistency-only"][..])] {
        let to = folder(&format!("mydumper-{name}"));
        if to.exists() {
            fs::remove_dir_all(&to).unwrap();
        }
        under_load(&server, || {
            run(Command::new("mydumper")
                .args(["--user=root", "--database=test", "--threads=3"])
                .args(options)
                .arg(format!("--socket={}", server.socket().display()))
                .arg(format!("--outputdir={}", to.display())));
        });
        let copy = start("mydumper-copy");
        copy.connect_to("test").unwrap();
        run(Command::new("myloader")
            .args(["--user=root", "--database=test", "--threads=3"])
            .arg(format!("--socket={}", copy.socket().display()))
            .arg(format!("--directory={}", to.display())));
        check(&copy);
        server
            .connect_to("test")
            .unwrap()
            .run(["TRUNCATE ours", "TRUNCATE parts", "TRUNCATE theirs"])
            .unwrap();
    }
}
