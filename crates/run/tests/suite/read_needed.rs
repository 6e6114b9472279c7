//! Lookups that read their blocks together find what single lookups find, with fewer calls.

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use crate::support::{Entry, Fixture, get, options, put};
use frondb_core::budget::Part;
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_core::{Error, MessageKind, Result, SeqNo};
use frondb_device::SharedDevice;
use frondb_device::intercept::{Call, Intercepted, Interceptor, Operation, Verdict};
use frondb_run::{AfterBlock, CachedGet, NeededBlock, Run, read_needed};
use frondb_testkit::Faults;
use frondb_testkit::faults::Script;

/// Notes how many reads are requested at once, and how many reads there are.
#[derive(Debug, Default)]
struct Calls {
    together: Mutex<Vec<usize>>,
    reads: Mutex<usize>,
}

/// Counts the reads of a device.
#[derive(Debug)]
struct Count(Arc<Calls>);

impl Interceptor for Count {
    fn before(&self, call: &Call<'_>) -> Verdict {
        *self.0.reads.lock().unwrap() += usize::from(call.operation == Operation::Read);
        Verdict::Pass
    }

    fn before_many(&self, _: &str, count: usize) {
        self.0.together.lock().unwrap().push(count);
    }
}

fn counted(memory: u64) -> (Fixture, Arc<Calls>) {
    let calls = Arc::new(Calls::default());
    let count = Count(Arc::clone(&calls));
    let fixture = Fixture::wrapping(memory, |device| -> SharedDevice {
        Arc::new(Intercepted::wrap(device, count))
    });
    (fixture, calls)
}

/// A lookup of one key in one run.
struct Lookup<'a> {
    run: &'a Run,
    key: &'a [u8],
    found: Vec<Entry>,
    continues: Option<usize>,
    error: Option<Error>,
}

/// What each lookup finds, and in how many rounds; in a round all missing blocks are read.
fn get_all(keys: &[(&Run, &[u8])], snapshot: u64) -> (Vec<Result<Vec<Entry>>>, usize) {
    let mut lookups: Vec<Lookup<'_>> = keys
        .iter()
        .map(|&(run, key)| Lookup { run, key, found: vec![], continues: None, error: None })
        .collect();
    let Some(env) = keys.first().map(|(run, _)| Arc::clone(run.env())) else {
        return (vec![], 0);
    };
    let mut open: Vec<usize> = (0..lookups.len()).collect();
    let mut rounds = 0;
    loop {
        let mut needed = Vec::new();
        for &at in &open {
            let Lookup { run, key, found, continues, .. } = &mut lookups[at];
            let mut visit = |seq, kind, value: &[u8]| {
                found.push(Entry { key: key.to_vec(), seq, kind, value: value.to_vec() });
                Ok(true)
            };
            let step = match continues.take() {
                None => run.get_cached(key, SeqNo(snapshot), &mut visit).unwrap(),
                Some(n) => run.get_cached_from(n, key, SeqNo(snapshot), &mut visit).unwrap(),
            };
            match step {
                CachedGet::Ended(wants_more) => assert!(wants_more),
                CachedGet::Missing(block) => needed.push(NeededBlock { run, block, lookup: at }),
            }
        }
        open.clear();
        if needed.is_empty() {
            break;
        }
        rounds += 1;
        read_needed(&env, &mut needed, &mut |needed, read| {
            let Lookup { run, key, found, continues, error } = &mut lookups[needed.lookup];
            let mut visit = |seq, kind, value: &[u8]| {
                found.push(Entry { key: key.to_vec(), seq, kind, value: value.to_vec() });
                Ok(true)
            };
            match read {
                Err(failed) => *error = Some(failed),
                Ok(read) => {
                    let snapshot = SeqNo(snapshot);
                    let after =
                        run.get_from_read(&needed.block, &read, key, snapshot, &mut visit).unwrap();
                    if let AfterBlock::Continues(number) = after {
                        *continues = Some(number);
                        open.push(needed.lookup);
                    }
                }
            }
        });
    }
    let found = lookups.into_iter().map(|lookup| lookup.error.map_or(Ok(lookup.found), Err));
    (found.collect(), rounds)
}

/// Reads the index, and shows the run that its keys are found: then no filter is read.
fn ready(run: &Arc<Run>) {
    get(run, &run.meta().first_key, u64::MAX).unwrap();
}

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

fn entries(count: u32) -> Vec<Entry> {
    (0..count).map(|n| put(&key(n), 1, &n.to_le_bytes().repeat(25))).collect()
}

