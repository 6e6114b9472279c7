//! A cursor after an error, and after its database was closed: it never takes an unreadable entry
//! for the end of the tree, never skips it, and shows no entry that was written after the close.

use std::fs;
use std::path::PathBuf;

use frondb::{Batch, Cursor, CursorOptions, Db, Durability, ErrorKind, Options, Tree, TreeOptions};
use frondb::{Result, TransactionCursorOptions, TransactionOptions, UpdateFn, Wait};
use frondb_testkit::TempDir;

/// An update function that appends the operand, and fails on the operand `bad`.
struct AppendUnlessBad;

impl UpdateFn for AppendUnlessBad {
    fn name(&self) -> &str {
        "append"
    }

    fn apply(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operand: &[u8],
    ) -> std::result::Result<Vec<u8>, String> {
        if operand == b"bad" {
            return Err("not this one".into());
        }
        Ok([existing.unwrap_or_default(), operand].concat())
    }

    fn combine(&self, _key: &[u8], _older: &[u8], _newer: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

fn options() -> Options {
    Options::new().memory_bytes(8 << 20).background_threads(0).update_fn(AppendUnlessBad)
}

/// Creates a tree with the keys a to z, of which m cannot be read.
fn with_a_bad_key(db: &Db) -> Tree {
    let tree = db.create_tree("t", TreeOptions::new().update_fn("append", 1)).unwrap();
    for key in b'a'..=b'z' {
        tree.put(&[key], b"v").unwrap();
    }
    tree.update(b"m", b"bad").unwrap();
    tree
}

fn assert_fails(cursor: &mut Cursor, moved: Result<bool>, kind: ErrorKind) {
    assert_eq!(moved.unwrap_err().kind(), kind);
    assert!(!cursor.is_valid());
    assert_eq!(cursor.key(), b"");
    assert_eq!(cursor.value().unwrap_or_default(), b"");
}

/// Checks that every further move returns the error, in both directions.
fn assert_stuck(cursor: &mut Cursor, kind: ErrorKind) {
    for _ in 0..2 {
        let moved = cursor.next();
        assert_fails(cursor, moved, kind);
        let moved = cursor.prev();
        assert_fails(cursor, moved, kind);
    }
}

#[test]
fn an_error_stays_until_the_next_seek() {
    let dir = TempDir::new("cursor_errors");
    let db = Db::open(dir.path(), options()).unwrap();
    let tree = with_a_bad_key(&db);
    for flushed in [false, true] {
        if flushed {
            db.flush().unwrap();
        }
        let mut cursor = tree.cursor().unwrap();
        for key in b'a'..b'm' {
            assert!(cursor.next().unwrap());
            assert_eq!(cursor.key(), [key]);
        }
        let moved = cursor.next();
        assert!(moved.as_ref().unwrap_err().to_string().contains("\"m\""), "{moved:?}");
        assert_fails(&mut cursor, moved, ErrorKind::Invalid);
        assert_stuck(&mut cursor, ErrorKind::Invalid);
        // Only a seek, `first` or `last` clears the error.
        assert!(cursor.seek(b"n").unwrap());
        assert_eq!(cursor.key(), b"n");
        let moved = cursor.prev();
        assert_fails(&mut cursor, moved, ErrorKind::Invalid);
        assert_stuck(&mut cursor, ErrorKind::Invalid);
        assert!(cursor.last().unwrap());
        for key in (b'n'..=b'z').rev() {
            assert_eq!(cursor.key(), [key]);
            if key > b'n' {
                assert!(cursor.prev().unwrap());
            }
        }
        let moved = cursor.prev();
        assert_fails(&mut cursor, moved, ErrorKind::Invalid);
        assert!(cursor.seek_for_prev(b"l").unwrap());
        assert_eq!(cursor.key(), b"l");
    }
}

#[test]
fn a_first_move_that_fails_does_not_start_again() {
    let dir = TempDir::new("cursor_errors");
    let db = Db::open(dir.path(), options()).unwrap();
    let tree = with_a_bad_key(&db);
    let at_m = || CursorOptions::new().range(b"m".as_slice()..);
    let mut cursor = tree.cursor_with(at_m()).unwrap();
    let moved = cursor.next();
    assert_fails(&mut cursor, moved, ErrorKind::Invalid);
    assert_stuck(&mut cursor, ErrorKind::Invalid);
    let moved = cursor.seek(b"m");
    assert_fails(&mut cursor, moved, ErrorKind::Invalid);
    assert_stuck(&mut cursor, ErrorKind::Invalid);
    let mut cursor = tree.cursor_with(at_m()).unwrap();
    assert!(cursor.last().unwrap());
    assert_eq!(cursor.key(), b"z");
}

/// Returns the data file of the database, which is its largest file.
fn data_file(dir: &TempDir) -> PathBuf {
    let files = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    files
        .max_by_key(|path| path.metadata().map_or(0, |m| if m.is_file() { m.len() } else { 0 }))
        .unwrap()
}

#[test]
fn nothing_is_skipped_behind_damage() {
    let dir = TempDir::new("cursor_errors");
    let entries = 40_000u32;
    {
        let db = Db::open(dir.path(), options()).unwrap();
        let tree = db
            .create_tree("t", TreeOptions::new().shape(|shape| shape.leaf_bytes_min = 256 << 10))
            .unwrap();
        for part in (0..entries).collect::<Vec<_>>().chunks(1000) {
            let mut batch = Batch::new();
            for i in part {
                let noise = u128::from(*i).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
                batch.put(&tree, &i.to_be_bytes(), &noise.to_le_bytes().repeat(2));
            }
            db.write(&batch, Durability::NoSync).unwrap();
        }
        db.flush().unwrap();
        db.wait_settled().unwrap();
        db.close().unwrap();
    }
    // Damage every 64th page of the first MiB, so that some blocks can be read and others cannot.
    let path = data_file(&dir);
    let mut bytes = fs::read(&path).unwrap();
    for at in (2000..bytes.len().min(1 << 20)).step_by(64 * 4096) {
        bytes[at] ^= 0x55;
    }
    fs::write(&path, bytes).unwrap();

    let db = Db::open(dir.path(), options()).unwrap();
    let tree = db.open_tree("t").unwrap();
    let mut failed = 0;
    let mut start = 0;
    while start < entries {
        let mut cursor = tree.cursor().unwrap();
        let mut moved = cursor.seek(&start.to_be_bytes());
        let mut expected = start;
        while let Ok(true) = moved {
            assert_eq!(cursor.key(), expected.to_be_bytes(), "no entry is passed over");
            expected += 1;
            moved = cursor.next();
        }
        match moved {
            Ok(_) => assert_eq!(expected, entries, "the end is the end"),
            Err(_) => {
                failed += 1;
                assert_fails(&mut cursor, moved, ErrorKind::Corruption);
                assert_stuck(&mut cursor, ErrorKind::Corruption);
            }
        }
        start = expected.max(start + 97);
    }
    assert!(failed > 0, "the damage was met");
}

#[test]
fn after_close_every_move_is_closed() {
    let dir = TempDir::new("cursor_errors");
    let large = vec![7; 200_000];
    let db = Db::open(dir.path(), options()).unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    for i in 0..5000u32 {
        let mut batch = Batch::new();
        batch.put(&tree, &i.to_be_bytes(), if i == 9 { &large[..] } else { b"value" });
        db.write(&batch, Durability::NoSync).unwrap();
    }
    let mut cursors: Vec<_> = (0..8).map(|_| tree.cursor().unwrap()).collect();
    for cursor in &mut cursors[1..7] {
        assert!(cursor.seek(&9u32.to_be_bytes()).unwrap());
    }
    assert!(!cursors[7].seek(&5000u32.to_be_bytes()).unwrap());
    db.close().unwrap();
    assert_eq!(cursors[6].value().unwrap_err().kind(), ErrorKind::Closed);
    for (i, cursor) in cursors.iter_mut().enumerate() {
        let moved = match i {
            0 | 1 | 7 => cursor.next(),
            2 => cursor.prev(),
            3 => cursor.seek(b""),
            4 => cursor.last(),
            5 => cursor.seek_for_prev(b"~"),
            _ => cursor.first(),
        };
        assert_fails(cursor, moved, ErrorKind::Closed);
        assert_stuck(cursor, ErrorKind::Closed);
    }
}

#[test]
fn after_close_a_cursor_that_has_failed_is_closed() {
    let dir = TempDir::new("cursor_errors");
    let db = Db::open(dir.path(), options()).unwrap();
    let tree = with_a_bad_key(&db);
    let mut cursor = tree.cursor().unwrap();
    let moved = cursor.seek(b"m");
    assert_fails(&mut cursor, moved, ErrorKind::Invalid);
    db.close().unwrap();
    assert_stuck(&mut cursor, ErrorKind::Closed);
}

#[test]
fn a_cursor_that_outlives_its_database_reads_nothing_of_the_next_owner() {
    let dir = TempDir::new("cursor_errors");
    let fill = |db: &Db, name: &str, value: &[u8]| {
        let tree = db.create_tree(name, TreeOptions::new()).unwrap();
        let mut batch = Batch::new();
        for i in 0..20_000u32 {
            batch.put(&tree, &i.to_be_bytes(), value);
        }
        db.write(&batch, Durability::NoSync).unwrap();
        db.flush().unwrap();
        tree
    };
    let db = Db::open(dir.path(), options()).unwrap();
    let tree = fill(&db, "t", b"old");
    let mut cursor = tree.cursor().unwrap();
    assert!(cursor.first().unwrap());
    drop(tree);
    drop(db);
    let db = Db::open(dir.path(), options()).unwrap();
    db.drop_tree("t").unwrap();
    fill(&db, "u", b"new");
    let moved = cursor.next();
    assert_fails(&mut cursor, moved, ErrorKind::Closed);
}

/// After its transaction has ended, a plain or locking cursor has no entry, whatever move it makes.
#[test]
fn after_the_transaction_every_move_fails_and_shows_nothing() {
    let dir = TempDir::new("cursor_errors");
    let db = Db::open(dir.path(), options()).unwrap();
    let tree = with_a_bad_key(&db);
    let plain = TransactionCursorOptions::new;
    for options in [plain(), plain().for_update(Wait::Timeout)] {
        for way in 0..6 {
            let transaction = db.begin(TransactionOptions::new()).unwrap();
            let mut cursor = transaction.cursor_with(&tree, options.clone()).unwrap();
            assert!(cursor.seek(b"c").unwrap());
            transaction.commit().unwrap();
            let moved = match way {
                0 => cursor.next(),
                1 => cursor.prev(),
                2 => cursor.seek(b"d"),
                3 => cursor.seek_for_prev(b"d"),
                4 => cursor.first(),
                _ => cursor.last(),
            };
            assert_eq!(moved.unwrap_err().kind(), ErrorKind::Invalid);
            assert!(!cursor.is_valid(), "move {way}");
            assert_eq!(cursor.key(), b"");
            assert_eq!(cursor.next().unwrap_err().kind(), ErrorKind::Invalid);
        }
    }
}
