//! A damaged byte causes an error that names file and offset, and only reads of its block fail.

use crate::support::{Entry, Fixture, get, options, put, scan};
use frondb_core::limits::PAGE_BYTES;
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_core::{Direction, ErrorKind};
use frondb_device::{Device, OpenOptions, SharedFile};
use frondb_run::{DamagedPart, FILTER_PART_KEYS, INDEX_PART_BLOCKS, ReadMode, Run, RunOptions};
use frondb_testkit::seed;

struct Damaged {
    fixture: Fixture,
    run: Arc<Run>,
    entries: Vec<Entry>,
    file: SharedFile,
}

impl Damaged {
    fn new() -> Self {
        Self::with_index_parts(INDEX_PART_BLOCKS)
    }

    fn with_index_parts(index_part_blocks: u32) -> Self {
        let fixture = Fixture::new();
        // Another run first, so that offsets in the run and in the file differ.
        fixture.run(options(100), true, &[put(b"x", 1, b"y")]);
        let entry = |i: u32| put(&i.to_be_bytes(), 1 + u64::from(i), &[i as u8; 60]);
        let entries: Vec<Entry> = (0..400).map(entry).collect();
        let options = RunOptions { index_part_blocks, ..options(500) };
        let run = fixture.run(options, true, &entries);
        assert_eq!(run.meta().extents.len(), 1);
        let file = fixture.device.open("data-0000.fdb", OpenOptions::WRITE).unwrap();
        Self { fixture, run, entries, file }
    }

    /// Inverts a bit of the byte at this logical offset and clears the cache.
    fn flip(&self, offset: u64) {
        self.flip_on_disk(offset);
        self.fixture.env.cache.clear();
    }

    /// Inverts a bit of the byte at this logical offset.
    fn flip_on_disk(&self, offset: u64) {
        let at = self.run.meta().extents[0].offset() + offset;
        let mut byte = [0];
        self.file.read_exact_at(at, &mut byte).unwrap();
        byte[0] ^= 0x10;
        self.file.write_at(at, &byte).unwrap();
    }

    fn assert_place(&self, error: &frondb_core::Error, offset: u64, what: &str) {
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        let place = error.place().unwrap();
        let expected = self.run.meta().extents[0].offset() + offset;
        assert_eq!((&*place.file, place.offset, place.what), ("data-0000.fdb", expected, what));
        assert!(error.message().contains("run 2"), "{error}");
    }
}

/// Metadata and block indexes whose checksums are right may still be wrong, because they are forged
/// or belong to another run.
#[test]
fn a_run_that_reaches_beyond_its_extents_is_damage() {
    let Damaged { fixture, run, entries, .. } = Damaged::new();
    let mut meta = run.meta().clone();
    meta.extents[0].pages = 1;
    let short = fixture.open(meta, None);
    fixture.env.cache.clear();
    let results = entries.iter().map(|entry| get(&short, &entry.key, 999).map(drop));
    let scanned = scan(&short, Direction::Forward, ReadMode::Scan, None, None).map(drop);
    let errors: Vec<_> = results.chain([scanned]).filter_map(Result::err).collect();
    assert!(errors.len() > 1);
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    }
}

