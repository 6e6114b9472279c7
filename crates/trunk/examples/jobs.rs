//! Prints what jobs cost per message: `cargo run --release -p frondb-trunk --example jobs --
//! [messages]`.
//!
//! Times are processor time of the thread, so that other programs disturb them less; the device is
//! in memory. Keys have 24 bytes, values 8. The last two lines show what a job could save by
//! copying blocks that no other input touches: at most half, because the filter needs all keys.
#![allow(clippy::print_stdout, reason = "it prints a table")]
#![allow(clippy::unwrap_used, reason = "it measures and may panic")]

use frondb_cache::{Cache, CacheOptions};
use frondb_core::budget::Budget;
use frondb_core::checksum::xxh3;
use frondb_core::clock::SystemClock;
use frondb_core::prng::Prng;
use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::AtomicU64;
use frondb_core::wear::WriteCause;
use frondb_core::{Chunk, Direction, MessageKind, NodeId, Result, SeqNo, Source, TreeId};
use frondb_filter::{FilterBuilder, FilterKind};
use frondb_run::{ReadMode, RunCursor, RunEnv};
use frondb_space::{Space, SpaceOptions};
use frondb_testkit::MemoryDevice;
use frondb_trunk::cut::flush_targets;
use frondb_trunk::install::VersionBuilder;
use frondb_trunk::job::{Job, JobEnv, JobInput, Packing};
use frondb_trunk::plan::{Plan, Reason};
use frondb_trunk::{Key, Node, Trunk, TrunkOptions, prepare};

/// Processor time of this thread in seconds.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos: f64 = text.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0.0);
    nanos / 1e9
}

/// Runs `work` and prints its time for each of `count` messages.
fn measure<T>(what: &str, count: u64, work: impl FnOnce() -> T) -> T {
    let start = processor_seconds();
    let result = work();
    let nanos = (processor_seconds() - start) * 1e9;
    println!("{what:<52} {count:>9} messages {:>7.0} ns each", nanos / count as f64);
    result
}

/// Sorted keys, all with the same SeqNo.
struct Keys {
    keys: Vec<[u8; 24]>,
    at: usize,
    seq: SeqNo,
}

impl Source for Keys {
    fn next_chunk(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.clear();
        let end = (self.at + 1024).min(self.keys.len());
        for key in &self.keys[self.at..end] {
            chunk.push(key, self.seq, MessageKind::Put, &key[16..]);
        }
        self.at = end;
        Ok(!chunk.is_empty())
    }
}

/// `count` random keys whose first eight bytes lie in `range`, in units of 2^64 / 100.
fn random_keys(prng: &mut Prng, count: u64, range: std::ops::Range<u64>) -> Vec<[u8; 24]> {
    let step = u64::MAX / 100;
    let mut keys: Vec<[u8; 24]> = (0..count)
        .map(|_| {
            let mut key = [0; 24];
            prng.fill(&mut key);
            let head = range.start * step + prng.below((range.end - range.start) * step);
            key[..8].copy_from_slice(&head.to_be_bytes());
            key
        })
        .collect();
    keys.sort_unstable();
    keys
}

struct Bench {
    env: JobEnv,
    trunk: Trunk,
    seq: u64,
    next_node: u64,
}

impl Bench {
    fn new() -> Self {
        let options = SpaceOptions::default();
        let space = Space::open(Arc::new(MemoryDevice::new()), options, []).unwrap();
        let budget = Budget::new(256 << 20);
        let cache = Cache::new(Arc::clone(&budget), CacheOptions::default());
        let tree = TreeId(1);
        let env = JobEnv {
            cause: WriteCause::Merge,
            tree,
            options: TrunkOptions::default(),
            run_env: RunEnv::new(space, cache, budget, SystemClock::shared()),
            run_ids: Arc::new(AtomicU64::new(0)),
            update: None,
            reads: 0,
            reserved: false,
            packing: Packing::Quick,
        };
        let root = Node::empty_leaf(NodeId(0), Key::from([]), None);
        Self { env, trunk: Trunk { tree, root }, seq: 0, next_node: 0 }
    }

