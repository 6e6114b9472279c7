//! Filters contain the pushed hashes and few others, and survive hostile bytes.

use frondb_core::checksum::xxh3;
use frondb_core::mem::Bytes;
use frondb_filter::{FilterBuilder, FilterError, FilterKind, FilterReader};

fn hash(i: u64) -> u64 {
    xxh3(&i.to_le_bytes())
}

fn build(kind: FilterKind, count: u64) -> Vec<u8> {
    let mut builder = FilterBuilder::new(kind);
    for i in 0..count {
        builder.push(hash(i));
        builder.push(hash(i));
    }
    assert_eq!(builder.len() as u64, count);
    builder.finish().to_vec()
}

#[test]
fn pushed_hashes_are_found_and_few_others() {
    // Limits for each kind: bits per hash in large filters, false positives per thousand queries.
    for (kind, bits, errors) in
        [(FilterKind::BlockedBloom, 10.1, 13.0), (FilterKind::BinaryFuse8, 9.7, 5.0)]
    {
        for count in [0, 1, 2, 3, 10, 1_000, 100_000, 300_000] {
            let bytes = build(kind, count);
            if count >= 100_000 {
                let used = bytes.len() as f64 * 8.0 / count as f64;
                assert!(used < bits, "{kind:?} {count}: {used} bits");
            }
            let filter = FilterReader::open(Bytes::copy_from(&bytes)).unwrap();
            assert!((0..count).all(|i| filter.may_contain(hash(i))), "{kind:?} {count}");
            let asked = 50_000;
            let wrong = (1 << 40..(1 << 40) + asked).filter(|&i| filter.may_contain(hash(i)));
            let rate = wrong.count() as f64 * 1000.0 / asked as f64;
            assert!(rate < errors, "{kind:?} {count}: {rate} in a thousand");
        }
    }
}

#[test]
fn no_filter_has_no_bytes() {
    assert!(build(FilterKind::None, 10).is_empty());
    let error = FilterReader::open(Bytes::copy_from(&[])).unwrap_err();
    assert_eq!(error, FilterError::Malformed);
}

#[test]
fn duplicates_far_apart_do_no_harm() {
    let mut builder = FilterBuilder::new(FilterKind::BinaryFuse8);
    for i in 0..5_000u64 {
        builder.push(hash(i % 1_000));
    }
    let filter = FilterReader::open(Bytes::copy_from(&builder.finish())).unwrap();
    assert!((0..1_000).all(|i| filter.may_contain(hash(i))));
}

/// Databases contain these bytes: a change here is a change of the format.
#[test]
fn filters_have_the_bytes_of_version_one() {
    let digest = |kind| xxh3(&build(kind, 1_000));
    assert_eq!(digest(FilterKind::BlockedBloom), 3886865933682178715);
    assert_eq!(digest(FilterKind::BinaryFuse8), 196636279848143816);
}

#[test]
fn some_hostile_bytes_are_refused_and_others_answered() {
    let (mut answered, mut refused) = (0, 0);
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let samples = [
        build(FilterKind::BlockedBloom, 100),
        build(FilterKind::BinaryFuse8, 100),
        build(FilterKind::BinaryFuse8, 140_000),
    ];
    for round in 0..3_000 {
        let mut bytes = samples[if round % 50 == 0 { 2 } else { round % 2 }].clone();
        for _ in 0..1 + random() % 4 {
            let at = (random() % 64.min(bytes.len() as u64)) as usize;
            bytes[at] = random() as u8;
        }
        if random() % 4 == 0 {
            bytes.truncate((random() % bytes.len() as u64) as usize);
        }
        let noise: Vec<u8> = (0..random() % 80).map(|_| random() as u8 & 3).collect();
        for bytes in [bytes, noise] {
            let is_filter = frondb_filter::fuzz::filter(&bytes);
            *if is_filter { &mut answered } else { &mut refused } += 1;
        }
    }
    assert!(answered > 0 && refused > 0, "{answered} answered, {refused} refused");
}

/// Found by libFuzzer: the offset of the fingerprints was so large that the computed end wrapped
/// around to a place inside the bytes.
#[test]
fn fingerprints_beyond_the_last_address_are_refused() {
    let mut bytes = build(FilterKind::BinaryFuse8, 100);
    let before = bytes.len() as u64;
    // The header, a seed, two lengths; then the offset.
    bytes[16 + 16..16 + 24].copy_from_slice(&(u64::MAX - before + 1).to_le_bytes());
    assert!(!frondb_filter::fuzz::filter(&bytes));
    assert!(FilterReader::open(Bytes::copy_from(&bytes)).is_err());
}
