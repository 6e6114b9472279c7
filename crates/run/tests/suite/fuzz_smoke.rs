//! Random and mutated bytes: each decoder refuses some, and what it accepts can be read.

use crate::support::{Fixture, options, put};
use frondb_core::prng::Prng;
use frondb_run::format::ValueRef;
use frondb_run::fuzz;
use frondb_space::Extent;

#[test]
fn damaged_metadata_of_runs_is_refused_or_survives_a_round_trip() {
    let fixture = Fixture::new();
    let mut samples = Vec::new();
    for count in [1u8, 40] {
        let entries: Vec<_> = (0..count).map(|i| put(&[i], u64::from(i), b"value")).collect();
        let mut out = Vec::new();
        fixture.run(options(16), true, &entries).meta().encode(&mut out);
        samples.push(out);
    }
    frondb_testkit::fuzz::smoke_both(1, 20_000, &samples, fuzz::run_meta);
}

#[test]
fn searches_in_a_damaged_block_index_stay_inside_it() {
    // The input: metadata in eight bytes, then the index.
    let payload = b"\x03\x00\x00\x14\x02\x00\x01k\x15\x01\x01\x01x\x16\x04";
    let parts = b"\x02\x14\x01\x1e";
    let (bytes, mut samples) = (10 + 10 + 11u64, Vec::new());
    for (filter_parts, filter_bytes, parts) in [(0u64, 0u64, &[][..]), (2, 50, parts)] {
        let head = filter_bytes << 48 | filter_parts << 40 | bytes << 16 | 3;
        samples.push([&head.to_le_bytes()[..], payload, parts].concat());
    }
    frondb_testkit::fuzz::smoke_both(2, 20_000, &samples, fuzz::block_index);
}

#[test]
fn the_parts_of_a_damaged_top_index_follow_each_other() {
    // The input: metadata in eight bytes, then the top index.
    let frames = [b"\x80\x80\x01", &b"\xff\xff\x02"[..]];
    let mut samples = Vec::new();
    for has_filter in [false, true] {
        let mut input =
            vec![9, 0, 0, 4, 2, 21, u8::from(has_filter) * 3, u8::from(has_filter) * 60];
        input.extend_from_slice(b"\x02\x00\x00\x05\x88\x08\x14");
        input.extend_from_slice(frames[0]);
        input.extend_from_slice(if has_filter { b"\x01\x1e" } else { b"" });
        input.extend_from_slice(b"\x00\x02kx\x04\xf9\x07\x0a");
        input.extend_from_slice(frames[1]);
        input.extend_from_slice(if has_filter { b"\x02\x1e" } else { b"" });
        samples.push(input);
    }
    frondb_testkit::fuzz::smoke_both(5, 20_000, &samples, fuzz::top_index);
}

#[test]
fn searches_in_a_damaged_index_part_stay_inside_it() {
    // The input: the place of the part, then the part.
    let blocks = b"\x03\x00\x02ab\x14\x02\x01\x01k\x15\x01\x02\x01x\x16\x04";
    let (separator, next) = (b"\x02ab", b"\x83akx");
    let mut samples = Vec::new();
    for (parts, filters) in
        [(0, &b"\x00"[..]), (0, b"\x01\x03\x05"), (2, b"\x02\x02\x88\x0e\x01\x80\x19")]
    {
        for next in [&next[..], b"\xff"] {
            let place = [3, 0, 31, 0, 7, 0, parts];
            samples.push([&place[..], separator, next, blocks, filters].concat());
        }
    }
    frondb_testkit::fuzz::smoke_both(6, 20_000, &samples, fuzz::index_part);
}

#[test]
fn damaged_references_to_values_are_refused_or_survive_a_round_trip() {
    let mut samples = Vec::new();
    let mut prng = Prng::new(3);
    for count in 1..4u32 {
        let extents: Vec<Extent> =
            (0..count).map(|i| Extent { file: i, page: 100 * i, pages: 1 + i }).collect();
        let value = ValueRef { len: 4000, checksum: prng.next_u64(), extents };
        let mut out = Vec::new();
        value.encode(&mut out);
        samples.push(out);
    }
    frondb_testkit::fuzz::smoke_both(3, 20_000, &samples, fuzz::value_ref);
}

#[test]
fn the_entries_of_a_damaged_spool_frame_lie_inside_it() {
    let ends = |ends: &[u32]| ends.iter().flat_map(|end| end.to_le_bytes()).collect::<Vec<u8>>();
    let plain = [ends(&[2, 4, 0]), ends(&[1, 4]), ends(&[0, 5]), b"abcdvalue".to_vec()].concat();
    let kinds = [ends(&[1, 3, 1]), ends(&[3]), ends(&[5]), b"\x04keyvalue".to_vec()].concat();
    frondb_testkit::fuzz::smoke_both(4, 20_000, &[plain, kinds], fuzz::spool_frame);
}
