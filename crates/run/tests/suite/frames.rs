//! A cache without room holds blocks as they are on disk, if the device is slow or if that saves
//! most of the memory. Readers find the same entries in such a cache.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::support::{Entry, Fixture, get, options, put, scan};
use frondb_block::Codec;
use frondb_cache::CacheKey;
use frondb_core::Direction;
use frondb_core::clock::{ManualClock, SharedClock};
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::AtomicU64;
use frondb_device::SharedDevice;
use frondb_device::intercept::{Call, Intercepted, Interceptor, Operation, Verdict};
use frondb_run::{Cached, ReadMode, Run, RunOptions};

const KEYS: u32 = 240_000;
/// Number of reads after which the pace of the device is known.
const WARM_UP: u32 = 20_000;

/// A device of which each read advances the clock by a fixed time. Nothing else advances the clock.
#[derive(Debug)]
struct Paced {
    clock: Arc<ManualClock>,
    micros: Arc<AtomicU64>,
}

impl Interceptor for Paced {
    fn before(&self, call: &Call<'_>) -> Verdict {
        if call.operation == Operation::Read {
            self.clock.advance(Duration::from_micros(self.micros.load(Ordering::Relaxed)));
        }
        Verdict::Pass
    }
}

struct Bench {
    fixture: Fixture,
    run: Arc<Run>,
    entries: Vec<Entry>,
    micros: Arc<AtomicU64>,
    clock: Arc<ManualClock>,
}

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

/// Returns a value of 100 bytes, of which the first `random` are random.
fn value(prng: &mut Prng, random: usize) -> Vec<u8> {
    let mut value = vec![b'.'; 100];
    value[..random].iter_mut().for_each(|byte| *byte = prng.next_u32() as u8);
    value
}

/// Writes a run of 4 KiB blocks, about twelve times the memory; reads take `micros` microseconds.
fn bench(codec: Codec, micros: u64, mut value: impl FnMut() -> Vec<u8>) -> Bench {
    let (clock, micros) = (Arc::new(ManualClock::new()), Arc::new(AtomicU64::new(micros)));
    let paced = Paced { clock: Arc::clone(&clock), micros: Arc::clone(&micros) };
    let shared = Arc::clone(&clock) as SharedClock;
    let fixture = Fixture::with_clock(2 << 20, shared, |device| -> SharedDevice {
        Arc::new(Intercepted::wrap(device, paced))
    });
    let entries: Vec<Entry> = (0..KEYS).map(|n| put(&key(n), 1, &value())).collect();
    let run = fixture.run(RunOptions { codec, ..options(4096) }, false, &entries);
    Bench { fixture, run, entries, micros, clock }
}

impl Bench {
    /// A run whose blocks compress to less than half.
    fn compressed(micros: u64) -> Self {
        let mut prng = Prng::new(7);
        bench(Codec::Zstd(1), micros, move || value(&mut prng, 20))
    }

    fn look_up(&self, n: u32) {
        let found = get(&self.run, &key(n), u64::MAX).unwrap();
        assert_eq!(found, [self.entries[n as usize].clone()]);
    }

    fn scan(&self, keys: Range<u32>) {
        let (lo, hi) = (key(keys.start), key(keys.end));
        let found =
            scan(&self.run, Direction::Forward, ReadMode::Scan, Some(&lo), Some(&hi)).unwrap();
        assert_eq!(found, self.entries[keys.start as usize..keys.end as usize]);
    }

    fn look_up_many(&self, prng: &mut Prng, lookups: u32) {
        for _ in 0..lookups {
            self.look_up(prng.below(u64::from(KEYS)) as u32);
        }
    }

    fn reads(&self) -> u64 {
        self.run.env().stats.reads.load(Ordering::Relaxed)
    }

    fn frame_hits(&self) -> u64 {
        self.run.env().stats.frame_hits.load(Ordering::Relaxed)
    }

    /// The number of frames and the number of decoded blocks in the cache.
    fn cached(&self) -> (usize, usize) {
        let meta = self.run.meta();
        let cached = (0..meta.blocks)
            .filter_map(|block| self.fixture.env.cache.get(CacheKey::block(meta.id, block)));
        let (frames, decoded): (Vec<_>, Vec<_>) =
            cached.partition(|cached| matches!(cached, Cached::Frame(_)));
        (frames.len(), decoded.len())
    }
}

#[test]
fn a_slow_device_is_read_less_often() {
    let mut prng = Prng::new(1);
    let reads = |bench: &Bench, prng: &mut Prng| {
        bench.look_up_many(prng, WARM_UP);
        let before = bench.reads();
        bench.look_up_many(prng, 8_000);
        bench.reads() - before
    };
    let fast = Bench::compressed(10);
    let with_blocks = reads(&fast, &mut prng);
    assert_eq!((fast.frame_hits(), fast.cached().0), (0, 0));
    let slow = Bench::compressed(1_000);
    let with_frames = reads(&slow, &mut prng);
    assert!(slow.frame_hits() > 0);
    let (frames, decoded) = slow.cached();
    assert!(frames > 3 * decoded, "{frames} frames, {decoded} decoded blocks");
    assert!(with_frames * 10 < with_blocks * 9, "{with_frames} and {with_blocks} reads");
}

