//! Rule 3: background jobs run in steps of at most 256 KiB of output, so that the scheduler can
//! choose another job before a long job ends.

use frondb::{Batch, Codec, Db, Durability, Options, TreeOptions};
use frondb_testkit::TempDir;

/// Largest output of a step, bytes.
const STEP_BYTES: u64 = 256 << 10;
/// Entries by which the mean step may exceed [`STEP_BYTES`] here.
const STEP_ENTRIES: u64 = 4096;
const VALUE_BYTES: u64 = 100;

#[test]
fn a_long_rewrite_is_many_steps() {
    let dir = TempDir::new("steps");
    // Without threads, all work happens in order inside the calls below. Without compression, the
    // bytes written are the bytes of the entries, plus the overhead of blocks and indexes.
    let options = Options::new().memory_bytes(16 << 20).background_threads(0);
    let db = Db::open(dir.path(), options).unwrap();
    let tree = db.create_tree("t", TreeOptions::new().codec(Codec::None)).unwrap();
    let mut batch = Batch::new();
    for i in 0..150_000u64 {
        let key = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        batch.put(&tree, &key, &[i as u8; VALUE_BYTES as usize]);
        if batch.len() == 1000 {
            db.write(&batch, Durability::NoSync).unwrap();
            batch.clear();
        }
    }
    db.flush().unwrap();
    db.wait_settled().unwrap();

    let stats = db.stats();
    let jobs = stats.flushes + stats.merges + stats.rewrites + stats.node_flushes;
    let written = stats.flush_bytes + stats.merge_bytes;
    assert!(stats.rewrites > 0 && written > 16 << 20, "long jobs are among them: {stats}");
    assert!(stats.steps > 2 * jobs, "{} steps of {jobs} jobs", stats.steps);
    let step_max = STEP_BYTES + STEP_ENTRIES * (8 + VALUE_BYTES);
    let mean = written / stats.steps;
    assert!(mean <= step_max, "{mean} bytes in a step of at most {step_max}");
    db.close().unwrap();
}
