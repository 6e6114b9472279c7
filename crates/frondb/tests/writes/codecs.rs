//! Rows survive every codec. Values that do not compress, up to the size from which values get
//! their own extents, lie among rows that do. Background work, an optimize and a restart process
//! them all.
//!
//! `FRONDB_SEED` replays a seed, `FRONDB_TIMES` sets how often the levels are drawn.

use frondb::testing::TestDb;
use frondb::{Batch, Codec, Db, Durability, Options, TreeOptions};
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_testkit::MemoryDevice;
use frondb_testkit::seed::from_env;

use crate::support::{self, Rows};

fn options() -> Options {
    Options::new().memory_bytes(16 << 20).background_threads(0).verify_fast_codecs(true)
}

/// Returns the value of a row. One value in sixteen has up to 66,000 bytes that do not compress;
/// most of these have about 16, 32 or 64 KiB, the size of a buffer.
fn value(prng: &mut Prng, id: u64) -> Vec<u8> {
    if !prng.chance(1, 16) {
        return format!("row {id} of kind {}, as all of them", prng.below(40)).into_bytes();
    }
    let len = match prng.below(3) {
        0 => 61_000 + prng.index(5_000),
        1 => [16, 32, 64][prng.index(3)] * 1024 - 40 + prng.index(80),
        _ => 1 + prng.index(66_000),
    };
    let mut value = vec![0; len];
    prng.fill(&mut value);
    value
}

fn rows_survive(codec: Codec, rows: u64, prng: &mut Prng) {
    let device = Arc::new(MemoryDevice::new());
    let mut expected = Rows::new();
    let db = TestDb::on(device.clone()).options(options()).open().unwrap();
    let tree = db.create_tree("t", TreeOptions::new().codec_with_blocks(codec)).unwrap();
    for round in 0..3 {
        for id in (round..rows).step_by(1 + round as usize) {
            let (key, value) = (id.to_be_bytes().to_vec(), value(prng, id));
            let mut batch = Batch::new();
            batch.put(&tree, &key, &value);
            expected.insert(key, value);
            db.write(&batch, Durability::NoSync).unwrap();
        }
        db.flush().unwrap();
        db.wait_settled().unwrap();
    }
    assert!(support::rows(&tree) == expected, "{codec}: rows differ");
    let report = tree.optimize(frondb::OptimizeOptions::default(), &mut |_, _| true).unwrap();
    assert_eq!(report.failed, 0, "{codec}");
    verify(&db, codec, &expected);
    db.close().unwrap();
    let db = TestDb::on(device).options(options()).open().unwrap();
    verify(&db, codec, &expected);
}

fn verify(db: &Db, codec: Codec, expected: &Rows) {
    let report = db.verify(&mut |_, _, _| true).unwrap();
    assert!(report.faults.is_empty(), "{codec}: {report:?}");
    assert!(support::rows(&db.open_tree("t").unwrap()) == *expected, "{codec}: rows differ");
    // The statistic also counts faults that were detected in time and only cost space.
    assert_eq!(db.stats().miscoded_blocks, 0, "{codec}");
}

#[test]
fn the_smallest_files_can_be_asked_for_by_names() {
    let options = TreeOptions::new().set("codec", "aggressive").unwrap();
    let options = options.set("block_bytes", "0").unwrap();
    assert_eq!(options, TreeOptions::aggressive());
}

#[test]
fn rows_survive_every_codec() {
    let seed = from_env("FRONDB_SEED", 51);
    println!("seed {seed}");
    let mut prng = Prng::new(seed);
    for _ in 0..from_env("FRONDB_TIMES", 1) {
        for codec in (1..=9).map(Codec::Zlib) {
            rows_survive(codec, 400, &mut prng);
        }
        for kind in [Codec::Zstd(1), Codec::ZstdDictionary(1), Codec::Lzma(0)] {
            let levels: Vec<Codec> =
                Codec::all().filter(|codec| codec.to_bytes()[0] == kind.to_bytes()[0]).collect();
            let quick: Vec<Codec> =
                levels.iter().copied().filter(|codec| !codec.is_slow()).collect();
            for of in [quick, levels] {
                if let Some(&codec) = prng.pick(&of) {
                    rows_survive(codec, if codec.is_slow() { 150 } else { 400 }, &mut prng);
                }
            }
        }
        for codec in [Codec::None, Codec::Lz4, Codec::QUICK] {
            rows_survive(codec, 400, &mut prng);
        }
    }
}
