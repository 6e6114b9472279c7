//! Slow codecs: rows are first written with a fast codec and packed in the background, with a
//! dictionary if the codec uses one. Every reader sees the same rows before, during and after
//! packing.

use std::ops::Range;

use frondb::{
    Batch, Codec, CursorOptions, Db, Durability, ErrorKind, OptimizeOptions, Options, Tree,
    TreeOptions,
};
use frondb_core::prng::Prng;
use frondb_testkit::TempDir;
use frondb_testkit::seed::from_env;

use crate::support::{Rows, rows};

const MEMORY: u64 = 64 << 20;

fn options() -> Options {
    // Without threads, all work happens in order inside the calls below.
    Options::new().memory_bytes(MEMORY).background_threads(0).write_buffer_bytes(512 << 10)
}

/// Leaves of 2 MiB, which is large enough for a dictionary of 32 KiB.
fn tree_options(codec: Codec) -> TreeOptions {
    TreeOptions::new().codec(codec).shape(|shape| {
        (shape.leaf_bytes_min, shape.leaf_bytes_max) = (2 << 20, 2 << 20);
        shape.slice_bytes_min = 16 << 10;
    })
}

/// Returns a line of a log. Most of its words occur again only in other blocks, so that a
/// dictionary pays.
fn line(prng: &mut Prng) -> Vec<u8> {
    line_of(4_000, prng)
}

/// Returns a line of few different words, nearly all of which occur in every block, and of unique
/// digits.
fn event(prng: &mut Prng) -> Vec<u8> {
    let mut event = line_of(200, prng);
    for _ in 0..8 {
        event.extend_from_slice(format!("{:016x}", prng.next_u64()).as_bytes());
    }
    event
}

/// Returns a line with words from a vocabulary of `words` words.
fn line_of(words: u64, prng: &mut Prng) -> Vec<u8> {
    let mut line = Vec::new();
    for _ in 0..12 {
        let word = prng.below(words).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        line.extend_from_slice(format!("{:x} ", word >> 34).as_bytes());
    }
    line
}

fn fill(db: &Db, tree: &Tree, model: &mut Rows, prng: &mut Prng, from: u64, lines: u64) {
    fill_with(db, tree, model, from..from + lines, || line(prng));
}

fn fill_with(
    db: &Db,
    tree: &Tree,
    model: &mut Rows,
    rows: Range<u64>,
    mut line: impl FnMut() -> Vec<u8>,
) {
    for begin in rows.step_by(500) {
        let mut batch = Batch::new();
        for at in begin..begin + 500 {
            let (key, value) = (at.to_be_bytes().to_vec(), line());
            batch.put(tree, &key, &value);
            model.insert(key, value);
        }
        db.write(&batch, Durability::NoSync).unwrap();
    }
}

/// Does all work that is due, including the work of an idle database.
fn work(db: &Db) {
    db.flush().unwrap();
    while db.run_one(true) {}
}

fn check(db: &Db, tree: &Tree, model: &Rows) {
    assert_eq!(rows(tree), *model);
    for (key, value) in model.iter().step_by(997) {
        assert_eq!(tree.get(key).unwrap().as_deref(), Some(&value[..]));
    }
    let report = db.verify(&mut |_, _, _| true).unwrap();
    assert!(report.faults.is_empty(), "{report:?}");
}