/// A running database may have the index in memory for weeks. Its next open needs the file.
#[test]
fn a_verification_reads_the_index_on_disk_and_not_the_one_in_the_cache() {
    for index_part_blocks in [INDEX_PART_BLOCKS, 16] {
        let damaged = Damaged::with_index_parts(index_part_blocks);
        let Damaged { run, entries, .. } = &damaged;
        get(run, &entries[0].key, 999).unwrap();
        run.verify().unwrap();
        let offset = run.meta().blocks_bytes;
        damaged.flip_on_disk(offset + 20);
        get(run, &entries[0].key, 999).unwrap();
        damaged.assert_place(&run.verify().unwrap_err(), offset, "index block");
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
    // A count needs the blocks of the bounds, whatever else it reads.
    let at = |block: usize| &entries[index.rank(block) as usize + 1].key;
    for (lo, hi) in [(6, 8), (4, 9)] {
        damaged.fixture.env.cache.clear();
        let count = run.count_between(at(lo), Some(at(hi)), u64::MAX).unwrap().unwrap();
        assert_eq!(count, index.rank(hi) - index.rank(lo));
    }
    for (lo, hi) in [(7, 9), (5, 7), (7, 7)] {
        let (lo, hi) = (at(lo), [&at(hi)[..], &[0]].concat());
        damaged.fixture.env.cache.clear();
        let error = run.count_between(lo, Some(&hi), u64::MAX).unwrap_err();
        damaged.assert_place(&error, offset, "data block");
    }
    // Cursors return everything before the damage, however far they have read ahead.
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
    // A handle that does not know yet whether its lookups find their keys.
    let new = damaged.fixture.open(meta.clone(), None);
    damaged.assert_place(&get(&new, key, 999).unwrap_err(), filter, "filter block");
    // A reader that needs no filter is not affected.
    let all = scan(&damaged.run, Direction::Forward, ReadMode::Scan, None, None).unwrap();
    assert_eq!(all.len(), damaged.entries.len());
}

#[test]
fn verify_finds_every_damaged_byte() {
    for damaged in [Damaged::new(), Damaged::with_index_parts(7)] {
        let (run, meta) = (&damaged.run, damaged.run.meta());
        let index = meta.blocks_bytes..meta.blocks_bytes + u64::from(meta.index_bytes);
        for offset in (0..meta.disk_bytes()).step_by(61).chain(index.step_by(17)) {
            damaged.flip(offset);
            let error = run.verify().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
            let start = error.place().unwrap().offset - meta.extents[0].offset();
            assert!(start <= offset && offset - start < 20_000, "{offset}: {error}");
            damaged.flip(offset);
        }
        run.verify().unwrap();
    }
}

/// Where a part of the index is damaged, the blocks of the other parts can be read.
#[test]
fn a_damaged_part_of_the_index_fails_alone() {
    let damaged = Damaged::with_index_parts(7);
    let Damaged { run, entries, .. } = &damaged;
    assert!(run.meta().index_parts > 5, "{} parts", run.meta().index_parts);
    let index = run.index().unwrap();
    damaged.flip(run.meta().blocks_bytes + 9);
    // An index part of 7 blocks may have a quarter more, because it waits for the end of a filter
    // part.
    let end = index.rank(8) as usize;
    for (i, entry) in entries.iter().enumerate() {
        match get(run, &entry.key, 999) {
            Ok(found) => assert!(i >= end && found == std::slice::from_ref(entry), "{i}"),
            Err(error) => {
                assert!(i < end, "{i}: {error}");
                damaged.assert_place(&error, run.meta().blocks_bytes, "index block");
            }
        }
    }
    let top = run.meta().blocks_bytes + u64::from(run.meta().index_bytes)
        - u64::from(run.meta().top_index_bytes);
    damaged.flip(top + 9);
    let new = damaged.fixture.open(run.meta().clone(), None);
    damaged.assert_place(&get(&new, &entries[399].key, 999).unwrap_err(), top, "index block");
}

#[test]
fn verify_compares_the_counts_with_the_manifest() {
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

impl Damaged {
    /// Writes zeros where the file has these pages of the run, as a salvage reads them after the
    /// end of a file.
    fn lose_pages(&self, from: u64, to: u64) {
        let page = PAGE_BYTES as u64;
        let to = to.next_multiple_of(page).min(self.run.meta().extents[0].bytes());
        let from = from / page * page;
        let zeros = vec![0; (to - from) as usize];
        self.file.write_at(self.run.meta().extents[0].offset() + from, &zeros).unwrap();
        self.fixture.env.cache.clear();
    }

    /// A run of a few or many entries, of small or large blocks, some keys with many versions.
    fn random(prng: &mut Prng) -> Self {
        let fixture = Fixture::new();
        let mut entries = Vec::new();
        let has_versions = prng.chance(1, 2);
        let zeros = prng.chance(1, 3);
        for key in 0..[1, 3, 40, 400][prng.index(4)] {
            let versions = if has_versions && prng.chance(1, 4) { 1 + prng.below(30) } else { 1 };
            let longest = if prng.chance(1, 20) { 20_000 } else { 200 };
            for version in (0..versions).rev() {
                let mut value = vec![0; prng.index(longest)];
                if !zeros {
                    prng.fill(&mut value);
                }
                let seq = 10 + if has_versions { version } else { 0 };
                entries.push(put(&u32::to_be_bytes(key * 3), seq, &value));
            }
        }
        let filter_part_keys = [1, 7, 64, FILTER_PART_KEYS][prng.index(4)];
        let options = options([256, 500, 4000, 30_000][prng.index(4)]);
        let index_part_blocks = [1, 3, 20, INDEX_PART_BLOCKS][prng.index(4)];
        let options = RunOptions { filter_part_keys, index_part_blocks, ..options };
        let run = fixture.run(options, has_versions, &entries);
        assert_eq!(run.meta().extents.len(), 1);
        let file = fixture.device.open("data-0000.fdb", OpenOptions::WRITE).unwrap();
        Self { fixture, run, entries, file }
    }

    fn lose_index(&self) {
        let from = self.run.meta().blocks_bytes;
        self.lose_pages(from, from + u64::from(self.run.meta().index_bytes));
    }

    /// Returns the damaged parts, and asserts that every entry outside of them can be read.
    fn parts(&self) -> Vec<DamagedPart> {
        let parts = self.run.damaged_parts(&mut |_, _| {});
        let mut lo: Option<Vec<u8>> = None;
        for part in &parts {
            if lo.as_ref().is_none_or(|lo| *lo < part.lo) {
                self.assert_readable(lo.as_deref(), Some(&part.lo));
            }
            lo = lo.max(Some([&part.hi.clone().unwrap()[..], &[0]].concat()));
        }
        self.assert_readable(lo.as_deref(), None);
        parts
    }

    /// Asserts that scans of `[lo, hi)` in both modes and directions return exactly the entries of
    /// that range. Checks nothing if the range has none.
    fn assert_readable(&self, lo: Option<&[u8]>, hi: Option<&[u8]>) {
        let is_in = |entry: &&Entry| {
            lo.is_none_or(|lo| *entry.key >= *lo) && hi.is_none_or(|hi| *entry.key < *hi)
        };
        let right: Vec<Entry> = self.entries.iter().filter(is_in).cloned().collect();
        if right.is_empty() {
            return;
        }
        for mode in [ReadMode::Scan, ReadMode::Merge] {
            for direction in [Direction::Forward, Direction::Backward] {
                let mut found = scan(&self.run, direction, mode, lo, hi).unwrap();
                if direction == Direction::Backward {
                    found.reverse();
                }
                assert_eq!(found, right);
            }
        }
    }
}

/// A run of which only the index is damaged can be read completely.
#[test]
fn a_damaged_index_is_rebuilt_from_sound_blocks() {
    let ends = |damaged: &Damaged| (9, u64::from(damaged.run.meta().index_bytes) - 9);
    for (part_blocks, is_end) in [(INDEX_PART_BLOCKS, false), (7, false), (7, true), (1, true)] {
        let damaged = Damaged::with_index_parts(part_blocks);
        let index = damaged.run.index().unwrap();
        // Damages the only part, the first part, or the top index, which this handle has in memory.
        get(&damaged.run, &damaged.entries[0].key, 999).unwrap();
        let at = if is_end { ends(&damaged).1 } else { ends(&damaged).0 };
        damaged.flip(damaged.run.meta().blocks_bytes + at);
        assert_eq!(damaged.run.index().unwrap_err().kind(), ErrorKind::Corruption);
        assert_eq!(damaged.parts().len(), 0);
        let rebuilt = damaged.run.index().unwrap();
        assert_eq!(rebuilt.len(), index.len());
        assert!((0..index.len()).all(|block| rebuilt.extent(block) == index.extent(block)));
        for entry in &damaged.entries {
            assert_eq!(get(&damaged.run, &entry.key, 999).unwrap(), std::slice::from_ref(entry));
        }
    }
}

/// If a part of the index and one of its blocks are damaged, only the keys of this part are lost.
#[test]
fn a_part_of_the_index_that_cannot_be_rebuilt_is_lost_alone() {
    for of_part in [0, 2, 4] {
        let damaged = Damaged::with_index_parts(7);
        let Damaged { run, entries, .. } = &damaged;
        let index = run.index().unwrap();
        // Parts have eight blocks.
        let (first, end) = (8 * of_part, (8 * of_part + 8).min(index.len()));
        let parts = u64::from(run.meta().index_parts);
        let part_bytes = u64::from(run.meta().index_bytes - run.meta().top_index_bytes) / parts;
        damaged.flip(run.meta().blocks_bytes + part_bytes * of_part as u64 + part_bytes / 2);
        damaged.flip(index.extent(first + 3).0 + 30);
        // A block of another part is damaged, too.
        let other = if of_part == 0 { 20 } else { 1 };
        damaged.flip(index.extent(other).0 + 30);
        let lost = damaged.parts();
        assert_eq!(lost.len(), 2);
        let of_part = (index.rank(end) - index.rank(first)) as usize;
        let of_keys = |part: &DamagedPart| {
            let hi = part.hi.as_deref().unwrap();
            entries.iter().filter(|entry| *entry.key >= *part.lo && *entry.key <= *hi).count()
        };
        let most = lost.iter().map(of_keys).max();
        assert!(most.is_some_and(|n| n.abs_diff(of_part) <= 1), "{most:?}");
    }
}

/// When pages of the index are missing, the blocks before the first damaged one and those after
/// missing pages can be read.
#[test]
fn blocks_that_are_certain_can_be_read_without_the_index() {
    let whole = Damaged::new();
    let index = whole.run.index().unwrap();
    let middle = index.len() / 2;
    let (offset, _) = index.extent(middle);
    // The block before the damaged one counts as lost, and other versions of its last key may be
    // there.
    let (lost_from, _) = index.extent(middle - 1);
    let last = &whole.entries[index.rank(middle - 1) as usize - 1].key;
    // Bytes of the block's frame: its kind, its lengths and its payload.
    for at in [9, 17, 18, 19, 23, 60] {
        let damaged = Damaged::new();
        damaged.lose_index();
        damaged.flip(offset + at);
        let parts = damaged.parts();
        damaged.assert_place(&parts[0].error, lost_from, "data block");
        assert_eq!((parts.len(), &parts[0].lo), (1, last), "{at}");
        assert_eq!(parts[0].hi.as_deref(), Some(&*damaged.run.meta().last_key));
    }
    // A page in the middle, and the first one.
    for missing in [offset, 0] {
        let damaged = Damaged::new();
        damaged.lose_index();
        damaged.lose_pages(missing, missing + 1);
        let parts = damaged.parts();
        assert_eq!(parts.len(), 2);
        let lost = |i: &Entry| {
            parts.iter().any(|part| i.key >= part.lo && Some(&i.key) <= part.hi.as_ref())
        };
        let lost = damaged.entries.iter().filter(|entry| lost(entry)).count();
        assert!(lost < damaged.entries.len() * 2 / 3, "{lost} entries are lost");
    }
}

/// The whole run is lost if its index and one of its blocks are damaged. It is also lost if pages
/// of the index are missing and a block is in the wrong place.
#[test]
fn a_whole_run_is_lost_where_its_blocks_are_not_certain() {
    let damaged = Damaged::new();
    let Damaged { run, file, .. } = &damaged;
    let index = run.index().unwrap();
    let start = run.meta().extents[0].offset();
    let extents: Vec<_> = (0..index.len()).map(|block| index.extent(block)).collect();
    let whole = (&*run.meta().first_key, Some(&*run.meta().last_key));
    damaged.flip(run.meta().blocks_bytes + 9);
    damaged.flip(extents[4].0 + 50);
    let parts = damaged.parts();
    assert_eq!((parts.len(), &*parts[0].lo, parts[0].hi.as_deref()), (1, whole.0, whole.1));
    damaged.flip(extents[4].0 + 50);
    damaged.lose_index();
    let numbers = 0..extents.len() - 8;
    let pairs = numbers.clone().flat_map(|to| numbers.clone().map(move |from| (from, to)));
    let of_one_length = |(from, to): &(usize, usize)| extents[*from].1 == extents[*to].1;
    let pairs: Vec<_> = pairs.filter(of_one_length).collect();
    let later = pairs.iter().find(|(from, to)| *from > to + 3);
    let earlier = pairs.iter().find(|(from, to)| from + 3 < *to);
    for (from, to) in [*later.unwrap(), *earlier.unwrap()] {
        let mut right = vec![0; extents[to].1];
        let mut copy = right.clone();
        file.read_exact_at(start + extents[to].0, &mut right).unwrap();
        file.read_exact_at(start + extents[from].0, &mut copy).unwrap();
        file.write_at(start + extents[to].0, &copy).unwrap();
        let parts = damaged.parts();
        assert_eq!((parts.len(), &*parts[0].lo, parts[0].hi.as_deref()), (1, whole.0, whole.1));
        assert_eq!(run.index().unwrap_err().kind(), ErrorKind::Corruption);
        file.write_at(start + extents[to].0, &right).unwrap();
    }
    assert_eq!(damaged.parts().len(), 1);
}

/// When a file ends in the middle of a run, the blocks before the end can be read.
#[test]
fn the_blocks_before_the_cut_of_a_truncated_run_are_read() {
    let damaged = Damaged::new();
    let Damaged { run, entries, .. } = &damaged;
    let index = run.index().unwrap();
    // The device reads whole pages.
    let cut = (run.meta().blocks_bytes / 2).next_multiple_of(PAGE_BYTES as u64);
    let is_behind = |block: &usize| index.extent(*block).0 + index.extent(*block).1 as u64 > cut;
    let block = (0..index.len()).find(is_behind).unwrap();
    assert!(block > 5 && block + 5 < index.len());
    damaged.file.set_len(run.meta().extents[0].offset() + cut).unwrap();
    damaged.fixture.env.cache.clear();
    let parts = damaged.parts();
    // The last block before the cut counts as lost, and other versions of its last key may be
    // there.
    let first = index.rank(block - 1) as usize;
    assert_eq!(parts[0].lo, entries[first - 1].key);
    assert_eq!(parts.last().unwrap().hi.as_deref(), Some(&*run.meta().last_key));
}

/// Random damage of many kinds: nothing panics, and every entry outside of the listed parts is read
/// unchanged. `FRONDB_SEED` is the first seed, `FRONDB_FLIPS` the number of databases, in hundreds.
#[test]
fn entries_outside_of_the_damaged_parts_are_read_unchanged() {
    let first = seed::from_env("FRONDB_SEED", 1);
    for seed in first..first + 100 * seed::from_env("FRONDB_FLIPS", 4) {
        let mut prng = Prng::new(seed);
        let damaged = Damaged::random(&mut prng);
        let end = damaged.run.meta().blocks_bytes;
        match prng.below(4) {
            0 => {}
            1 => damaged.flip(end + prng.below(u64::from(damaged.run.meta().index_bytes))),
            _ => damaged.lose_index(),
        }
        for _ in 0..prng.below(4) {
            let at = prng.below(end);
            match prng.below(3) {
                0 => damaged.lose_pages(at, at + prng.below(6) * PAGE_BYTES as u64 + 1),
                1 => damaged.lose_pages(at, damaged.run.meta().disk_bytes()),
                _ => damaged.flip(at),
            }
        }
        let parts = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| damaged.parts()));
        assert!(parts.is_ok(), "FRONDB_SEED={seed}");
    }
}
