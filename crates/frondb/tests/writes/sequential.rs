//! Rule 5: rows that are inserted in key order are written about once, even if single keys come
//! late.

use frondb::{Batch, Codec, Db, Durability, Options, Stats, TreeOptions, TreeStats};
use frondb_testkit::TempDir;

const ROWS: u64 = 120_000;
const VALUE: [u8; 100] = [7; 100];

/// Loads rows; `key` computes a row's key from its number.
fn load(key: impl Fn(u64) -> u64) -> (Stats, TreeStats) {
    let dir = TempDir::new("sequential");
    // Without threads, all work happens in order inside the calls below. Without compression, the
    // bytes written are the bytes of the entries, plus the overhead of blocks and indexes.
    let options = Options::new().memory_bytes(8 << 20).background_threads(0);
    let db = Db::open(dir.path(), options).unwrap();
    let tree = TreeOptions::new().codec(Codec::None);
    let tree = tree.shape(|shape| {
        shape.leaf_bytes_min = 1 << 20;
        shape.slice_bytes_min = 64 << 10;
    });
    let tree = db.create_tree("t", tree).unwrap();
    let mut batch = Batch::new();
    for i in 0..ROWS {
        batch.put(&tree, &key(i).to_be_bytes(), &VALUE);
        if batch.len() == 1000 {
            db.write(&batch, Durability::NoSync).unwrap();
            batch.clear();
        }
    }
    db.flush().unwrap();
    db.wait_settled().unwrap();
    let stats = (db.stats(), tree.stats().unwrap());
    let mut cursor = tree.cursor().unwrap();
    let mut rows = 0;
    while cursor.next().unwrap() {
        rows += 1;
    }
    assert_eq!(rows, ROWS);
    drop(cursor);
    db.close().unwrap();
    stats
}

/// Bytes written for each 100 bytes of keys and values.
fn written_percent((stats, tree): &(Stats, TreeStats)) -> u64 {
    (stats.flush_bytes + stats.merge_bytes) * 100 / tree.raw_bytes
}

#[test]
fn ascending_keys_are_written_once() {
    let stats = load(|i| i);
    assert!(written_percent(&stats) < 115, "{} %", written_percent(&stats));
    assert_eq!(stats.0.merge_bytes, 0, "no merge has anything to do: {}", stats.0);
    assert_eq!(stats.1.base_raw_bytes, stats.1.raw_bytes, "all of it is base");
}

#[test]
fn stragglers_do_not_take_the_others_the_slow_way() {
    // One row in a thousand belongs far to the left, between two existing rows.
    let stats = load(|i| if i % 1000 == 999 { i * 8 - 300_000.min(i * 4) + 1 } else { i * 8 });
    let random = load(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let (written, control) = (written_percent(&stats), written_percent(&random));
    assert!(written < 125, "{written} %");
    assert!(control > 150, "random keys show the difference: {control} %");
}