#[test]
fn rows_are_packed_with_a_dictionary_and_stay_the_same() {
    let mut prng = Prng::new(from_env("PACKING_SEED", 1_u64));
    let dir = TempDir::new("packing");
    let db = Db::open(dir.path(), options()).unwrap();
    let quick = db.create_tree("quick", tree_options(Codec::QUICK)).unwrap();
    let plain = db.create_tree("plain", tree_options(Codec::Zstd(12))).unwrap();
    let packed = db.create_tree("packed", tree_options(Codec::ZstdDictionary(12))).unwrap();
    let mut model = Rows::new();
    for tree in [&quick, &plain, &packed] {
        fill(&db, tree, &mut model, &mut prng.clone(), 0, 60_000);
    }
    work(&db);
    let bytes = |tree: &Tree| tree.stats().unwrap().disk_bytes;
    let (q, z, d) = (bytes(&quick), bytes(&plain), bytes(&packed));
    assert!(z < q && d * 10 < z * 9, "quick {q}, plain {z}, with a dictionary {d}");
    let raw = plain.stats().unwrap().raw_bytes + packed.stats().unwrap().raw_bytes;
    // The unpacked rest is a small part of some leaf.
    assert!((raw * 15 / 16..=raw).contains(&db.stats().packed_bytes), "{raw} {}", db.stats());
    check(&db, &packed, &model);

    // New rows among the old ones, deletes, and a reader at an older snapshot.
    let before = db.snapshot().unwrap();
    let old = model.clone();
    for at in (0..60_000u64).step_by(7) {
        packed.delete(&at.to_be_bytes()).unwrap();
        model.remove(&at.to_be_bytes()[..]);
    }
    fill(&db, &packed, &mut model, &mut prng, 90_000, 20_000);
    work(&db);
    check(&db, &packed, &model);
    let mut cursor = packed.cursor_with(CursorOptions::new().at(&before)).unwrap();
    let mut seen = Rows::new();
    while cursor.next().unwrap() {
        seen.insert(cursor.key().to_vec(), cursor.value().unwrap().to_vec());
    }
    assert_eq!(seen, old);
    drop((cursor, before));
    drop((quick, plain, packed));
    db.close().unwrap();

    let db = Db::open(dir.path(), options()).unwrap();
    let packed = db.open_tree("packed").unwrap();
    check(&db, &packed, &model);
    packed.optimize(OptimizeOptions::new(), &mut |_, _| true).unwrap();
    check(&db, &packed, &model);
    drop(packed);
    db.close().unwrap();
}

/// Returns the share of the tree's bytes that a slow codec has packed, percent.
fn packed_percent(db: &Db, tree: &Tree) -> u64 {
    db.stats().packed_bytes * 100 / tree.stats().unwrap().raw_bytes
}

