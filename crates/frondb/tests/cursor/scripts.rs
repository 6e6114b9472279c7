//! Script tests of cursors. A script says what is written, where the messages are (memtable, runs,
//! base), and what each step shows. `REWRITE=1` rewrites the outputs.
//!
//! Commands: `put`, `delete`, `delete-range`, `update` (lines `key value`, `key`, `lo hi`);
//! `flush`; `settle` (background work, idle work included); `snapshot name`;
//! `scan [at=name] [from=key] [to=key] [prefix=key] [backward]`; `walk [at=name]` (lines of steps);
//! `get [at=name]` (lines of keys); `stats`.

use std::collections::HashMap;
use std::sync::Arc;

use datadriven::{TestCase, walk};
use frondb::testing::TestDb;
use frondb::{Batch, Cursor, CursorOptions, Db, Durability, Options, Snapshot, Tree, TreeOptions};
use frondb_testkit::MemoryDevice;
use frondb_testkit::functions;

struct World {
    db: Db,
    tree: Tree,
    snapshots: HashMap<String, Snapshot>,
}

fn world() -> World {
    let device = Arc::new(MemoryDevice::new());
    let db = TestDb::on(device)
        .options(Options::small().update_fn(functions::Append))
        .still()
        .open()
        .unwrap();
    let shape = TreeOptions::new().update_fn("append", 1).shape(|shape| {
        shape.leaf_bytes_min = 4 << 10;
        shape.base_block_bytes = 256;
        shape.run_block_bytes = 256;
        shape.slice_bytes_min = 256;
    });
    let tree = db.create_tree("t", shape).unwrap();
    World { db, tree, snapshots: HashMap::new() }
}

impl World {
    fn run(&mut self, case: &TestCase) -> String {
        match case.directive.as_str() {
            "put" | "delete" | "delete-range" | "update" => self.write(case),
            "flush" => self.db.flush().map(|()| String::new()).unwrap(),
            "settle" => {
                while self.db.run_one(true) {}
                String::new()
            }
            "snapshot" => {
                for name in case.args.keys() {
                    self.snapshots.insert(name.clone(), self.db.snapshot().unwrap());
                }
                String::new()
            }
            "scan" => self.scan(case),
            "walk" => self.walk(case),
            "get" => self.get(case),
            "stats" => {
                let stats = self.tree.stats().unwrap();
                format!("leaves {} views {} entries {}\n", stats.leaves, stats.views, stats.entries)
            }
            other => panic!("unknown command {other}"),
        }
    }

    fn write(&self, case: &TestCase) -> String {
        let mut batch = Batch::new();
        for line in case.input.lines() {
            let mut words = line.split_whitespace().map(str::as_bytes);
            let (key, rest) = (words.next().unwrap(), words.next());
            match case.directive.as_str() {
                "put" => batch.put(&self.tree, key, rest.unwrap_or_default()),
                "delete" => batch.delete(&self.tree, key),
                "delete-range" => batch.delete_range(&self.tree, key, rest),
                _ => batch.update(&self.tree, key, rest.unwrap_or_default()),
            }
        }
        match self.db.write(&batch, Durability::NoSync) {
            Ok(()) => String::new(),
            Err(error) => format!("{error}\n"),
        }
    }

    fn argument<'a>(case: &'a TestCase, name: &str) -> Option<&'a str> {
        case.args.get(name).and_then(|values| values.first()).map(String::as_str)
    }

    fn cursor(&self, case: &TestCase) -> Cursor {
        let mut options = CursorOptions::new();
        let (from, to) = (Self::argument(case, "from"), Self::argument(case, "to"));
        options = match (from, to) {
            (None, None) => options,
            (Some(from), None) => options.range(from.as_bytes()..),
            (None, Some(to)) => options.range(..to.as_bytes()),
            (Some(from), Some(to)) => options.range(from.as_bytes()..to.as_bytes()),
        };
        if let Some(prefix) = Self::argument(case, "prefix") {
            options = options.prefix(prefix.as_bytes());
        }
        if let Some(at) = Self::argument(case, "at") {
            options = options.at(&self.snapshots[at]);
        }
        self.tree.cursor_with(options).unwrap()
    }

    fn scan(&self, case: &TestCase) -> String {
        let mut cursor = self.cursor(case);
        let mut out = String::new();
        let backward = case.args.contains_key("backward");
        while if backward { cursor.prev().unwrap() } else { cursor.next().unwrap() } {
            out += &show(&mut cursor);
        }
        if out.is_empty() { "nothing\n".into() } else { out }
    }

    fn walk(&self, case: &TestCase) -> String {
        let mut cursor = self.cursor(case);
        let mut out = String::new();
        for line in case.input.lines() {
            let mut words = line.split_whitespace();
            let (step, key) = (words.next().unwrap(), words.next().unwrap_or_default().as_bytes());
            let found = match step {
                "first" => cursor.first(),
                "last" => cursor.last(),
                "next" => cursor.next(),
                "prev" => cursor.prev(),
                "seek" => cursor.seek(key),
                "seek-for-prev" => cursor.seek_for_prev(key),
                other => panic!("unknown step {other}"),
            };
            assert_eq!(found.unwrap(), cursor.is_valid());
            out += &format!("{line}: {}", show(&mut cursor));
        }
        out
    }

    fn get(&self, case: &TestCase) -> String {
        let mut out = String::new();
        for key in case.input.lines().map(str::as_bytes) {
            let value = match Self::argument(case, "at") {
                None => self.tree.get(key),
                Some(at) => self.tree.get_at(key, &self.snapshots[at]),
            };
            let value = value.unwrap().map_or("none".into(), |value| text(&value));
            out += &format!("{}: {value}\n", text(key));
        }
        out
    }
}

fn show(cursor: &mut Cursor) -> String {
    if !cursor.is_valid() {
        return "end\n".into();
    }
    let key = text(cursor.key());
    format!("{key}={}\n", text(cursor.value().unwrap()))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn cursors_show_what_the_scripts_say() {
    walk("tests/testdata/cursor", |file| {
        let mut world = world();
        file.run(|case| world.run(case));
    });
}