#[test]
fn blocks_of_all_lookups_are_requested_at_once_and_each_block_once() {
    let (fixture, calls) = counted(256 << 20);
    let entries = entries(20_000);
    let runs =
        [fixture.run(options(4096), false, &entries), fixture.run(options(4096), false, &entries)];
    runs.iter().for_each(ready);
    // 100 keys far apart, each in both runs, and twice in one of them.
    let keys: Vec<[u8; 4]> = (0..100).map(|n| key(n * 200 + 100)).collect();
    let wanted: Vec<(&Run, &[u8])> = keys
        .iter()
        .flat_map(|key| [(&*runs[0], &key[..]), (&*runs[1], key), (&*runs[0], key)])
        .collect();
    let before = (*calls.reads.lock().unwrap(), fixture.env.stats.reads.load(Ordering::Relaxed));
    calls.together.lock().unwrap().clear();
    let (found, rounds) = get_all(&wanted, u64::MAX);
    for ((_, key), found) in wanted.iter().zip(found) {
        let found = found.unwrap();
        assert_eq!((found.len(), &*found[0].key), (1, *key));
    }
    assert_eq!((rounds, &calls.together.lock().unwrap()[..]), (1, &[200][..]));
    assert_eq!(*calls.reads.lock().unwrap() - before.0, 200);
    assert_eq!(fixture.env.stats.reads.load(Ordering::Relaxed) - before.1, 200);
    // Now all of them are in the cache.
    assert_eq!(get_all(&wanted, u64::MAX).1, 0);
    assert_eq!(fixture.env.budget.used_by(Part::Work), 0);
}

#[test]
fn neighbours_are_one_read() {
    let (fixture, calls) = counted(64 << 20);
    let entries = entries(2_000);
    let run = fixture.run(options(4096), false, &entries);
    let blocks = run.index().unwrap().len();
    assert!(blocks > 40);
    calls.together.lock().unwrap().clear();
    let keys: Vec<[u8; 4]> = (0..2_000).step_by(10).map(key).collect();
    let wanted: Vec<(&Run, &[u8])> = keys.iter().map(|key| (&*run, &key[..])).collect();
    let (found, rounds) = get_all(&wanted, u64::MAX);
    assert!(found.into_iter().all(|found| found.unwrap().len() == 1));
    let spans = run.meta().blocks_bytes.div_ceil(124 << 10) as usize;
    assert_eq!((rounds, &calls.together.lock().unwrap()[..]), (1, &[spans][..]));
}

/// Blocks that are being read may take 1/16 of the memory, and one batch of them half of that:
/// lookups need several batches and never more memory.
#[test]
fn little_memory_is_enough_in_several_batches() {
    let (fixture, calls) = counted(1 << 20);
    let entries = entries(20_000);
    let run = fixture.run(options(4096), false, &entries);
    ready(&run);
    let keys: Vec<[u8; 4]> = (0..240).map(|n| key(n * 80 + 40)).collect();
    let wanted: Vec<(&Run, &[u8])> = keys.iter().map(|key| (&*run, &key[..])).collect();
    calls.together.lock().unwrap().clear();
    let work = fixture.env.budget.used_by(Part::Work);
    let (found, rounds) = get_all(&wanted, u64::MAX);
    assert!(found.into_iter().all(|found| found.unwrap().len() == 1));
    let together = calls.together.lock().unwrap();
    assert_eq!((rounds, together.iter().sum::<usize>()), (1, 240));
    assert!(together.len() > 10 && together[0] > 1, "{together:?}");
    let peak = fixture.env.budget.peak_of(Part::Work);
    assert!(peak - work <= 1 << 16, "{peak}");
    assert_eq!(fixture.env.budget.used_by(Part::Work), work);
    assert!(!fixture.env.rows.is_empty(), "the cache has no room: rows are kept");
}

