//! Point lookups and cursors in both directions return what was written. They are compared with a
//! sorted list; blocks are so small that versions of a key, long keys and large values straddle
//! them.

use crate::support::{Entry, Fixture, drain, entry_of, get, options, put, scan};
use frondb_block::Codec;
use frondb_core::codec::Reader;
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_core::{Chunk, Direction, MessageKind, SeqNo, Source};
use frondb_filter::FilterKind;
use frondb_run::{
    FILTER_PART_KEYS, INDEX_PART_BLOCKS, KeyAfter, RangeAnswer, ReadMode, Run, RunCursor, RunMeta,
    RunOptions,
};
use frondb_testkit::seed;

const KINDS: [MessageKind; 4] =
    [MessageKind::Put, MessageKind::Delete, MessageKind::Update, MessageKind::PutRef];

/// Keys with long shared parts, prefixes of each other, the empty key, lengths of all sorts.
fn random_key(prng: &mut Prng, fixed: bool) -> Vec<u8> {
    if fixed {
        return (prng.below(3) << 40 | prng.below(200)).to_be_bytes().to_vec();
    }
    let mut key = match prng.below(4) {
        0 => Vec::new(),
        1 => b"a long prefix that many keys share/".to_vec(),
        _ => b"k".to_vec(),
    };
    for _ in 0..prng.below(4) {
        key.push(*prng.pick(&[0, 1, b'a', b'b', 0xff]).unwrap());
    }
    key
}

fn random_entries(prng: &mut Prng, per_entry_seqs: bool) -> Vec<Entry> {
    let fixed = prng.chance(1, 2);
    let count = 1 + prng.below(400);
    let mut entries: Vec<Entry> = (0..count)
        .map(|i| {
            let len = if prng.chance(1, 20) { prng.below(3000) } else { prng.below(20) };
            let mut value = vec![0; len as usize];
            prng.fill(&mut value);
            Entry {
                key: random_key(prng, fixed),
                seq: SeqNo(10 + i * 3),
                kind: *prng.pick(&KINDS).unwrap(),
                value,
            }
        })
        .collect();
    entries.sort_by(|a, b| (&a.key, b.seq).cmp(&(&b.key, a.seq)));
    if !per_entry_seqs || prng.chance(1, 4) {
        entries.dedup_by(|a, b| a.key == b.key);
    }
    entries
}

fn random_options(prng: &mut Prng) -> RunOptions {
    let codec = *prng.pick(&[Codec::None, Codec::Lz4, Codec::Zstd(1)]).unwrap();
    let kinds = [FilterKind::None, FilterKind::BlockedBloom, FilterKind::BinaryFuse8];
    RunOptions {
        codec,
        tree_block_bytes: 16_384,
        block_bytes: *prng.pick(&[1, 30, 200, 1000, 16_384]).unwrap(),
        filter: *prng.pick(&kinds).unwrap(),
        filter_prefix: *prng.pick(&[None, Some(0), Some(2), Some(8)]).unwrap(),
        filter_part_keys: *prng.pick(&[1, 7, 64, FILTER_PART_KEYS]).unwrap(),
        index_part_blocks: *prng.pick(&[1, 2, 7, 40, INDEX_PART_BLOCKS]).unwrap(),
        writes: 2,
    }
}

fn check_scans(prng: &mut Prng, run: &frondb_core::sync::Arc<frondb_run::Run>, expected: &[Entry]) {
    for round in 0..24 {
        let bound = |prng: &mut Prng| {
            let near = prng.pick(expected).unwrap().key.clone();
            match prng.below(4) {
                0 => None,
                1 => Some([&near[..], &[0]].concat()),
                2 => Some(random_key(prng, near.len() == 8)),
                _ => Some(near),
            }
        };
        let (lo, mut hi) = if round < 2 { (None, None) } else { (bound(prng), bound(prng)) };
        if let Some(lo) = lo.as_ref().filter(|_| round % 2 == 0) {
            // A range of one prefix, which a filter of as many bytes may exclude.
            hi = end_of(&lo[..lo.len().min(1 + prng.index(8))]);
        }
        let inside = |entry: &&Entry| {
            lo.as_ref().is_none_or(|lo| *lo <= entry.key)
                && hi.as_ref().is_none_or(|hi| entry.key < *hi)
        };
        let mut wanted: Vec<Entry> = expected.iter().filter(inside).cloned().collect();
        if prng.chance(1, 3) {
            run.env().cache.clear();
        }
        let answer = run.ask_range(lo.as_deref().unwrap_or(b""), hi.as_deref()).unwrap();
        assert!(answer != RangeAnswer::Excluded || wanted.is_empty(), "{lo:?}..{hi:?}");
        let count = run
            .count_between(lo.as_deref().unwrap_or(b""), hi.as_deref(), u64::MAX)
            .unwrap()
            .unwrap();
        assert_eq!(count, wanted.len() as u64, "{lo:?}..{hi:?}");
        for direction in [Direction::Forward, Direction::Backward] {
            for mode in [ReadMode::Scan, ReadMode::Merge] {
                let found = scan(run, direction, mode, lo.as_deref(), hi.as_deref()).unwrap();
                assert_eq!(found, wanted, "{direction:?} {mode:?} {lo:?}..{hi:?}");
                let cursor =
                    RunCursor::new(Arc::clone(run), direction, lo.as_deref(), hi.as_deref(), mode);
                check_skips(prng, cursor.unwrap(), direction, &wanted);
            }
            wanted.reverse();
        }
    }
}

