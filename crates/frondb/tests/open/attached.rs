//! Requests to the process that has a database open, here from the same process: what it answers,
//! and that no client can harm it.

use std::io::{Read, Write};
use std::path::Path;

use frondb::{BackupOptions, Db, ErrorKind, Options, TreeOptions};
use frondb_core::prng::Prng;
use frondb_device::{Connection, PosixDevice};
use frondb_testkit::TempDir;

fn open(dir: &Path, options: Options) -> Db {
    Db::open(dir, options.memory_bytes(16 << 20)).unwrap()
}

fn attachable(dir: &Path) -> Db {
    open(dir, Options::new().attachable(true))
}

fn connect(dir: &Path) -> Connection {
    PosixDevice::open(dir).unwrap().connect("SOCKET").unwrap()
}

/// Sends `bytes` and nothing more; returns the answer.
fn answer(dir: &Path, bytes: &[u8]) -> Vec<u8> {
    let connection = connect(dir);
    let mut answer = Vec::new();
    // The other side may close the connection before it has read the whole request, which can look
    // like a reset.
    let _ = (&connection).write_all(bytes);
    let _ = (&connection).read_to_end(&mut answer);
    answer
}

#[test]
fn the_owner_answers_until_it_closes() {
    let temp = TempDir::new("attached");
    let (dir, copy) = (temp.path().join("db"), temp.path().join("copy"));
    let db = attachable(&dir);
    db.create_tree("t", TreeOptions::new()).unwrap().put("k", "v").unwrap();
    let attached = Db::attach(&dir).unwrap();
    let stats = attached.stats().unwrap();
    assert!(stats.database.contains(&("commits".to_owned(), 1)) && stats.page.contains("commits"));
    assert_eq!(stats.trees.iter().map(|tree| tree.name.as_str()).collect::<Vec<_>>(), ["t"]);
    assert!(!stats.trees[0].stats.is_empty());
    assert!(attached.prometheus().unwrap().contains("frondb_commits_total 1"));
    let options = BackupOptions::new();
    let report = attached.backup(&copy, &options, &mut |_, _| true).unwrap();
    assert!(report.bytes > 0 && !report.is_incremental);
    assert!(Db::verify_backup(&copy, &mut |_, _| true).unwrap().faults.is_empty());
    let refused = attached.backup(&copy, &options, &mut |_, _| true).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Exists);
    db.close().unwrap();
    assert_eq!(attached.stats().unwrap_err().kind(), ErrorKind::NotFound);
    assert!(!dir.join("SOCKET").exists());
}

#[test]
fn each_database_answers_for_itself() {
    let temp = TempDir::new("attached-two");
    // The paths are longer than the address of a socket may be.
    let dirs = ["a", "b"].map(|name| temp.path().join("d".repeat(120)).join(name));
    let dbs = dirs.each_ref().map(|dir| {
        std::fs::create_dir_all(dir).unwrap();
        let db = attachable(dir);
        db.create_tree(dir.file_name().unwrap().to_str().unwrap(), TreeOptions::new()).unwrap();
        db
    });
    let trees = |dir: &Path| Db::attach(dir).unwrap().stats().unwrap().trees.remove(0).name;
    assert_eq!(dirs.each_ref().map(|dir| trees(dir)), ["a", "b"]);
    dbs[0].close().unwrap();
    assert_eq!(trees(&dirs[1]), "b");
}

#[test]
fn a_database_is_attachable_only_with_the_option() {
    let temp = TempDir::new("not-attached");
    let refused = |dir: &Path| Db::attach(dir).unwrap_err().kind();
    assert_eq!(refused(&temp.path().join("missing")), ErrorKind::NotFound);
    let db = open(temp.path(), Options::new());
    assert_eq!(refused(temp.path()), ErrorKind::NotFound);
    db.close().unwrap();
    let db = open(temp.path(), Options::new().attachable(true).read_only(true));
    assert_eq!(refused(temp.path()), ErrorKind::NotFound);
    assert!(!temp.path().join("SOCKET").exists());
    drop(db);
    // Dropping a handle without a close also removes the socket.
    drop(attachable(temp.path()));
    assert!(!temp.path().join("SOCKET").exists());
}

/// A database works the same on a file system without sockets.
#[test]
fn a_database_without_a_socket_is_as_good() {
    let temp = TempDir::new("no-sockets");
    open(temp.path(), Options::new()).close().unwrap();
    std::fs::create_dir(temp.path().join("SOCKET")).unwrap();
    let db = attachable(temp.path());
    db.create_tree("t", TreeOptions::new()).unwrap().put("k", "v").unwrap();
    assert_eq!(Db::attach(temp.path()).unwrap_err().kind(), ErrorKind::NotFound);
    db.close().unwrap();
    assert!(temp.path().join("SOCKET").is_dir());
}