/// Lookups that read together return the same as single lookups, with random versions, kinds and
/// snapshots, keys that fill several blocks, a small cache and several threads.
#[test]
fn reads_together_return_what_reads_alone_return() {
    let seed = 31;
    println!("seed {seed}");
    let mut prng = Prng::new(seed);
    let mut entries = Vec::new();
    for n in 0..12_000u32 {
        let versions = if n % 300 == 0 { 100 } else { 1 + prng.below(4) / 3 };
        for version in 0..versions {
            let kind = MessageKind::from_u8(prng.below(3) as u8).unwrap();
            let value =
                if kind == MessageKind::Delete { vec![] } else { n.to_le_bytes().repeat(25) };
            let seq = SeqNo(1000 - version * 3 - prng.below(3));
            entries.push(Entry { key: key(n).to_vec(), seq, kind, value });
        }
    }
    let fixture = Fixture::with_memory(1 << 20);
    let run = fixture.run(options(4096), true, &entries);
    let attached = Arc::clone(&run).attached(SeqNo(1000));
    let check = |seed: u64| {
        let mut prng = Prng::new(seed);
        for _ in 0..100 {
            let count = prng.below(60);
            let keys: Vec<(bool, [u8; 4])> = (0..count)
                .map(|_| {
                    let step = [1, 300][prng.below(2) as usize];
                    (prng.chance(1, 4), key((prng.below(12_100) / step * step) as u32))
                })
                .collect();
            let run_of = |is_attached: bool| if is_attached { &*attached } else { &*run };
            let snapshot = if prng.chance(1, 3) { 990 + prng.below(20) } else { u64::MAX };
            let wanted: Vec<(&Run, &[u8])> =
                keys.iter().map(|(is_attached, key)| (run_of(*is_attached), &key[..])).collect();
            let (found, _) = get_all(&wanted, snapshot);
            for ((run, key), found) in wanted.iter().zip(found) {
                assert_eq!(found.unwrap(), get(run, key, snapshot).unwrap(), "{key:?} {snapshot}");
            }
        }
    };
    check(seed);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let check = &check;
            scope.spawn(move || check(seed + 1 + thread));
        }
    });
    assert_eq!(fixture.env.budget.used_by(Part::Work), 0);
}

#[test]
fn a_failed_read_fails_the_lookups_of_one_block() {
    let mut faults = None;
    let fixture = Fixture::wrapping(64 << 20, |device| -> SharedDevice {
        let device = Arc::new(Faults::over(device, &Script::default()));
        faults = Some(Arc::clone(&device));
        device
    });
    let faults = faults.unwrap();
    let run = fixture.run(options(4096), false, &entries(20_000));
    ready(&run);
    let keys: Vec<[u8; 4]> = (0..50).map(|n| key(n * 400 + 100)).collect();
    let wanted: Vec<(&Run, &[u8])> = keys.iter().map(|key| (&*run, &key[..])).collect();
    faults.set_script(&"fail read data nth=7".parse().unwrap());
    let (found, _) = get_all(&wanted, u64::MAX);
    let failed: Vec<usize> = (0..50).filter(|&i| found[i].is_err()).collect();
    assert_eq!(failed, [6]);
    // Now all blocks are in the cache except the block whose read failed.
    let (found, rounds) = get_all(&wanted, u64::MAX);
    assert!(rounds == 1 && found.iter().all(Result::is_ok));

    // A failed read of neighbours is repeated for each block.
    fixture.env.cache.clear();
    ready(&run);
    let keys: Vec<[u8; 4]> = (0..400).map(key).collect();
    let wanted: Vec<(&Run, &[u8])> = keys.iter().map(|key| (&*run, &key[..])).collect();
    faults.set_script(&"fail read data nth=1; fail read data nth=3".parse().unwrap());
    let (found, _) = get_all(&wanted, u64::MAX);
    assert_eq!(found.iter().filter(|found| found.is_err()).count(), 1);
    assert_eq!(faults.injected(), 3);
}

#[test]
fn a_damaged_block_fails_as_for_a_single_lookup() {
    let fixture = Fixture::new();
    let run = fixture.run(options(4096), false, &entries(20_000));
    let index = run.index().unwrap();
    let block = index.find(&key(8_000));
    let (offset, len) = index.extent(block);
    let file = fixture.env.space.file(0).unwrap();
    let at = run.meta().extents[0].offset() + offset + len as u64 / 2;
    let mut byte = [0];
    file.read_exact_at(at, &mut byte).unwrap();
    file.write_at(at, &[byte[0] ^ 4]).unwrap();
    fixture.env.cache.clear();
    // All keys of three neighbouring blocks.
    let keys: Vec<[u8; 4]> = (7_950..8_050).map(key).collect();
    let wanted: Vec<(&Run, &[u8])> = keys.iter().map(|key| (&*run, &key[..])).collect();
    let (found, _) = get_all(&wanted, u64::MAX);
    let errors: Vec<&Error> = found.iter().filter_map(|found| found.as_ref().err()).collect();
    let single = get(&run, &key(8_000), u64::MAX).unwrap_err();
    assert_eq!(errors.len(), 1, "the first of its lookups");
    assert_eq!(errors[0].to_string(), single.to_string());
    let is_in_it = |key: &[u8]| index.find(key) == block;
    for ((_, key), found) in wanted.iter().zip(&found) {
        let expected = if is_in_it(key) { 0 } else { 1 };
        assert_eq!(found.as_ref().map_or(0, Vec::len), expected, "{key:?}");
    }
}
