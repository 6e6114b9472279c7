//! A damaged byte is an error that says where it is, and only what lies in its block fails.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use frondb_core::limits::PAGE_BYTES;
use frondb_core::sync::Arc;
use frondb_core::{Direction, ErrorKind};
use frondb_device::{Device, OpenOptions, SharedFile};
use frondb_run::{ReadMode, Run};
use support::{Entry, Fixture, get, options, put, scan};

struct Damaged {
    fixture: Fixture,
    run: Arc<Run>,
    entries: Vec<Entry>,
    file: SharedFile,
}

impl Damaged {
    fn new() -> Self {
        let fixture = Fixture::new();
        // Another run first, so that offsets in the run and in the file differ.
        fixture.run(options(100), true, &[put(b"x", 1, b"y")]);
        let entry = |i: u32| put(&i.to_be_bytes(), 1 + u64::from(i), &[i as u8; 60]);
        let entries: Vec<Entry> = (0..400).map(entry).collect();
        let run = fixture.run(options(500), true, &entries);
        assert_eq!(run.meta().extents.len(), 1);
        let file = fixture.device.open("data-0000.fdb", OpenOptions::WRITE).unwrap();
        Self { fixture, run, entries, file }
    }

    /// Turns a bit of the byte at this logical offset and forgets what is cached.
    fn flip(&self, offset: u64) {
        let at = self.run.meta().extents[0].offset() + offset;
        let mut byte = [0];
        self.file.read_exact_at(at, &mut byte).unwrap();
        byte[0] ^= 0x10;
        self.file.write_at(at, &byte).unwrap();
        self.fixture.env.cache.clear();
    }

    fn assert_place(&self, error: &frondb_core::Error, offset: u64, what: &str) {
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        let place = error.place().unwrap();
        let expected = self.run.meta().extents[0].offset() + offset;
        assert_eq!((&*place.file, place.offset, place.what), ("data-0000.fdb", expected, what));
        assert!(error.message().contains("run 2"), "{error}");
    }
}

#[test]
fn a_damaged_block_fails_alone() {
    let damaged = Damaged::new();
    let Damaged { run, entries, .. } = &damaged;
    let index = run.index().unwrap();
    let (offset, len) = index.extent(7);
    damaged.flip(offset + len as u64 / 2);
    let (first, end) = (index.rank(7) as usize, index.rank(8) as usize);
    for (i, entry) in entries.iter().enumerate() {
        match get(run, &entry.key, 999) {
            Ok(found) => {
                assert!(!(first..end).contains(&i));
                assert_eq!(found, std::slice::from_ref(entry));
            }
            Err(error) => {
                assert!((first..end).contains(&i));
                damaged.assert_place(&error, offset, "data block");
            }
        }
    }
    // A count needs the blocks of the bounds, whatever it reads beside them.
    let at = |block: usize| &entries[index.rank(block) as usize + 1].key;
    for (lo, hi) in [(6, 8), (4, 9)] {
        damaged.fixture.env.cache.clear();
        let count = run.count_between(at(lo), Some(at(hi))).unwrap();
        assert_eq!(count, index.rank(hi) - index.rank(lo));
    }
    for (lo, hi) in [(7, 9), (5, 7), (7, 7)] {
        let (lo, hi) = (at(lo), [&at(hi)[..], &[0]].concat());
        damaged.fixture.env.cache.clear();
        let error = run.count_between(lo, Some(&hi)).unwrap_err();
        damaged.assert_place(&error, offset, "data block");
    }
    // Walks hand out everything in front of it, whatever was read ahead.
    for mode in [ReadMode::Scan, ReadMode::Merge] {
        let (lo, hi) = (&entries[first].key, &entries[end].key);
        let below = scan(run, Direction::Forward, mode, None, Some(lo)).unwrap();
        let above = scan(run, Direction::Backward, mode, Some(hi), None).unwrap();
        assert_eq!((below.len(), above.len()), (first, entries.len() - end));
        for direction in [Direction::Forward, Direction::Backward] {
            let error = scan(run, direction, mode, None, None).unwrap_err();
            damaged.assert_place(&error, offset, "data block");
        }
    }
    damaged.assert_place(&run.verify().unwrap_err(), offset, "data block");
}

