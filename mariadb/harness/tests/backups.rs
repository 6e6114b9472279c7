//! Backups by `SET frondb_backup_dir`, restored into other servers. A replica begins where the
//! backup ends, and either side is killed. FronDB's backup has the same state as InnoDB's tables in
//! a backup stage of the same session, and as the backup that mariadb-backup makes at the same
//! time. The server is killed while it makes a backup. VECTOR indexes, which the server keeps in
//! tables of FronDB without a definition, are whole in a backup and after a kill.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use frondb_mariadb_harness::{Client, Error, Options, Server, free_port};

/// Longest time for the replica to catch up, seconds.
const CATCH_UP: u64 = 100;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("backups").join(name)
}

/// Returns a path that does not exist.
fn fresh(name: &str) -> PathBuf {
    let path = folder(name);
    if path.exists() {
        fs::remove_dir_all(&path).unwrap();
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    path
}

fn options(id: u64) -> Options {
    Options::new().plugin_from_environment().set_all([
        format!("server-id={id}"),
        "log-bin=binlog".to_owned(),
        "log-slave-updates".to_owned(),
        "sync-binlog=1".to_owned(),
        "binlog-format=row".to_owned(),
        "frondb-memory=64M".to_owned(),
        "innodb-buffer-pool-size=16M".to_owned(),
    ])
}

fn make_tables(client: &mut Client) {
    client
        .run([
            "CREATE TABLE ours (id INT PRIMARY KEY, n INT, KEY (n)) ENGINE=FronDB",
            "CREATE TABLE parts (id INT PRIMARY KEY, b LONGBLOB) ENGINE=FronDB PARTITION BY HASH (id) PARTITIONS 3",
            "CREATE TABLE theirs (id INT PRIMARY KEY) ENGINE=InnoDB",
            "CREATE SEQUENCE s ENGINE=FronDB",
        ])
        .unwrap();
}

/// Writes transactions that use both engines until `stops` is set or the server is gone. Returns
/// the number of acknowledged transactions.
fn write(mut client: Client, writer: u64, stops: &AtomicBool) -> u64 {
    let mut done = 0;
    while !stops.load(Ordering::Relaxed) {
        let id = writer * 1_000_000 + done;
        let written = client.run([
            "BEGIN".to_owned(),
            format!("INSERT INTO ours VALUES ({id}, {})", id % 7),
            format!("INSERT INTO parts VALUES ({id}, repeat('x', {}))", 100 + id % 5 * 20_000),
            format!("INSERT INTO theirs VALUES ({id})"),
            "COMMIT".to_owned(),
        ]);
        match written {
            Ok(()) => done += 1,
            Err(Error::Lost(_)) => break,
            Err(error) => panic!("a writer: {error}"),
        }
    }
    done
}

/// Stops the writers when dropped, also if `work` panics. Otherwise the test would never end.
struct Stopping<'a>(&'a AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` while the writers `first` and `first` + 1 write; returns the result of `work`, and
/// the number of acknowledged transactions.
fn under_load<T>(server: &Server, first: u64, work: impl FnOnce() -> T) -> (T, u64) {
    let stops = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let start = |writer| {
            let (client, stops) = (server.connect_to("test").unwrap(), &stops);
            scope.spawn(move || write(client, first + writer, stops))
        };
        let writers: Vec<_> = (0..2).map(start).collect();
        let stopping = Stopping(&stops);
        let result = work();
        drop(stopping);
        let done = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
        (result, done)
    })
}

fn set_dir(client: &mut Client, to: &Path) -> frondb_mariadb_harness::Result {
    client.run([format!("SET frondb_backup_dir = '{}'", to.display())])
}

/// Restores FronDB's folder of a data directory from backups.
fn restore(backups: &[&Path], data: &Path) {
    let ours = data.join("#sql-frondb");
    if ours.exists() {
        fs::remove_dir_all(&ours).unwrap();
    }
    frondb::Db::restore(backups, &ours, &frondb::Options::new(), &mut |_, _| true).unwrap();
}

/// Copies the table definitions of a backup into a data directory.
fn copy_definitions(backup: &Path, data: &Path) {
    for database in fs::read_dir(backup.join("attached/definitions")).unwrap() {
        let database = database.unwrap();
        let to = data.join(database.file_name());
        fs::create_dir_all(&to).unwrap();
        for file in fs::read_dir(database.path()).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
    }
}

/// The value of line `name` in the replication position of a backup.
fn position(backup: &Path, name: &str) -> String {
    let text = fs::read_to_string(backup.join("attached/replication_position")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().to_owned()
}

fn ids(client: &mut Client, table: &str) -> Vec<Vec<Option<Vec<u8>>>> {
    client.query(format!("SELECT id FROM {table} ORDER BY id")).unwrap().rows
}

/// Starts a second server on a restored backup, which contains only FronDB's tables.
fn server_of(name: &str, backups: &[&Path], options: Options) -> Server {
    let path = fresh(name);
    let mut server = Server::create(&path, options).unwrap();
    restore(backups, &server.data());
    copy_definitions(backups[backups.len() - 1], &server.data());
    server.start().unwrap();
    server
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn a_restored_backup_becomes_a_replica_and_survives_kills_of_either_side() {
    let port = free_port().unwrap();
    let listening = || options(1).port(port);
    let mut primary = Server::start_fresh(&folder("primary"), listening()).unwrap();
    let mut here = primary.connect_to("test").unwrap();
    make_tables(&mut here);
    here.run(["CREATE USER replica@'%'", "GRANT REPLICATION SLAVE ON *.* TO replica@'%'"]).unwrap();
    let (full, more) = (fresh("full"), fresh("more"));
    let (_, done) = under_load(&primary, 0, || {
        set_dir(&mut here, &full).unwrap();
        here.run([format!("SET frondb_backup_since = '{}'", full.display())]).unwrap();
        while here.number("SELECT count(*) FROM ours").unwrap() < 100 {}
        set_dir(&mut here, &more).unwrap();
    });
    assert!(done > 0);

    let mut replica = server_of("replica", &[&full, &more], options(2));
    let mut there = replica.connect_to("test").unwrap();
    let gtid = position(&more, "gtid");
    there
        .run([
            // Tables of other engines are not in the backup; here they are created empty.
            "CREATE TABLE theirs (id INT PRIMARY KEY) ENGINE=InnoDB".to_owned(),
            "RESET MASTER".to_owned(),
            format!("SET GLOBAL gtid_slave_pos = '{gtid}'"),
            format!(
                "CHANGE MASTER TO master_host = '127.0.0.1', master_port = {port}, \
                 master_user = 'replica', master_connect_retry = 1, master_use_gtid = slave_pos"
            ),
            "SET GLOBAL slave_exec_mode = STRICT".to_owned(),
            "START SLAVE".to_owned(),
        ])
        .unwrap();
    // Either side is killed while the other works.
    under_load(&primary, 10, || {
        replica.kill().unwrap();
        replica.start().unwrap();
    });
    under_load(&primary, 20, || {});
    primary.kill().unwrap();
    primary.start().unwrap();
    let mut here = primary.connect_to("test").unwrap();
    under_load(&primary, 30, || {});
    let mut there = replica.connect_to("test").unwrap();
    // Replication already runs, unless the replica has given up connecting to the primary.
    there.query("START SLAVE").unwrap();
    let wanted = here.value("SELECT @@gtid_binlog_pos").unwrap();
    let caught_up = there.number(&format!("SELECT MASTER_GTID_WAIT('{wanted}', {CATCH_UP}) = 0"));
    let status = there.query("SHOW SLAVE STATUS").unwrap();
    assert_eq!(caught_up, Ok(1), "the replica stands still: {:?}", status.rows);
    for query in ["SELECT * FROM ours ORDER BY id", "SELECT id, md5(b) FROM parts ORDER BY id"] {
        assert_eq!(here.query(query).unwrap().rows, there.query(query).unwrap().rows, "{query}");
    }
    for client in [&mut here, &mut there] {
        let checked = client.query("CHECK TABLE ours, parts EXTENDED").unwrap().rows;
        assert!(checked.iter().all(|row| row[3].as_deref() == Some(b"OK")), "{checked:?}");
    }
    there.query("STOP SLAVE").unwrap();
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn a_backup_in_a_stage_of_the_session_has_the_commits_that_innodb_has() {
    let server = Server::start_fresh(&folder("staged-server"), options(1)).unwrap();
    let mut here = server.connect_to("test").unwrap();
    make_tables(&mut here);
    let mut reader = server.connect_to("test").unwrap();
    let mut states = Vec::new();
    under_load(&server, 0, || {
        for round in 0..10 {
            let to = fresh(&format!("staged-{round}"));
            here.run(["BACKUP STAGE START", "BACKUP STAGE BLOCK_COMMIT"]).unwrap();
            let theirs = ids(&mut reader, "theirs");
            set_dir(&mut here, &to).unwrap();
            here.run(["BACKUP STAGE END"]).unwrap();
            states.push((to, theirs));
        }
    });
    // A restored backup needs its own server, so check only the first, the last and some others.
    for (to, theirs) in states.iter().step_by(3) {
        let copy = server_of("staged-copy", &[to], options(3));
        let mut there = copy.connect_to("test").unwrap();
        assert_eq!(ids(&mut there, "ours"), *theirs, "{}", to.display());
        assert_eq!(ids(&mut there, "parts"), *theirs, "{}", to.display());
    }
    assert!(states[0].1.len() < states[9].1.len());
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn a_server_killed_during_a_backup_goes_on_and_the_half_backup_says_so() {
    let crashing = options(1).environment("FRONDB_CRASH_AT", "backup");
    let mut server = Server::start_fresh(&folder("killed-server"), crashing).unwrap();
    let mut here = server.connect_to("test").unwrap();
    make_tables(&mut here);
    let to = fresh("killed");
    let (_, done) = under_load(&server, 0, || {
        while here.number("SELECT count(*) FROM ours").unwrap() < 50 {}
        assert!(matches!(set_dir(&mut here, &to), Err(Error::Lost(_))));
    });
    server.wait_for_end().unwrap();
    assert!(to.join("BACKUP.unfinished").exists() && !to.join("BACKUP").exists());
    let refused =
        frondb::Db::restore(&[&to], fresh("of-killed"), &frondb::Options::new(), &mut |_, _| true);
    assert_eq!(refused.unwrap_err().kind(), frondb::ErrorKind::NotFound);

    server.restart_with(options(1)).unwrap();
    let mut here = server.connect_to("test").unwrap();
    assert!(here.number("SELECT count(*) FROM ours").unwrap() >= done);
    assert_eq!(ids(&mut here, "ours"), ids(&mut here, "theirs"));
    let error = set_dir(&mut here, &to).unwrap_err();
    assert!(error.to_string().contains("is not empty"), "{error}");
    let to = fresh("after-kill");
    set_dir(&mut here, &to).unwrap();
    let copy = server_of("killed-copy", &[&to], options(3));
    assert_eq!(ids(&mut copy.connect_to("test").unwrap(), "ours"), ids(&mut here, "ours"));
}

#[test]
#[ignore = "needs a server and mariadb-backup: make test-mariadb"]
fn beside_mariadb_backup_both_have_one_state() {
    let server = Server::start_fresh(&folder("beside-server"), options(1)).unwrap();
    let mut here = server.connect_to("test").unwrap();
    make_tables(&mut here);
    here.run(["SET frondb_backup_wait_for_stage = ON"]).unwrap();
    let (ours, theirs) = (fresh("beside-frondb"), fresh("beside-mariadb"));
    let backup = |arguments: &[String]| {
        let program = std::env::var_os("MARIADB_BACKUP").unwrap_or_else(|| "mariadb-backup".into());
        let done = Command::new(&program)
            .arg("--no-defaults")
            .args(arguments)
            .arg(format!("--target-dir={}", theirs.display()))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{said}");
    };
    let mut waits = server.connect().unwrap();
    let (_, done) = under_load(&server, 0, || {
        here.send(format!("SET frondb_backup_dir = '{}'", ours.display())).unwrap();
        let waiting = "SELECT count(*) FROM information_schema.processlist \
                       WHERE state = 'Waiting for BACKUP STAGE of another session'";
        while waits.number(waiting).unwrap() == 0 {}
        let socket = format!("--socket={}", server.socket().display());
        let data = format!("--datadir={}", server.data().display());
        backup(&["--backup".to_owned(), "--user=root".to_owned(), socket, data]);
        here.receive().unwrap();
    });
    assert!(done > 0);
    backup(&["--prepare".to_owned()]);

    // The directory that mariadb-backup has prepared is a data directory with FronDB's definitions.
    let path = fresh("beside-copy");
    fs::create_dir_all(&path).unwrap();
    let copied = Command::new("cp").arg("-r").arg(&theirs).arg(path.join("data")).status();
    assert!(copied.unwrap().success());
    let mut copy = Server::create(&path, options(3)).unwrap();
    restore(&[&ours], &copy.data());
    copy.start().unwrap();
    let mut there = copy.connect_to("test").unwrap();
    let rows = ids(&mut there, "theirs");
    assert!(!rows.is_empty());
    assert_eq!(ids(&mut there, "ours"), rows);
    assert_eq!(ids(&mut there, "parts"), rows);
    let checked = there.query("CHECK TABLE ours, parts EXTENDED").unwrap().rows;
    assert!(checked.iter().all(|row| row[3].as_deref() == Some(b"OK")), "{checked:?}");
    there.query("SELECT nextval(s)").unwrap();
}

/// The vector of a row, so that no other row has it.
fn vector(id: u64) -> String {
    format!("VEC_FromText('[{},{},{}]')", id / 1_000_000 * 50, id % 1_000_000, id % 7)
}

/// Inserts rows with vectors until the server is gone. Returns the ids of acknowledged rows.
fn write_vectors(mut client: Client, writer: u64) -> Vec<u64> {
    let mut done = Vec::new();
    for id in writer * 1_000_000.. {
        match client.query(format!("INSERT INTO vectors VALUES ({id}, {})", vector(id))) {
            Ok(_) => done.push(id),
            Err(Error::Lost(_)) => break,
            Err(error) => assert!(matches!(error.code(), Some(1205 | 1213)), "a writer: {error}"),
        }
    }
    done
}

/// Searches for every fifth row by the VECTOR index, which must find it.
fn check_vectors(client: &mut Client) {
    let checked = client.query("CHECK TABLE vectors EXTENDED").unwrap().rows;
    assert!(checked.iter().all(|row| row[3].as_deref() == Some(b"OK")), "{checked:?}");
    // The search is approximate: with this setting it visits all rows of a small table.
    client.run(["SET mhnsw_ef_search = 10000"]).unwrap();
    let ids = ids(client, "vectors");
    let ids = ids.iter().map(|row| String::from_utf8(row[0].clone().unwrap()).unwrap());
    for id in ids.step_by(5) {
        let to = vector(id.parse().unwrap());
        let nearest =
            format!("SELECT id FROM vectors ORDER BY VEC_DISTANCE_EUCLIDEAN(v, {to}) LIMIT 1");
        let plan = client.query(format!("EXPLAIN {nearest}")).unwrap().rows;
        assert_eq!(plan[0][5].as_deref(), Some(&b"v"[..]), "{plan:?}");
        assert_eq!(client.value(&nearest).unwrap(), id);
    }
}

#[test]
#[ignore = "needs a server of MariaDB 11.7 or newer: make test-mariadb SERVER=11.8"]
fn vector_indexes_are_whole_in_a_backup_and_after_a_kill() {
    let mut server = Server::start_fresh(&folder("vector-server"), options(1)).unwrap();
    let mut here = server.connect_to("test").unwrap();
    let table =
        "CREATE TABLE vectors (id INT PRIMARY KEY, v VECTOR(3) NOT NULL, VECTOR INDEX v (v))";
    here.run([format!("{table} ENGINE=FronDB")]).unwrap();
    let to = fresh("vectors");
    let pid = server.pid().unwrap().to_string();
    let done: Vec<u64> = std::thread::scope(|scope| {
        let start = |writer| {
            let client = server.connect_to("test").unwrap();
            scope.spawn(move || write_vectors(client, writer))
        };
        let writers: Vec<_> = (0..2).map(start).collect();
        while here.number("SELECT count(*) FROM vectors").unwrap() < 100 {}
        let backed_up = set_dir(&mut here, &to);
        while here.number("SELECT count(*) FROM vectors").unwrap() < 200 {}
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
        backed_up.unwrap();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    server.kill().unwrap();
    server.start().unwrap();
    let mut here = server.connect_to("test").unwrap();
    for id in done {
        let found = here.number(&format!("SELECT count(*) FROM vectors WHERE id = {id}")).unwrap();
        assert_eq!(found, 1, "row {id} was acknowledged and is lost");
    }
    check_vectors(&mut here);
    let copy = server_of("vector-copy", &[&to], options(3));
    let mut there = copy.connect_to("test").unwrap();
    assert!(there.number("SELECT count(*) FROM vectors").unwrap() >= 100);
    check_vectors(&mut there);
}

/// Runs the script of mariadb/docs/backups.md that makes both backups, with programs that only
/// succeed or fail. The script must fail if either of them fails.
#[test]
#[ignore = "runs with the tests that need a server: make test-mariadb"]
fn the_script_for_both_backups_fails_if_either_half_fails() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/backups.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once("## One state with other engines").expect("no section");
    let script = rest.split("```").nth(1).expect("no script").trim_start_matches("sh").to_owned();
    let bin = fresh("script-bin");
    fs::create_dir_all(&bin).unwrap();
    let program = |name: &str, text: String| {
        let path = bin.join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    for (ours, theirs) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
        // FronDB's half waits for a file that the other half creates.
        let moment = bin.join("moment");
        let _ = fs::remove_file(&moment);
        let waits = format!("until [ -e {} ]; do sleep 0.01; done; exit {ours}", moment.display());
        let shows = "echo 'Waiting for BACKUP STAGE of another session'";
        let asks = format!("case \"$*\" in *PROCESSLIST*) {shows};; *) {waits};; esac");
        program("mariadb", asks);
        program("mariadb-backup", format!("touch {}; exit {theirs}", moment.display()));
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let done = Command::new("sh").args(["-c", &script]).env("PATH", path).output().unwrap();
        assert_eq!(done.status.success(), ours + theirs == 0, "{ours} {theirs}: {done:?}");
    }
}
