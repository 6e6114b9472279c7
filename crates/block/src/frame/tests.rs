//! A record is valid only in the place where it was written, and never with a flipped bit.

use frondb_core::prng::Prng;

use super::scan::{ScanRange, Scanner, Step, Stop, WINDOW_BYTES};
use super::*;

const PLACE: RecordPlace = RecordPlace { generation: 7, position: 5000 };

fn record(body: Body<'_>, synced: Option<u64>) -> Vec<u8> {
    let mut out = vec![0xAA];
    let bytes = append(&mut out, PLACE, 4, synced, body).unwrap();
    assert_eq!(out.len(), 1 + bytes);
    out.remove(0);
    out
}

fn lz4(raw: &[u8]) -> Vec<u8> {
    let mut block = Vec::new();
    let raw_bytes =
        compress(&[raw], &mut Vec::new(), &mut block, true).expect("the bytes are compressible");
    record(Body::Lz4 { raw_bytes, block: &block }, Some(4000))
}

#[test]
fn a_record_is_these_bytes() {
    let bytes = record(Body::Raw(&[b"hel", b"lo"]), Some(4990));
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "4dbde7c80a3cf29d06000000020410550a68656c6c6f");
}

#[test]
fn appended_records_are_decoded() {
    let mut scratch = Vec::new();
    let parts: [&[u8]; 3] = [b"a", b"", b"bcd"];
    let raw = record(Body::Raw(&parts), None);
    let frame = decode(&raw, PLACE, &mut scratch).unwrap();
    assert_eq!((frame.kind, frame.synced, frame.payload), (4, None, &b"abcd"[..]));
    assert_eq!((frame.frame_bytes, frame.in_scratch), (raw.len(), false));
    let text = vec![b'x'; 5000];
    let packed = lz4(&text);
    assert!(packed.len() < 200);
    let frame = decode(&packed, PLACE, &mut scratch).unwrap();
    assert_eq!((frame.synced, frame.payload), (Some(4000), &text[..]));
    assert!(frame.in_scratch);
}

#[test]
fn an_incompressible_record_is_not_compressed() {
    let mut noise = vec![0; 1000];
    Prng::new(1).fill(&mut noise);
    assert_eq!(compress(&[&noise], &mut Vec::new(), &mut Vec::new(), true), None);
    assert_eq!(compress(&[b"short"], &mut Vec::new(), &mut Vec::new(), true), None);
}

#[test]
fn a_record_is_valid_only_in_its_place() {
    let bytes = record(Body::Raw(&[b"hello"]), None);
    let mut scratch = Vec::new();
    for place in [
        RecordPlace { generation: 6, ..PLACE },
        RecordPlace { position: 4999, ..PLACE },
        RecordPlace { generation: 5000, position: 7 },
    ] {
        assert!(decode(&bytes, place, &mut scratch).is_err(), "{place:?}");
    }
}

#[test]
fn every_flipped_bit_and_every_cut_is_seen() {
    let mut scratch = Vec::new();
    for good in [record(Body::Raw(&[b"hello"]), Some(10)), lz4(&[5; 300])] {
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&bytes, PLACE, &mut scratch).is_err(), "bit {bit}");
        }
        for len in 0..good.len() {
            let fault = decode(&good[..len], PLACE, &mut scratch).unwrap_err();
            let expected = match len {
                0 => Fault::End,
                1..HEADER_BYTES => Fault::Header,
                _ => Fault::Short { frame_bytes: good.len() },
            };
            assert_eq!(fault, expected, "cut to {len}");
        }
    }
}

#[test]
fn a_record_longer_than_the_limit_is_refused() {
    let part = vec![0; 1 << 26];
    let parts = [part.as_slice(); 16];
    let mut out = Vec::new();
    let error = append(&mut out, PLACE, 1, None, Body::Raw(&parts)).unwrap_err();
    assert_eq!(error.kind(), frondb_core::ErrorKind::Invalid);
    assert!(out.is_empty());
}