#[test]
fn damage_of_index_and_filter_names_them() {
    let damaged = Damaged::new();
    let meta = damaged.run.meta();
    let key = &damaged.entries[3].key;
    damaged.flip(meta.blocks_bytes + 9);
    let error = damaged.run.index().unwrap_err();
    damaged.assert_place(&error, meta.blocks_bytes, "index block");
    damaged.flip(meta.blocks_bytes + 9);
    assert_eq!(get(&damaged.run, key, 999).unwrap().len(), 1);

    let filter = meta.blocks_bytes + u64::from(meta.index_bytes);
    damaged.flip(filter + 40);
    damaged.assert_place(&get(&damaged.run, key, 999).unwrap_err(), filter, "filter block");
    // Who needs no filter reads on.
    let all = scan(&damaged.run, Direction::Forward, ReadMode::Scan, None, None).unwrap();
    assert_eq!(all.len(), damaged.entries.len());
}

#[test]
fn verify_finds_every_damaged_byte() {
    let damaged = Damaged::new();
    for offset in (0..damaged.run.meta().disk_bytes()).step_by(61) {
        damaged.flip(offset);
        let error = damaged.run.verify().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        let start = error.place().unwrap().offset - damaged.run.meta().extents[0].offset();
        assert!(start <= offset && offset - start < 20_000, "{offset}: {error}");
        damaged.flip(offset);
    }
    damaged.run.verify().unwrap();
}

#[test]
fn verify_compares_with_what_the_manifest_counts() {
    let damaged = Damaged::new();
    let right = damaged.run.meta().clone();
    let wrong = |change: fn(&mut frondb_run::RunMeta)| {
        let mut meta = right.clone();
        change(&mut meta);
        assert_ne!(meta, right);
        let error = damaged.fixture.open(meta, None).verify().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    };
    wrong(|meta| meta.entries += 1);
    wrong(|meta| meta.deletes += 1);
    wrong(|meta| meta.raw_bytes -= 1);
    wrong(|meta| meta.max_seq.0 -= 1);
    wrong(|meta| meta.min_seq.0 += 1);
    wrong(|meta| meta.first_key = Box::from([0]));
    wrong(|meta| meta.last_key = Box::from([9]));
}

/// A run whose index cannot be read loses the ranges of its damaged blocks and no others.
#[test]
fn without_its_index_a_run_gives_what_its_blocks_have() {
    let damaged = Damaged::new();
    let Damaged { run, entries, .. } = &damaged;
    let index = run.index().unwrap();
    let right: Vec<_> = (0..index.len()).map(|block| index.extent(block)).collect();
    let end = run.meta().blocks_bytes;
    damaged.flip(end + 9);
    assert_eq!(run.index().unwrap_err().kind(), ErrorKind::Corruption);
    assert_eq!(run.damaged_parts(&mut |_, _| {}).len(), 0);
    let rebuilt = run.index().unwrap();
    assert_eq!((0..rebuilt.len()).map(|block| rebuilt.extent(block)).collect::<Vec<_>>(), right);
    for mode in [ReadMode::Scan, ReadMode::Merge] {
        for direction in [Direction::Forward, Direction::Backward] {
            let all = scan(run, direction, mode, None, None).unwrap();
            assert_eq!(all.len(), entries.len());
        }
    }
    // Payload, header and length of a block in the middle, and of the last one.
    let (middle, last) = (right.len() / 2, right.len() - 1);
    let in_middle = [9, 17, 18, 19, 23, 60].map(|at| (middle, at));
    for (block, at) in in_middle.into_iter().chain([(1, 40), (last, 17), (last, 30)]) {
        let damaged = Damaged::new();
        let run = &damaged.run;
        damaged.flip(end + 9);
        damaged.flip(right[block].0 + at);
        let parts = run.damaged_parts(&mut |_, _| {});
        let [part] = &parts[..] else { panic!("{block}, {at}: {parts:?}") };
        damaged.assert_place(&part.error, right[block].0, "data block");
        // Other versions of the last readable key may lie in the damaged block.
        let first = index.rank(block) as usize;
        assert_eq!(part.lo, entries[first - 1].key, "{block}, {at}");
        assert_eq!(part.hi.as_deref(), Some(&*run.meta().last_key), "{block}, {at}");
        for mode in [ReadMode::Scan, ReadMode::Merge] {
            for direction in [Direction::Forward, Direction::Backward] {
                let below = scan(run, direction, mode, None, Some(&part.lo)).unwrap();
                assert_eq!(below.len(), first - 1, "{block}, {at}");
            }
        }
    }
}