#[test]
fn a_frame_that_is_read_often_is_decoded_for_good() {
    let mut prng = Prng::new(2);
    let slow = Bench::compressed(1_000);
    slow.look_up_many(&mut prng, WARM_UP);
    // Scans, because the row cache answers repeated lookups.
    let mut last = slow.frame_hits();
    let quiet = (0..1_000).map(|_| {
        slow.scan(20_000..20_004);
        let is_quiet = slow.frame_hits() == last;
        last = slow.frame_hits();
        is_quiet
    });
    let quiet: Vec<bool> = quiet.collect();
    let first = quiet.iter().skip(1).position(|is_quiet| *is_quiet).unwrap();
    assert!((2..=512).contains(&first), "decoded after {first} hits");
    assert!(quiet[first + 1..].iter().all(|is_quiet| *is_quiet));
}

#[test]
fn frames_go_when_the_device_becomes_fast_and_when_there_is_room() {
    let mut prng = Prng::new(3);
    let bench = Bench::compressed(1_000);
    bench.look_up_many(&mut prng, WARM_UP);
    let (frames, _) = bench.cached();
    assert!(frames > 50, "{frames} frames");
    bench.micros.store(5, Ordering::Relaxed);
    for _ in 0..10 {
        bench.fixture.env.cache.clear();
        bench.look_up_many(&mut prng, WARM_UP / 2);
    }
    bench.look_up_many(&mut prng, 2 * WARM_UP);
    let (left, decoded) = bench.cached();
    assert!(left > decoded, "it may be fast for a moment only: {left} and {decoded} blocks");
    let hits_of_hot = |scans: usize| {
        let before = bench.frame_hits();
        (0..scans).for_each(|_| bench.scan(20_000..20_500));
        bench.frame_hits() - before
    };
    assert!(hits_of_hot(200) > 1_000, "one of 256 hits is decoded for good");
    bench.clock.advance(Duration::from_secs(60));
    bench.look_up_many(&mut prng, 2 * WARM_UP);
    hits_of_hot(200);
    assert_eq!(hits_of_hot(10), 0, "one of 16 hits is decoded for good");

    let bench = Bench::compressed(1_000);
    bench.look_up_many(&mut prng, WARM_UP);
    bench.fixture.env.budget.set_total(64 << 20);
    (0..KEYS).step_by(7).for_each(|n| bench.look_up(n));
    let (frames, decoded) = bench.cached();
    assert_eq!(frames, 0, "{decoded} decoded blocks");
}

#[test]
fn blocks_that_compress_well_are_frames_on_any_device() {
    let (mut prng, mut values) = (Prng::new(8), Prng::new(9));
    for (random, are_frames) in [(4, true), (24, false)] {
        // Values of several lengths: values of one length would be columns, and constant columns
        // take little memory.
        let fast = bench(Codec::Zstd(1), 10, || {
            let mut value = value(&mut values, random);
            value.truncate(90 + values.index(11));
            value
        });
        fast.look_up_many(&mut prng, WARM_UP);
        let before = fast.reads();
        fast.look_up_many(&mut prng, 8_000);
        let reads = fast.reads() - before;
        let (frames, decoded) = fast.cached();
        if are_frames {
            assert!(frames > 20 * decoded, "{frames} frames, {decoded} decoded blocks");
            assert!(reads < 4_000, "{reads} reads");
        } else {
            assert_eq!((fast.frame_hits(), frames), (0, 0));
            assert!(reads > 6_000, "{reads} reads");
        }
    }
}

#[test]
fn blocks_that_do_not_compress_are_decoded() {
    let mut prng = Prng::new(4);
    let slow = bench(Codec::None, 1_000, || vec![1; 100]);
    slow.look_up_many(&mut prng, 2 * WARM_UP);
    assert_eq!((slow.frame_hits(), slow.cached().0), (0, 0));
}

#[test]
fn scans_and_lookups_among_frames_find_all() {
    let seed = 5;
    println!("seed {seed}");
    let mut prng = Prng::new(seed);
    let slow = Bench::compressed(1_000);
    slow.look_up_many(&mut prng, WARM_UP);
    for round in 0..200 {
        let lo = prng.below(u64::from(KEYS)) as usize;
        let hi = (lo + 1 + prng.below(300) as usize).min(KEYS as usize - 1);
        let direction = if round % 2 == 0 { Direction::Forward } else { Direction::Backward };
        let (from, to) = (key(lo as u32), key(hi as u32));
        let found = scan(&slow.run, direction, ReadMode::Scan, Some(&from), Some(&to)).unwrap();
        let mut wanted = slow.entries[lo..hi].to_vec();
        if direction == Direction::Backward {
            wanted.reverse();
        }
        assert_eq!(found, wanted, "{direction:?} from {lo} to {hi}");
        slow.look_up_many(&mut prng, 5);
    }
    assert!(slow.frame_hits() > 100);
}
