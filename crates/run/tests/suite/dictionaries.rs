//! Runs that were packed with a dictionary.

use crate::support::{Entry, Fixture, get, options, put, scan};
use frondb_block::{Codec, Dictionary};
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_core::{Direction, ErrorKind, TreeId};
use frondb_device::{Device, OpenOptions};
use frondb_run::{HeldDictionary, ReadMode, Run, RunDictionary, RunMeta, RunOptions, RunWriter};

/// Rows of words. Most words of a block occur again only in other blocks, so a dictionary is needed
/// to compress them.
fn rows(seed: u64) -> Vec<Entry> {
    let mut words = Prng::new(1);
    let words: Vec<String> = (0..4_000).map(|_| format!("{:010x}", words.below(1 << 40))).collect();
    let mut prng = Prng::new(seed);
    let row = |i: u32| {
        let value: Vec<&str> = (0..12).map(|_| &*words[prng.index(words.len())]).collect();
        put(&i.to_be_bytes(), 1, value.join(" ").as_bytes())
    };
    (0..8_000).map(row).collect()
}

fn trained(fixture: &Fixture) -> Arc<HeldDictionary> {
    let mut samples: Vec<u8> = Vec::new();
    rows(2).iter().for_each(|row| samples.extend_from_slice(&row.value));
    let dictionary = Dictionary::train(&samples, 48 << 10, 1).unwrap().unwrap();
    fixture.env.hold_dictionary(dictionary)
}

fn packed(fixture: &Fixture, held: &Arc<HeldDictionary>, rows: &[Entry]) -> Arc<Run> {
    let codec = Codec::ZstdDictionary(9);
    let options = RunOptions { codec, writes: u8::MAX, ..options(4 << 10) };
    let mut output = fixture.output(0);
    let writer = RunWriter::new(fixture.next_id(), TreeId(3), options, false);
    let mut writer = writer.with_dictionary(held, 9);
    for row in rows {
        writer.add(&mut output, &row.key, row.seq, row.kind, &row.value).unwrap();
    }
    let meta = writer.finish(&mut output).unwrap().unwrap();
    output.finish().unwrap();
    fixture.open(meta, None)
}

#[test]
fn blocks_that_a_dictionary_encoder_miscodes_are_stored_uncompressed() {
    use frondb_block::{faulty::with_faulty_encoders, miscoded_blocks};
    let (fixture, rows) = (Fixture::new(), rows(3));
    let (held, before) = (trained(&fixture), miscoded_blocks());
    let run = with_faulty_encoders(|| packed(&fixture, &held, &rows));
    assert!(miscoded_blocks() - before >= u64::from(run.meta().blocks));
    let run = reopened(&fixture, &run);
    run.verify().unwrap();
    assert_eq!(scan(&run, Direction::Forward, ReadMode::Scan, None, None).unwrap(), rows);
}

/// Clears the cache, and returns a new handle to the run, as after a restart.
fn reopened(fixture: &Fixture, run: &Run) -> Arc<Run> {
    fixture.env.cache.clear();
    fixture.open(run.meta().clone(), None)
}