/// Returns a file of records with payloads of these lengths, and their offsets. The first record
/// has position 5000.
fn file(lens: &[usize], synced: impl Fn(usize) -> Option<u64>) -> (Vec<u8>, Vec<usize>) {
    let (mut out, mut offsets) = (Vec::new(), Vec::new());
    for (index, &len) in lens.iter().enumerate() {
        offsets.push(out.len());
        let position = PLACE.position + out.len() as u64;
        let place = RecordPlace { position, ..PLACE };
        let mut payload = vec![0; len];
        Prng::new(index as u64).fill(&mut payload);
        append(&mut out, place, 1, synced(index), Body::Raw(&[&payload])).unwrap();
    }
    (out, offsets)
}

fn scan(bytes: &[u8]) -> (Vec<u64>, Stop) {
    let range = ScanRange {
        generation: PLACE.generation,
        offset: 0,
        position: PLACE.position,
        end: bytes.len() as u64,
    };
    let mut scanner = Scanner::new(bytes, range);
    let mut offsets = Vec::new();
    loop {
        match scanner.step().unwrap() {
            Step::Record(record) => {
                let mut expected = vec![0; scanner.payload().len()];
                Prng::new(offsets.len() as u64).fill(&mut expected);
                assert_eq!(scanner.payload(), expected);
                offsets.push(record.offset);
            }
            Step::Stop(stop) => return (offsets, stop),
        }
    }
}

#[test]
fn a_scan_crosses_windows_and_ends_cleanly() {
    let lens = [10, WINDOW_BYTES - 30, 500, 3 * WINDOW_BYTES, 0, 17];
    let (mut bytes, offsets) = file(&lens, |_| None);
    let (found, stop) = scan(&bytes);
    assert_eq!(found, offsets.iter().map(|&offset| offset as u64).collect::<Vec<_>>());
    assert!(stop.is_clean(false) && stop.offset == bytes.len() as u64);
    // Preallocated space follows.
    bytes.resize(bytes.len() + 2 * WINDOW_BYTES, 0);
    assert!(scan(&bytes).1.is_clean(false));
    // Bytes of a former use of the file follow the zeros.
    *bytes.last_mut().unwrap() = 1;
    let stop = scan(&bytes).1;
    assert!(!stop.is_clean(false) && stop.is_clean(true) && !stop.proves_damage());
}

#[test]
fn the_search_behind_a_bad_place_finds_records_anywhere() {
    // One record crosses the end of the search window, and one is longer than the window.
    let lens = [100, WINDOW_BYTES - 140, 50, 2 * WINDOW_BYTES, 9, 9];
    let (good, offsets) = file(&lens, |_| None);
    for damaged in 0..lens.len() {
        let mut bytes = good.clone();
        bytes[offsets[damaged] + 3] ^= 1;
        let (found, stop) = scan(&bytes);
        assert_eq!(found.len(), damaged);
        assert_eq!(stop.offset, offsets[damaged] as u64);
        assert_eq!(stop.valid_after, (lens.len() - damaged - 1) as u64, "damaged {damaged}");
        assert_eq!(stop.dropped_bytes, (good.len() - offsets[damaged]) as u64);
        assert!(!stop.proves_damage(), "no record proves that the damaged one was durable");
    }
}

#[test]
fn only_a_record_that_states_what_was_durable_proves_damage() {
    let (plain, offsets) = file(&[20, 20, 20, 20], |_| None);
    // The last record was written when everything below the third was durable.
    let synced = PLACE.position + offsets[2] as u64;
    let (good, good_offsets) = file(&[20, 20, 20, 20], |index| (index == 3).then_some(synced));
    assert_eq!(offsets[..4], good_offsets[..4]);
    assert_ne!(plain, good);
    for (damaged, proved) in [(0, true), (1, true), (2, false), (3, false)] {
        let mut bytes = good.clone();
        bytes[offsets[damaged] + 20] ^= 1;
        assert_eq!(scan(&bytes).1.proves_damage(), proved, "damaged {damaged}");
    }
}

#[test]
fn random_bytes_never_panic() {
    let samples = [record(Body::Raw(&[b"hello"]), Some(4)), lz4(&[5; 300])];
    let mut prng = Prng::new(11);
    for round in 0..20_000 {
        let mut bytes = samples[round % 2].clone();
        let at = prng.index(bytes.len());
        let end = bytes.len().min(at + 1 + prng.index(8));
        prng.fill(&mut bytes[at..end]);
        fuzz(&bytes);
        // Flags and kind come first, so that the stored bytes are parsed unchanged.
        fuzz(&bytes[12..]);
        fuzz(&bytes[14..]);
    }
}
