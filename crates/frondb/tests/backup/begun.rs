//! Backups that are begun with one call and copied with another.

use frondb::{BackupOptions, Db, ErrorKind, Options, TreeOptions};
use frondb_testkit::TempDir;

/// Opens the database in folder `db`, and puts one row.
fn open(dir: &TempDir) -> (Db, frondb::Tree) {
    let db = Db::open(dir.path().join("db"), Options::new().memory_bytes(32 << 20)).unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    tree.put(b"a", b"1").unwrap();
    (db, tree)
}

#[test]
fn the_moment_is_that_of_the_beginning_however_late_the_copy_is() {
    let dir = TempDir::new("begun");
    let at = |name: &str| dir.path().join(name);
    let (db, tree) = open(&dir);
    let mut begun = db.begin_backup(at("full"), &BackupOptions::new()).unwrap();
    tree.put(b"before", b"1").unwrap();
    begun.fix().unwrap();
    tree.put(b"between", b"1").unwrap();
    // The backup contains the state of the last call of `fix`.
    begun.fix().unwrap();
    for round in 0..20u32 {
        let mut batch = frondb::Batch::new();
        for i in 0..2000u32 {
            batch.put(&tree, &i.to_be_bytes(), &[round as u8; 500]);
        }
        db.write(&batch, frondb::Durability::NoSync).unwrap();
    }
    tree.delete(b"a").unwrap();
    db.flush().unwrap();
    db.checkpoint().unwrap();
    // Another thread may copy the backup.
    let copied = std::thread::spawn(move || begun.copy(&mut |_, _| true)).join().unwrap();
    assert!(copied.unwrap().bytes > 0);
    Db::restore(&[at("full")], at("copy"), &Options::new(), &mut |_, _| true).unwrap();
    let copy = Db::open(at("copy"), Options::new().memory_bytes(32 << 20)).unwrap();
    let rows = copy.open_tree("t").unwrap();
    for key in [&b"a"[..], b"before", b"between"] {
        assert_eq!(rows.get(key).unwrap().as_deref(), Some(&b"1"[..]));
    }
    assert_eq!(rows.get(&7u32.to_be_bytes()).unwrap(), None);
    copy.close().unwrap();
    db.close().unwrap();
}

#[test]
fn a_backup_that_is_begun_is_the_only_one_and_leaves_nothing_when_dropped() {
    let dir = TempDir::new("begun");
    let at = |name: &str| dir.path().join(name);
    let (db, _tree) = open(&dir);
    let begin = |name: &str| db.begin_backup(at(name), &BackupOptions::new());
    let (mut begun, mut other) = (begin("one").unwrap(), begin("two").unwrap());
    begun.fix().unwrap();
    assert_eq!(other.fix().unwrap_err().kind(), ErrorKind::Busy);
    drop(begun);
    assert_eq!(std::fs::read_dir(at("one")).unwrap().count(), 0);
    other.fix().unwrap();
    drop(other);
    let begun = begin("one").unwrap();
    std::fs::write(at("one").join("other"), b"of somebody else").unwrap();
    assert_eq!(begun.copy(&mut |_, _| true).unwrap_err().kind(), ErrorKind::Exists);
    assert_eq!(std::fs::read_dir(at("one")).unwrap().count(), 1);
    // A begun backup does not prevent a close, and cannot continue after the close.
    let mut begun = begin("three").unwrap();
    begun.fix().unwrap();
    db.close().unwrap();
    assert_eq!(begun.fix().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(begun.copy(&mut |_, _| true).unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn attached_files_are_checked_with_the_backup_and_not_restored() {
    let dir = TempDir::new("begun");
    let at = |name: &str| dir.path().join(name);
    let (db, tree) = open(&dir);
    let mut begun = db.begin_backup(at("full"), &BackupOptions::new()).unwrap();
    for name in ["position", "definitions/db/a table.frm", "definitions/db/b-\u{e9}"] {
        begun.attach(name, name).unwrap();
    }
    for name in ["", "/etc/passwd", "a/../../b", "a//b", ".", "a/", "a\nb", "position"] {
        let error = begun.attach(name, "x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{name:?}: {error}");
    }
    let refused = |begun: &mut frondb::Backup, name: &str, why: &str| {
        let error = begun.attach(name, "x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{name:?}: {error}");
        assert!(error.message().contains(why), "{error}");
    };
    for name in ["definitions", "definitions/db", "position/a", "position/a/b"] {
        refused(&mut begun, name, "the directory of the other");
    }
    refused(&mut begun, &"n".repeat(256), "too long");
    refused(&mut begun, &format!("a/{}", "n".repeat(256)), "too long");
    refused(&mut begun, &"n/".repeat(600), "no relative path");
    refused(&mut begun, &["n"; 600].join("/"), "too long");
    begun.attach("definitions-2", "x").unwrap();
    begun.attach(&format!("p/{}", "n".repeat(255)), "x").unwrap();
    begun.copy(&mut |_, _| true).unwrap();
    let attached = at("full").join("attached/definitions/db");
    assert_eq!(std::fs::read(attached.join("a table.frm")).unwrap(), b"definitions/db/a table.frm");
    tree.put(b"b", b"2").unwrap();
    db.backup(at("more"), &BackupOptions::new().since(at("full")), &mut |_, _| true).unwrap();
    db.close().unwrap();

    let restore = |to: &str| {
        Db::restore(&[at("full"), at("more")], at(to), &Options::new(), &mut |_, _| true).unwrap();
        assert!(!at(to).join("attached").exists());
    };
    restore("copy");
    let faults = || Db::verify_backup(at("full"), &mut |_, _| true).unwrap().faults;
    assert_eq!(faults(), Vec::<String>::new());
    std::fs::write(attached.join("b-\u{e9}"), b"damaged").unwrap();
    assert_eq!(faults().len(), 1, "{:?}", faults());
    std::fs::remove_file(attached.join("b-\u{e9}")).unwrap();
    assert_eq!(faults().len(), 1, "{:?}", faults());
    restore("again");
}
