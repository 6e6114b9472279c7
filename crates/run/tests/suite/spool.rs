//! Spools return entries of every size unchanged, report damage, and release their space.

use crate::support::Fixture;
use frondb_block::Codec;
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_core::{Chunk, ErrorKind, MessageKind, SeqNo, Source};
use frondb_device::{Device, OpenOptions};
use frondb_run::{Spool, SpoolWriter};
use frondb_testkit::MemoryDevice;

type Row = (Vec<u8>, MessageKind, Vec<u8>);

fn spool(fixture: &Fixture, codec: Codec, rows: &[Row]) -> Option<Spool> {
    let mut writer = SpoolWriter::new(Arc::clone(&fixture.env), codec, 1 << 20);
    for (key, kind, value) in rows {
        writer.add(key, *kind, value).unwrap();
    }
    writer.finish().unwrap()
}

/// Rows with ascending keys whose values come from `value`.
fn rows(count: u32, mut value: impl FnMut(u32) -> Vec<u8>) -> Vec<Row> {
    (0..count).map(|i| (i.to_be_bytes().to_vec(), MessageKind::Put, value(i))).collect()
}

fn read(spool: Spool, number: SeqNo) -> Vec<Row> {
    let mut source = Arc::new(spool).source(number);
    let (mut chunk, mut found) = (Chunk::new(), Vec::new());
    while source.next_chunk(&mut chunk).unwrap() {
        assert!(!chunk.is_empty());
        for i in 0..chunk.len() {
            assert_eq!(chunk.seqs[i], number);
            assert_eq!(chunk.prefixes[i], frondb_core::chunk::key_prefix(chunk.key(i)));
            found.push((chunk.key(i).to_vec(), chunk.kinds[i], chunk.value(i).to_vec()));
        }
    }
    found
}

#[test]
fn a_spool_returns_what_was_written() {
    let seed = 0x5900;
    let mut prng = Prng::new(seed);
    for codec in [Codec::None, Codec::Lz4, Codec::Zstd(1)] {
        let fixture = Fixture::new();
        let mut written = rows(30_000, |i| vec![i as u8; prng.index(60)]);
        // The extremes: an empty key, long keys, no value, the largest values that are stored in
        // place.
        written.insert(0, (Vec::new(), MessageKind::Put, Vec::new()));
        written.push((vec![0xFF; 32 << 10], MessageKind::PutRef, b"a reference".to_vec()));
        for n in 1..9 {
            let value = (0..64 << 10).map(|_| prng.next_u64() as u8).collect();
            written.push(([&[0xFF; 32 << 10][..], &[n]].concat(), MessageKind::Put, value));
        }
        let spool = spool(&fixture, codec, &written).unwrap();
        let raw_bytes: usize = written.iter().map(|(key, _, value)| key.len() + value.len()).sum();
        assert_eq!((spool.entries(), spool.raw_bytes()), (written.len() as u64, raw_bytes as u64));
        assert!(fixture.used_bytes() > 0);
        assert!(read(spool, SeqNo(7)) == written, "codec {codec}, seed {seed:#x}");
        assert_eq!(fixture.used_bytes(), 0);
    }
}

#[test]
fn only_frames_that_shrink_are_compressed() {
    let mut prng = Prng::new(1);
    let fixture = Fixture::new();
    let noise = rows(60_000, |_| (0..100).map(|_| prng.next_u64() as u8).collect());
    let letters = rows(60_000, |i| vec![b'a' + (i % 3) as u8; 100]);
    let both = |first: &[Row], second: &[Row]| {
        let mut both = first.to_vec();
        let last = (60_000..).zip(second);
        both.extend(
            last.map(|(i, row): (u32, _)| (i.to_be_bytes().to_vec(), row.1, row.2.clone())),
        );
        let spool = spool(&fixture, Codec::Lz4, &both).unwrap();
        let used_bytes = fixture.used_bytes();
        assert!(read(spool, SeqNo(1)) == both);
        used_bytes
    };
    let raw_bytes = 120_000 * 104;
    assert!(both(&noise, &noise) > raw_bytes);
    // The keys, which are numbers, and the offsets keep their size; the values compress to almost
    // nothing.
    assert!(both(&letters, &letters) < raw_bytes / 4);
    // The writer notices when compression begins to pay off, and when it stops paying off.
    for (first, second) in [(&noise, &letters), (&letters, &noise)] {
        let bytes = both(first, second);
        assert!(bytes < raw_bytes && bytes > raw_bytes / 2, "{bytes}");
    }
}

#[test]
fn an_empty_spool_takes_no_space() {
    let fixture = Fixture::new();
    assert!(spool(&fixture, Codec::Lz4, &[]).is_none());
    assert_eq!(fixture.used_bytes(), 0);
    // A dropped writer leaves no space in use, either.
    let mut writer = SpoolWriter::new(Arc::clone(&fixture.env), Codec::None, 1 << 20);
    for (key, kind, value) in rows(10_000, |_| vec![1; 100]) {
        writer.add(&key, kind, &value).unwrap();
    }
    assert!(fixture.used_bytes() > 0);
    drop(writer);
    assert_eq!(fixture.used_bytes(), 0);
}

fn turn_a_bit(device: &MemoryDevice, at: u64) {
    let file = device.open("data-0000.fdb", OpenOptions::WRITE).unwrap();
    let mut byte = [0];
    file.read_exact_at(at, &mut byte).unwrap();
    byte[0] ^= 0x10;
    file.write_at(at, &byte).unwrap();
}

#[test]
fn a_damaged_frame_is_named_and_those_before_it_are_read() {
    let fixture = Fixture::new();
    let spool = Arc::new(spool(&fixture, Codec::None, &rows(9_000, |_| vec![9; 100])).unwrap());
    // The damaged byte is in one of the last frames of the last batch.
    turn_a_bit(&fixture.device, 4096 + 900_000);
    let (mut source, mut chunk) = (spool.source(SeqNo(1)), Chunk::new());
    let mut frames = 0;
    let error = loop {
        match source.next_chunk(&mut chunk) {
            Ok(more) => assert!(more, "the damage was not noticed"),
            Err(error) => break error,
        }
        frames += 1;
    };
    assert!((40..58).contains(&frames), "{frames}");
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    let place = error.place().unwrap();
    assert_eq!((&*place.file, place.what), ("data-0000.fdb", "spool block"));
}