#[test]
fn a_run_packed_with_a_dictionary_is_smaller_and_reads_the_same() {
    let (fixture, rows) = (Fixture::new(), rows(3));
    let plain = RunOptions { codec: Codec::Zstd(9), ..options(4 << 10) };
    let plain = fixture.run(plain, false, &rows);
    let held = trained(&fixture);
    let run = packed(&fixture, &held, &rows);
    let (small, large) = (run.meta().disk_bytes(), plain.meta().disk_bytes());
    assert!(small * 10 < large * 9, "{small} of {large} bytes");
    assert_eq!(run.meta().codec, Some(Codec::ZstdDictionary(9)));

    let run = reopened(&fixture, &run);
    drop(held);
    run.verify().unwrap();
    assert!(run.damaged_parts(&mut |_, _| {}).is_empty());
    for mode in [ReadMode::Scan, ReadMode::Merge] {
        assert_eq!(scan(&run, Direction::Forward, mode, None, None).unwrap(), rows);
    }
    for at in [0, 1, 4_321, 7_999] {
        assert_eq!(get(&run, &rows[at].key, 9).unwrap(), [rows[at].clone()]);
    }
    let blocks = run.meta().blocks as usize;
    let sample = run.sample(blocks - 1).unwrap();
    let last = &rows[rows.len() - 1].value;
    assert!(sample.windows(last.len()).any(|part| part == &last[..]));
    assert_eq!(run.sample(blocks).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn runs_share_a_dictionary_and_hold_no_more_than_their_part_of_the_memory() {
    let fixture = Fixture::new();
    let held = trained(&fixture);
    let (a, b) = (packed(&fixture, &held, &rows(3)), packed(&fixture, &held, &rows(4)));
    let of = |run: &Run| Arc::clone(run.dictionary().unwrap().unwrap().dictionary());
    assert!(Arc::ptr_eq(&of(&a), &of(&b)));

    // An eighth of this budget is less than the dictionary, which is read again for each block.
    let small = Fixture::wrapping(256 << 10, |_| Arc::new(fixture.device.clone()));
    let run = Run::new(a.meta().clone(), None, Arc::clone(&small.env));
    assert!(!Arc::ptr_eq(&of(&run), &of(&run)));
    assert_eq!(scan(&run, Direction::Forward, ReadMode::Merge, None, None).unwrap(), rows(3));
}

#[test]
fn a_damaged_dictionary_is_named_and_another_run_s_copy_helps() {
    let (fixture, rows) = (Fixture::new(), rows(3));
    let held = trained(&fixture);
    let (run, other) = (packed(&fixture, &held, &rows), packed(&fixture, &held, &rows));
    let meta = run.meta();
    let at = meta.disk_bytes() - u64::from(meta.dictionary.unwrap().bytes);
    let file = fixture.device.open("data-0000.fdb", OpenOptions::WRITE).unwrap();
    let mut byte = [0];
    let place = meta.extents[0].offset() + at + 100;
    file.read_exact_at(place, &mut byte).unwrap();
    file.write_at(place, &[byte[0] ^ 1]).unwrap();
    drop(held);

    let run = reopened(&fixture, &run);
    let error = get(&run, &rows[5].key, 9).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    let named = error.place().unwrap();
    assert_eq!((named.offset, named.what), (meta.extents[0].offset() + at, "dictionary block"));

    let other = reopened(&fixture, &other);
    assert_eq!(get(&other, &rows[5].key, 9).unwrap(), [rows[5].clone()]);
    assert_eq!(get(&run, &rows[5].key, 9).unwrap(), [rows[5].clone()]);
    assert_eq!(run.verify().unwrap_err().kind(), ErrorKind::Corruption);
    other.verify().unwrap();
}

/// If the dictionary of a run is damaged, reads fail: with any byte changed, with ends of many
/// lengths overwritten, and with metadata that refers to other bytes.
#[test]
fn no_damage_to_a_dictionary_gives_a_wrong_answer() {
    let (fixture, rows) = (Fixture::new(), rows(3));
    let held = trained(&fixture);
    let run = packed(&fixture, &held, &rows);
    drop(held);
    let meta = run.meta().clone();
    let named = meta.dictionary.unwrap();
    let file = fixture.device.open("data-0000.fdb", OpenOptions::WRITE).unwrap();
    let begin = meta.extents[0].offset() + meta.disk_bytes() - u64::from(named.bytes);
    let mut good = vec![0; named.bytes as usize];
    file.read_exact_at(begin, &mut good).unwrap();
    drop(run);

    let is_refused = |meta: &RunMeta, what: &str| {
        fixture.env.cache.clear();
        let run = fixture.open(meta.clone(), None);
        let row = &rows[77];
        for error in [get(&run, &row.key, 9).unwrap_err(), run.sample(0).unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::Corruption, "{what}: {error}");
        }
        assert!(run.dictionary().is_err() && run.verify().is_err(), "{what}");
    };
    for at in 0..good.len() {
        let place = begin + at as u64;
        file.write_at(place, &[good[at] ^ 1 << (at % 8)]).unwrap();
        is_refused(&meta, &format!("byte {at}"));
        file.write_at(place, &good[at..=at]).unwrap();
    }
    for left in (0..good.len()).step_by(97).chain(0..64).chain([good.len() - 1]) {
        let gone = good[left..].iter().map(|byte| if *byte == 0 { 1 } else { 0 });
        file.write_at(begin + left as u64, &gone.collect::<Vec<u8>>()).unwrap();
        is_refused(&meta, &format!("{left} bytes are left"));
        file.write_at(begin + left as u64, &good[left..]).unwrap();
    }
    for (bytes, hash) in
        [(named.bytes - 1, named.hash), (1, named.hash), (named.bytes, named.hash ^ 1)]
    {
        let dictionary = Some(RunDictionary { bytes, hash });
        is_refused(&RunMeta { dictionary, ..meta.clone() }, &format!("{bytes} bytes, {hash:x}"));
    }

    // Undamaged again, all reads are right.
    fixture.env.cache.clear();
    let run = fixture.open(meta, None);
    assert_eq!(scan(&run, Direction::Forward, ReadMode::Scan, None, None).unwrap(), rows);
    run.verify().unwrap();
}