    fn flush(&mut self, keys: Vec<[u8; 24]>) {
        self.seq += 1;
        let seq = SeqNo(self.seq);
        let raw_bytes = keys.len() as u64 * 32;
        let input = JobInput {
            sources: vec![Box::new(Keys { keys, at: 0, seq })],
            range_deletes: RangeDeletes::empty(),
            snapshots: Arc::new([]),
            seqs: (seq, seq),
            has_updates: false,
            at_base: false,
            raw_bytes,
            disk_bytes: raw_bytes,
            handover: Arc::default(),
        };
        let targets = flush_targets(&self.trunk, self.trunk.root.max_key(), u64::MAX);
        let new_runs = finish(Job::new(self.env.clone(), input, targets, 1).unwrap());
        let next_node = &mut self.next_node;
        let mut next_id = || {
            *next_node += 1;
            NodeId(*next_node)
        };
        let mut builder = VersionBuilder::new(self.trunk.clone(), &mut next_id);
        builder.flush(&new_runs, &RangeDeletes::empty(), None, u64::MAX);
        self.trunk = builder.finish().trunk;
    }

    fn rewrite(&self) {
        let plan = Plan::Rewrite(Reason::Growth, 1);
        let (env, root) = (self.env.clone(), &self.trunk.root);
        let prepared = prepare(env, &self.trunk, root, plan, u64::MAX, Arc::new([])).unwrap();
        for placed in finish(prepared.job) {
            placed.run.kill();
        }
    }
}

fn finish(mut job: Job) -> Vec<frondb_trunk::install::PlacedRun> {
    while !job.step().unwrap() {}
    job.finish().unwrap().new_runs
}

fn main() {
    let count: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let mut prng = Prng::new(1);
    let mut base = Bench::new();
    let keys = random_keys(&mut prng, count, 0..100);
    measure("flush, an empty tree: one base", count, || base.flush(keys));

    let mut random = Bench { trunk: base.trunk.clone(), env: base.env.clone(), ..base };
    for _ in 0..4 {
        let keys = random_keys(&mut prng, count / 4, 0..100);
        measure("flush, one slice", count / 4, || random.flush(keys));
    }
    measure("rewrite, base and four slices at random", 2 * count, || random.rewrite());

    let mut skewed = Bench { trunk: base.trunk.clone(), env: base.env.clone(), ..base };
    for _ in 0..4 {
        skewed.flush(random_keys(&mut prng, count / 40, 90..99));
    }
    measure("rewrite, four small slices in a tenth of the keys", count * 11 / 10, || {
        skewed.rewrite();
    });

    let mut views = Bench::new();
    for i in 0..16 {
        views.flush(random_keys(&mut prng, count / 16, i * 6..i * 6 + 6));
    }
    assert_eq!(views.trunk.root.base().len(), 16);
    measure("rewrite, a base of sixteen appended views", count, || views.rewrite());

    let run = Arc::clone(&base.trunk.root.base()[0].run);
    measure("decode the base, and its keys for a filter", count, || {
        let cursor =
            RunCursor::new(Arc::clone(&run), Direction::Forward, None, None, ReadMode::Merge);
        let (mut cursor, mut chunk) = (cursor.unwrap(), Chunk::new());
        let mut filter = FilterBuilder::new(FilterKind::BinaryFuse8);
        while cursor.next_chunk(&mut chunk).unwrap() {
            (0..chunk.len()).for_each(|i| filter.push(xxh3(chunk.key(i))));
        }
        filter.finish().len()
    });
    measure("read the base and its checksums, nothing else", count, || {
        let mut buf = frondb_core::mem::Buf::paged(256 * 1024);
        let mut sum = 0;
        for extent in &run.meta().extents {
            for offset in (0..extent.bytes()).step_by(buf.len()) {
                let n = (extent.bytes() - offset).min(buf.len() as u64) as usize;
                base.env.run_env.space.read(*extent, offset, &mut buf[..n]).unwrap();
                sum ^= xxh3(&buf[..n]);
            }
        }
        sum
    });
}