#[test]
fn any_bytes_are_refused_and_disturb_nobody() {
    let temp = TempDir::new("attached-bytes");
    let db = attachable(temp.path());
    let frame = |what: u8, fields: &[u8]| {
        let len = u32::try_from(fields.len() + 1).unwrap().to_le_bytes();
        [&b"FRONDASK"[..], &len, &[what], fields].concat()
    };
    let says = |bytes: &[u8], words: &str| {
        let answer = answer(temp.path(), bytes);
        let text = String::from_utf8_lossy(&answer);
        assert!(answer.get(4) == Some(&18) && text.contains(words), "{words}: {text}");
    };
    says(b"GET / HT", "no question");
    says(&frame(99, b""), "question 99 of a newer program");
    says(&frame(3, b""), "cut short");
    says(&frame(3, &[&[0; 16][..], &[255; 8]].concat()), "cut short");
    says(&[&b"FRONDASK"[..], &[255; 4]].concat(), "a frame of 4294967295 bytes");
    says(&[&b"FRONDASK"[..], &[0; 4]].concat(), "a frame of 0 bytes");
    let relative = [&0_u64.to_le_bytes()[..], &0o600_u64.to_le_bytes(), &1_u64.to_le_bytes(), b"x"];
    says(&frame(3, &[&relative.concat()[..], &[0; 8]].concat()), "absolute path");
    let whole = frame(3, &[7; 64]);
    for seed in 0..200 {
        let mut prng = Prng::new(seed);
        let mut bytes = whole.clone();
        // Change bytes and do not cut any off: the other side would wait for missing bytes.
        for _ in 0..=prng.index(3) {
            let at = prng.index(bytes.len() - 12) + 12;
            bytes[at] = prng.next_u32() as u8;
        }
        assert!(!answer(temp.path(), &bytes).is_empty(), "seed {seed}");
    }
    assert!(Db::attach(temp.path()).unwrap().stats().is_ok());
    db.close().unwrap();
}

#[test]
fn connections_that_say_nothing_hold_up_no_close() {
    let temp = TempDir::new("attached-hung");
    let db = attachable(temp.path());
    let mut hung: Vec<Connection> = (0..8).map(|_| connect(temp.path())).collect();
    for connection in &hung {
        (&mut &*connection).write_all(b"FROND").unwrap();
    }
    let attached = Db::attach(temp.path()).unwrap();
    assert_eq!(attached.stats().unwrap_err().kind(), ErrorKind::Busy);
    // The place of a connection becomes free some time after the connection has ended.
    hung.truncate(7);
    while let Err(error) = attached.stats() {
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    }
    db.close().unwrap();
    drop(attachable(temp.path()));
}

/// A backup at one byte a second is in progress when the database is closed or dropped, or when the
/// caller that requested the backup cancels it.
#[test]
fn a_backup_ends_with_either_side() {
    let temp = TempDir::new("attached-ends");
    let dir = temp.path().join("db");
    let slow = BackupOptions::new().bytes_per_second(1);
    let db = open(&dir, Options::new());
    db.create_tree("t", TreeOptions::new()).unwrap().put("k", vec![7; 1000]).unwrap();
    db.close().unwrap();
    for (name, with_close) in [("closed", true), ("dropped", false)] {
        let mut db = Some(attachable(&dir));
        let attached = Db::attach(&dir).unwrap();
        let to = temp.path().join(name);
        let ended = attached.backup(&to, &slow, &mut |_, _| {
            // After the close or the drop, all threads that answer requests have ended.
            if let Some(db) = db.take().filter(|_| with_close) {
                db.close().unwrap();
            }
            true
        });
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::Closed, "{name}");
        assert!(Db::verify_backup(&to, &mut |_, _| true).is_err(), "{name}");
    }
    let db = attachable(&dir);
    let attached = Db::attach(&dir).unwrap();
    let left = attached.backup(temp.path().join("left"), &slow, &mut |_, _| false).unwrap_err();
    assert_eq!(left.kind(), ErrorKind::Cancelled);
    // The process with the database notices the end when it sends the next progress.
    let again = |n| {
        let to = temp.path().join(format!("again-{n}"));
        attached.backup(to, &BackupOptions::new(), &mut |_, _| true)
    };
    let mut refused = (0..).map(again).map_while(Result::err);
    assert!(refused.all(|error| error.kind() == ErrorKind::Busy));
    db.close().unwrap();
}

/// A process in a container, or with its own `/tmp`, reports that it has made a backup, but this
/// process does not see the backup.
#[test]
fn a_backup_that_is_not_here_is_no_success() {
    let temp = TempDir::new("attached-elsewhere");
    let listener = PosixDevice::open(temp.path()).unwrap().listen("SOCKET").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Accept the connection that `attach` tries, and then the connection of the request.
            drop(listener.accept().unwrap().unwrap());
            let asked = listener.accept().unwrap().unwrap();
            let mut start = [0; 13];
            (&asked).read_exact(&mut start).unwrap();
            assert_eq!((&start[..8], start[12]), (&b"FRONDASK"[..], 3));
            let done = [&41_u32.to_le_bytes()[..], &[17], &[0; 40]].concat();
            (&asked).write_all(&done).unwrap();
            // Wait until the other side has read the answer.
            let _ = (&asked).read_to_end(&mut Vec::new());
        });
        let attached = Db::attach(temp.path()).unwrap();
        let to = temp.path().join("backup");
        let missing = attached.backup(&to, &BackupOptions::new(), &mut |_, _| true).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        assert!(missing.message().contains("does not see"), "{missing}");
    });
}