/// The smallest key above all keys with this prefix.
fn end_of(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// Scans with skips between chunks. `wanted` is what the scan would return without skips, in its
/// order.
fn check_skips(prng: &mut Prng, mut cursor: RunCursor, direction: Direction, wanted: &[Entry]) {
    let mut chunk = Chunk::new();
    let mut left = wanted;
    let mut bound: Option<Vec<u8>> = None;
    loop {
        if prng.chance(1, 2)
            && let Some(at) = prng.pick(left)
        {
            // Near and far, keys that are there and keys that are not.
            let near = left[prng.index(left.len().min(5))].key.clone();
            let mut key = if prng.chance(1, 2) { near } else { at.key.clone() };
            if prng.chance(1, 3) {
                key.push(0);
            }
            cursor.skip(&key).unwrap();
            let is_further = bound.as_ref().is_none_or(|bound| match direction {
                Direction::Forward => key > *bound,
                Direction::Backward => key < *bound,
            });
            if is_further {
                bound = Some(key);
            }
        }
        let is_before = |entry: &Entry| {
            bound.as_ref().is_some_and(|bound| match direction {
                Direction::Forward => entry.key < *bound,
                Direction::Backward => entry.key >= *bound,
            })
        };
        let passed = left.iter().take_while(|entry| is_before(entry)).count();
        let more = cursor.next_chunk(&mut chunk).unwrap();
        let mut found: Vec<Entry> = (0..chunk.len()).map(|i| entry_of(&chunk, i)).collect();
        if direction == Direction::Backward {
            found.reverse();
        }
        found.retain(|entry| !is_before(entry));
        left = &left[passed..];
        assert_eq!(found, left[..found.len().min(left.len())], "{direction:?} behind {bound:?}");
        left = &left[found.len()..];
        if !more {
            break;
        }
    }
    assert_eq!(left, [], "{direction:?} behind {bound:?}");
}

#[test]
fn runs_of_any_shape_read_as_they_were_written() {
    let seed = seed::from_env("FRONDB_RUN_SEED", 1u64);
    for round in 0..seed::from_env("FRONDB_RUN_ROUNDS", 150u64) {
        println!("FRONDB_RUN_SEED={seed}, round {round}");
        let mut prng = Prng::new(seed.wrapping_add(round));
        let fixture = Fixture::new();
        let per_entry_seqs = prng.chance(1, 2);
        let entries = random_entries(&mut prng, per_entry_seqs);
        let options = random_options(&mut prng);
        let run = fixture.run(options, per_entry_seqs, &entries);
        let meta = run.meta();
        let mut encoded = Vec::new();
        meta.encode(&mut encoded);
        assert_eq!(RunMeta::decode(&mut Reader::new(&encoded)).as_ref(), Ok(meta));
        run.verify().unwrap();
        assert_eq!(meta.unique_keys, entries.windows(2).all(|pair| pair[0].key != pair[1].key));

        // Without stored SeqNos every message has the largest SeqNo of the run.
        let mut expected = entries.clone();
        if !per_entry_seqs {
            expected.iter_mut().for_each(|entry| entry.seq = meta.max_seq);
        }
        let mut keys: Vec<Vec<u8>> = entries.iter().map(|entry| entry.key.clone()).collect();
        keys.extend((0..50).map(|_| random_key(&mut prng, false)));
        for key in &keys {
            let snapshot = prng.below(meta.max_seq.get() + 2);
            let wanted: Vec<Entry> = expected
                .iter()
                .filter(|entry| entry.key == *key && entry.seq.get() <= snapshot)
                .cloned()
                .collect();
            assert_eq!(get(&run, key, snapshot).unwrap(), wanted, "{key:?} at {snapshot}");
            let rank = run.rank(key).unwrap();
            assert!(rank <= meta.entries);
        }
        keys.sort();
        assert!(keys.iter().map(|key| run.rank(key).unwrap()).is_sorted());
        for n in 0..=entries.len() as u64 + 1 {
            let (lo, hi) = (prng.pick(&keys).unwrap(), prng.pick(&keys).unwrap());
            let hi = prng.chance(1, 2).then_some(&hi[..]);
            check_key_after(&run, &expected, lo, hi, n);
        }
        check_scans(&mut prng, &run, &expected);
    }
}

/// The block index alone tells ranges apart that are far shorter than a block.
#[test]
fn a_rank_estimates_the_place_of_a_key_in_its_block() {
    const ENTRIES: u64 = 10_000;
    let entry = |i: u64| {
        let key = [b"same", &(1000 + i * 7).to_be_bytes()[..]].concat();
        Entry { key, seq: SeqNo(10), kind: MessageKind::Put, value: Vec::new() }
    };
    let entries: Vec<Entry> = (0..ENTRIES).map(entry).collect();
    let run = Fixture::new().run(options(16_384), false, &entries);
    let largest = ENTRIES / run.index().unwrap().len() as u64;
    for (i, entry) in entries.iter().enumerate() {
        let rank = run.rank(&entry.key).unwrap();
        assert!(rank.abs_diff(i as u64) <= 4, "{rank} of {i}, in blocks of {largest}");
    }
    assert!(largest > 100, "blocks of {largest}");
}

/// Compares [`Run::key_after`] with the entries. The index does not record single entries, so its
/// count may include all entries of the first block and of the last.
fn check_key_after(run: &Arc<Run>, all: &[Entry], lo: &[u8], hi: Option<&[u8]>, n: u64) {
    let KeyAfter { key, entries } = run.key_after(lo, hi, n).unwrap();
    let inside = |entry: &&Entry| *entry.key >= *lo && hi.is_none_or(|hi| *entry.key < *hi);
    let index = run.index().unwrap();
    let largest = (0..index.len()).map(|block| index.rank(block + 1) - index.rank(block)).max();
    match key {
        Some(key) => {
            assert!(entries >= n, "{entries} of {n}");
            assert!(*key >= *lo && hi.is_none_or(|hi| *key < *hi));
            let below = all.iter().filter(inside).filter(|entry| *entry.key < *key).count() as u64;
            assert!(below <= entries && entries <= below + largest.unwrap(), "{below}, {entries}");
        }
        None => {
            let below = all.iter().filter(inside).count() as u64;
            assert!(below <= entries, "{below}, {entries}");
        }
    }
}

#[test]
fn a_lookup_ends_when_its_visitor_returns_false() {
    let fixture = Fixture::new();
    let entries: Vec<Entry> = (0..50).rev().map(|seq| put(b"k", seq, b"v")).collect();
    let run = fixture.run(options(1), true, &entries);
    assert_eq!(run.meta().blocks, 50);
    let mut seen = Vec::new();
    let all = run.get(b"k", SeqNo(40), &mut |seq, _, _| {
        seen.push(seq.get());
        Ok(seen.len() < 3)
    });
    assert!(!all.unwrap());
    assert_eq!(seen, [40, 39, 38]);
}

/// Rule 17: reading the neighbours of a large entry does not read the large entry.
#[test]
fn an_oversized_entry_has_a_block_of_its_own() {
    let fixture = Fixture::new();
    let large = vec![7; 100_000];
    let entries = [put(b"", 1, b"x"), put(b"a", 2, b"x"), put(b"b", 3, &large), put(b"c", 4, b"x")];
    let run = fixture.run(options(4096), true, &entries);
    let index = run.index().unwrap();
    let ranks: Vec<u64> = (0..=index.len()).map(|block| index.rank(block)).collect();
    assert_eq!(ranks, [0, 2, 3, 4], "messages before each block");
    assert_eq!(get(&run, b"b", 9).unwrap(), entries[2..3]);
    assert_eq!(scan(&run, Direction::Backward, ReadMode::Scan, None, None).unwrap().len(), 4);
}

#[test]
fn a_run_without_messages_is_none() {
    let fixture = Fixture::new();
    let mut output = fixture.output(0);
    let tree = frondb_core::TreeId(1);
    let writer = frondb_run::RunWriter::new(fixture.next_id(), tree, options(10), true);
    assert_eq!(writer.finish(&mut output).unwrap(), None);
    assert_eq!(output.finish().unwrap(), 0);
    assert_eq!(fixture.used_bytes(), 0);
}

#[test]
fn reads_outside_of_the_keys_and_seqnos_of_a_run_read_no_block() {
    let fixture = Fixture::new();
    let entries: Vec<Entry> = (10u8..50).map(|i| put(&[i], u64::from(i), b"v")).collect();
    let run = fixture.run(options(4), true, &entries);
    run.index().unwrap();
    let reads = || run.env().stats.reads.load(frondb_core::sync::atomic::Ordering::Relaxed);
    let before = reads();
    let scan = |lo: Option<&[u8]>, hi| scan(&run, Direction::Forward, ReadMode::Scan, lo, hi);
    assert_eq!(scan(Some(&[50]), None).unwrap(), []);
    assert_eq!(scan(None, Some(&[10])).unwrap(), []);
    assert_eq!(scan(Some(&[30]), Some(&[30])).unwrap(), []);
    assert_eq!(scan(Some(&[31]), Some(&[30])).unwrap(), []);
    assert_eq!(get(&run, &[9], 99).unwrap(), []);
    assert_eq!(get(&run, &[51], 99).unwrap(), []);
    assert_eq!(get(&run, &[20], 9).unwrap(), [], "all is newer than the snapshot");
    assert_eq!(reads(), before);
    assert_eq!(scan(Some(&[30]), Some(&[32])).unwrap(), entries[20..22]);
}

/// A short scan decodes what it needs at once, if its reader says how much that is.
#[test]
fn the_first_chunk_has_the_expected_entries() {
    let fixture = Fixture::new();
    let entries: Vec<Entry> =
        (0..4000u32).map(|i| put(&i.to_be_bytes(), 1 + u64::from(i), &[7; 9])).collect();
    let run = fixture.run(options(16 << 10), true, &entries);
    let first_chunk = |expected: usize, small: Option<usize>| {
        let (lo, mode) = (Some(&entries[1].key[..]), ReadMode::Scan);
        let mut cursor =
            RunCursor::new(Arc::clone(&run), Direction::Forward, lo, None, mode).unwrap();
        cursor.expect(expected);
        small.into_iter().for_each(|messages| cursor.keep_small(messages));
        let mut chunk = Chunk::new();
        assert!(cursor.next_chunk(&mut chunk).unwrap());
        let count = chunk.len();
        let rest = drain(&mut cursor, Direction::Forward).unwrap().len();
        assert_eq!(count + rest, entries.len() - 1);
        count
    };
    assert_eq!(first_chunk(100, None), 100);
    assert_eq!(first_chunk(0, None), 32, "unknown");
    assert_eq!(first_chunk(8, None), 8);
    assert_eq!(first_chunk(1, None), 4, "the expectation may be a little too low");
    assert_eq!(first_chunk(100, Some(4)), 4);
}

/// A caller that requests the size of a short range usually reads the range next.
#[test]
fn a_count_reads_a_short_range_at_once() {
    let fixture = Fixture::new();
    let entries: Vec<Entry> =
        (0..4000u32).map(|i| put(&i.to_be_bytes(), 1 + u64::from(i), &[7; 90])).collect();
    let run = fixture.run(options(4096), true, &entries);
    let index = run.index().unwrap();
    assert!(index.len() > 90, "{} blocks", index.len());
    let reads = || run.env().stats.reads.load(frondb_core::sync::atomic::Ordering::Relaxed);
    let count_and_scan = |blocks: std::ops::Range<usize>| {
        let (lo, hi) = (index.rank(blocks.start) + 1, index.rank(blocks.end - 1) + 2);
        let (lo, hi) = (&entries[lo as usize].key, &entries[hi as usize].key);
        let before = reads();
        let count = run.count_between(lo, Some(hi), u64::MAX).unwrap().unwrap();
        let counted = reads();
        let found = scan(&run, Direction::Forward, ReadMode::Scan, Some(lo), Some(hi)).unwrap();
        assert_eq!(count, found.len() as u64);
        (counted - before, reads() - counted)
    };
    assert_eq!(count_and_scan(10..11), (1, 0));
    assert_eq!(count_and_scan(20..22), (1, 0));
    assert_eq!(count_and_scan(30..37), (1, 0));
    assert_eq!(count_and_scan(30..37), (0, 0), "all of it is in the cache");
    // Blocks 19 and 22 are missing: they and the blocks between them are read together.
    assert_eq!(count_and_scan(19..23), (1, 0));
    // A long range is not read just to be counted.
    let (counting, scanning) = count_and_scan(50..80);
    assert!(counting == 2 && scanning > 1, "{counting} and {scanning} reads");
}
