//! A database of a program with an update function: the command line does not have the function,
//! but runs every command that does not need it.

use frondb::{Db, Options, TreeOptions, UpdateFn};
use frondb_testkit::TempDir;

use crate::program::frondb;

struct Last;

impl UpdateFn for Last {
    fn name(&self) -> &str {
        "last"
    }

    fn apply(
        &self,
        _key: &[u8],
        _existing: Option<&[u8]>,
        operand: &[u8],
    ) -> std::result::Result<Vec<u8>, String> {
        Ok(operand.to_vec())
    }

    fn combine(&self, _key: &[u8], _older: &[u8], _newer: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

#[test]
fn a_tree_of_an_unknown_function_is_looked_after() {
    let temp = TempDir::new("cli-functions");
    let dir = temp.path();
    {
        let db = Db::open(dir, Options::new().memory_bytes(16 << 20).update_fn(Last)).unwrap();
        let tree = db.create_tree("counts", TreeOptions::new().update_fn("last", 1)).unwrap();
        let plain = db.create_tree("plain", TreeOptions::new()).unwrap();
        tree.put(b"a", b"1").unwrap();
        tree.put(b"b", b"2").unwrap();
        tree.update(b"b", b"3").unwrap();
        plain.put(b"k", b"v").unwrap();
        // The database is not closed, because the flush of a close would fold the update.
    }
    frondb("stats", dir, &[]).ok();
    frondb("verify", dir, &[]).ok();
    frondb("get", dir, &["counts", "a"]).ok();
    frondb("dump", dir, &["plain", "-"]).ok();
    frondb("get", dir, &["counts", "b"]).fails(2, "\"last\" is not registered");
    frondb("dump", dir, &["counts", "-"]).fails(2, "\"last\" is not registered");
    frondb("drop", dir, &["counts"]).ok();
    frondb("verify", dir, &[]).ok();
}