/// Without an index, blocks prove nothing once one of them lies at the wrong place: the run is lost whole.
#[test]
fn without_its_index_a_run_with_a_misplaced_block_is_lost_whole() {
    let damaged = Damaged::new();
    let Damaged { run, file, .. } = &damaged;
    let index = run.index().unwrap();
    let start = run.meta().extents[0].offset();
    let extents: Vec<_> = (0..index.len()).map(|block| index.extent(block)).collect();
    let mut pairs =
        (0..extents.len()).flat_map(|to| (0..extents.len()).map(move |from| (from, to)));
    let of_one_length =
        |(from, to): &(usize, usize)| from != to && extents[*from].1 == extents[*to].1;
    let later = pairs.clone().find(|pair| of_one_length(pair) && pair.0 > pair.1 + 3).unwrap();
    let earlier = pairs.find(|pair| of_one_length(pair) && pair.0 + 3 < pair.1).unwrap();
    damaged.flip(run.meta().blocks_bytes + 9);
    for (from, to) in [later, earlier] {
        let mut right = vec![0; extents[to].1];
        let mut copy = right.clone();
        file.read_exact_at(start + extents[to].0, &mut right).unwrap();
        file.read_exact_at(start + extents[from].0, &mut copy).unwrap();
        file.write_at(start + extents[to].0, &copy).unwrap();
        let parts = run.damaged_parts(&mut |_, _| {});
        let [part] = &parts[..] else { panic!("{from} over {to}: {parts:?}") };
        assert_eq!(
            (&*part.lo, part.hi.as_deref()),
            (&*run.meta().first_key, Some(&*run.meta().last_key))
        );
        assert_eq!(run.index().unwrap_err().kind(), ErrorKind::Corruption);
        file.write_at(start + extents[to].0, &right).unwrap();
    }
    assert_eq!(run.damaged_parts(&mut |_, _| {}).len(), 0);
}

/// When a file ends in the middle of a run, the blocks before the end can be read.
#[test]
fn of_a_run_that_is_cut_the_blocks_before_the_cut_are_read() {
    let damaged = Damaged::new();
    let Damaged { run, entries, .. } = &damaged;
    let index = run.index().unwrap();
    // What is read are whole pages.
    let cut = (run.meta().blocks_bytes / 2).next_multiple_of(PAGE_BYTES as u64);
    let is_behind = |block: &usize| index.extent(*block).0 + index.extent(*block).1 as u64 > cut;
    let block = (0..index.len()).find(is_behind).unwrap();
    assert!(block > 5 && block + 5 < index.len());
    damaged.file.set_len(run.meta().extents[0].offset() + cut).unwrap();
    damaged.fixture.env.cache.clear();
    let parts = run.damaged_parts(&mut |_, _| {});
    let first = index.rank(block) as usize;
    assert!(!parts.is_empty());
    assert_eq!(parts[0].lo, entries[first - 1].key);
    assert!(
        parts.iter().all(|part| part.hi.is_none() || part.hi >= Some(entries[first].key.clone()))
    );
    assert_eq!(parts.last().unwrap().hi.as_deref(), Some(&*run.meta().last_key));
    let below = scan(run, Direction::Forward, ReadMode::Scan, None, Some(&parts[0].lo)).unwrap();
    assert_eq!(below, &entries[..first - 1]);
}
