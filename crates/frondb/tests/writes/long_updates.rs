//! Updates make the value of a key longer than a value may be. Readers of this key get an error;
//! readers of other keys do not.

use frondb::{Db, ErrorKind, Options, Tree, TreeOptions, UpdateFn};
use frondb_testkit::TempDir;

const VALUE_BYTES_MAX: u64 = 64 << 20;

/// An update function that lengthens the value by the number of bytes in the operand.
struct Grow;

impl UpdateFn for Grow {
    fn name(&self) -> &str {
        "grow"
    }

    fn apply(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operand: &[u8],
    ) -> std::result::Result<Vec<u8>, String> {
        let more = u64::from_le_bytes(operand.try_into().map_err(|_| "not a number")?);
        Ok(vec![b'g'; existing.map_or(0, <[u8]>::len) + more as usize])
    }

    fn combine(&self, _key: &[u8], _older: &[u8], _newer: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

fn options() -> Options {
    Options::new().memory_bytes(16 << 20).background_threads(0).update_fn(Grow)
}

fn assert_too_long(tree: &Tree) {
    let error = tree.get(b"long").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("at most 67108864"), "{error}");
    let mut cursor = tree.cursor().unwrap();
    assert!(cursor.next().unwrap());
    assert_eq!(cursor.key(), b"before");
    assert_eq!(cursor.next().unwrap_err().kind(), ErrorKind::Invalid);
    assert!(cursor.seek(b"m").unwrap());
    assert_eq!(cursor.key(), b"other");
}

#[test]
fn a_value_that_grew_too_long_affects_no_other_key() {
    let dir = TempDir::new("long_updates");
    let grow = |tree: &Tree, by: u64| tree.update(b"long", &by.to_le_bytes()).unwrap();
    {
        let db = Db::open(dir.path(), options()).unwrap();
        let tree = db.create_tree("t", TreeOptions::new().update_fn("grow", 1)).unwrap();
        tree.put(b"before", b"1").unwrap();
        tree.put(b"other", b"2").unwrap();
        grow(&tree, VALUE_BYTES_MAX);
        db.flush().unwrap();
        db.wait_settled().unwrap();
        assert_eq!(tree.get(b"long").unwrap().unwrap().len() as u64, VALUE_BYTES_MAX);
        for _ in 0..2 {
            grow(&tree, 1);
            assert_too_long(&tree);
            db.flush().unwrap();
            db.wait_settled().unwrap();
            assert_too_long(&tree);
        }
        db.close().unwrap();
    }
    let db = Db::open(dir.path(), options()).unwrap();
    let tree = db.open_tree("t").unwrap();
    assert_too_long(&tree);
    assert!(db.verify(&mut |_, _, _| true).unwrap().faults.is_empty());
    // A put makes the key readable again.
    tree.put(b"long", b"short").unwrap();
    db.flush().unwrap();
    db.wait_settled().unwrap();
    grow(&tree, 3);
    assert_eq!(tree.get(b"long").unwrap(), Some(vec![b'g'; 8]));
    db.close().unwrap();
}