#[test]
fn a_tree_gets_another_codec_while_it_is_read() {
    let mut prng = Prng::new(from_env("PACKING_SEED", 2_u64));
    let dir = TempDir::new("codec-change");
    let db = Db::open(dir.path(), options()).unwrap();
    let tree = db.create_tree("t", tree_options(Codec::QUICK)).unwrap();
    let mut model = Rows::new();
    fill(&db, &tree, &mut model, &mut prng, 0, 60_000);
    work(&db);
    let quick = tree.stats().unwrap().disk_bytes;
    assert_eq!(packed_percent(&db, &tree), 0);

    // Change the codec; packing continues in the background after a reopen.
    let dense = tree_options(Codec::ZstdDictionary(12)).block_bytes(32 << 10);
    tree.set_options(dense.clone()).unwrap();
    assert_eq!(tree.options(), dense);
    drop(tree);
    db.close().unwrap();
    let db = Db::open(dir.path(), options()).unwrap();
    let tree = db.open_tree("t").unwrap();
    assert_eq!(tree.options(), dense);
    fill(&db, &tree, &mut model, &mut prng, 60_000, 500);
    check(&db, &tree, &model);
    work(&db);
    check(&db, &tree, &model);
    let dense_bytes = tree.stats().unwrap().disk_bytes;
    assert!(
        packed_percent(&db, &tree) > 90 && dense_bytes * 10 < quick * 9,
        "{dense_bytes}, {quick}"
    );

    // Change the codec back; optimize rewrites the tree.
    tree.set_options(tree_options(Codec::QUICK)).unwrap();
    tree.optimize(OptimizeOptions::new(), &mut |_, _| true).unwrap();
    assert_eq!(packed_percent(&db, &tree), 0);
    check(&db, &tree, &model);

    // Change only the block size, in the background and by optimize.
    let large = tree.stats().unwrap().disk_bytes;
    tree.set_options(tree_options(Codec::QUICK).block_bytes(512)).unwrap();
    work(&db);
    let small = tree.stats().unwrap().disk_bytes;
    assert!(small * 10 > large * 11, "{large} bytes in large blocks, {small} in small ones");
    tree.set_options(tree_options(Codec::QUICK)).unwrap();
    tree.optimize(OptimizeOptions::new(), &mut |_, _| true).unwrap();
    let again = tree.stats().unwrap().disk_bytes;
    assert!(again.abs_diff(large) * 50 < large, "{large} bytes, then {again}");
    check(&db, &tree, &model);

    let error = tree.set_options(tree_options(Codec::QUICK).fanout(4)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let error = tree.set_options(tree.options().block_bytes(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    db.checkpoint().unwrap();
    db.drop_tree("t").unwrap();
    let error = tree.set_options(dense).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

/// Returns the average bytes that a lookup reads from a tree whose blocks are not in the cache.
fn bytes_of_a_lookup(db: &Db, tree: &Tree, lookups: u64) -> u64 {
    let before = db.stats().read_bytes;
    for at in 0..lookups {
        tree.get(&(at * 60_000 / lookups).to_be_bytes()).unwrap().unwrap();
    }
    (db.stats().read_bytes - before) / lookups
}

#[test]
fn blocks_are_as_small_as_the_dictionary_allows_unless_their_size_was_chosen() {
    let mut prng = Prng::new(from_env("PACKING_SEED", 3_u64));
    let dir = TempDir::new("suited-blocks");
    let db = Db::open(dir.path(), options().memory_bytes(256 << 20)).unwrap();
    let codec = Codec::ZstdDictionary(12);
    let suited = db.create_tree("suited", tree_options(codec).block_bytes(128 << 10)).unwrap();
    let chosen = db.create_tree("chosen", tree_options(codec).block_bytes(127 << 10)).unwrap();
    let mut model = Rows::new();
    for tree in [&suited, &chosen] {
        let mut prng = prng.clone();
        fill_with(&db, tree, &mut model, 0..60_000, || event(&mut prng));
    }
    work(&db);
    let bytes = |tree: &Tree| tree.stats().unwrap().disk_bytes;
    let (small, large) = (bytes(&suited), bytes(&chosen));
    assert!(small * 100 < large * 104, "{small} and {large} bytes");
    drop((suited, chosen));
    db.close().unwrap();
    // After a reopen the database still knows the block size that suits the dictionary.
    let db = Db::open(dir.path(), options().memory_bytes(256 << 20)).unwrap();
    let (suited, chosen) = (db.open_tree("suited").unwrap(), db.open_tree("chosen").unwrap());
    let (small, large) = (bytes_of_a_lookup(&db, &suited, 20), bytes_of_a_lookup(&db, &chosen, 20));
    assert!(small * 3 < large * 2, "{small} and {large} bytes");
    fill_with(&db, &suited, &mut model, 60_000..80_000, || event(&mut prng));
    work(&db);
    check(&db, &suited, &model);

    // A block size that the user chose after the dictionary was trained also stays.
    suited.set_options(tree_options(codec).block_bytes(127 << 10)).unwrap();
    suited.optimize(OptimizeOptions::new(), &mut |_, _| true).unwrap();
    check(&db, &suited, &model);
    // The dictionary of `chosen` was trained while the user had chosen a block size. The block size
    // that suits the dictionary is tried once the user's choice ends.
    chosen.set_options(tree_options(codec).block_bytes(128 << 10)).unwrap();
    chosen.optimize(OptimizeOptions::new(), &mut |_, _| true).unwrap();
    drop((suited, chosen));
    db.close().unwrap();
    let db = Db::open(dir.path(), options().memory_bytes(256 << 20)).unwrap();
    let (suited, chosen) = (db.open_tree("suited").unwrap(), db.open_tree("chosen").unwrap());
    let (now_large, now_small) =
        (bytes_of_a_lookup(&db, &suited, 20), bytes_of_a_lookup(&db, &chosen, 20));
    assert!(now_small * 3 < now_large * 2, "{now_small} and {now_large} bytes");
}
