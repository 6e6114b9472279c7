//! An extent has exactly one owner: the stream until it is finished, then the run, and none once
//! the last reference to a dead run is dropped (rule 7).

use crate::support::{Entry, Fixture, get, options, put, scan};
use frondb_core::limits::PAGE_BYTES;
use frondb_core::{Direction, ErrorKind, SeqNo};
use frondb_run::ReadMode;
use frondb_space::Extent;

fn entries(count: u32, value_bytes: usize) -> Vec<Entry> {
    (0..count).map(|i| put(&i.to_be_bytes(), 1 + u64::from(i), &vec![9; value_bytes])).collect()
}

#[test]
fn a_stream_dropped_before_its_end_releases_all_extents() {
    let fixture = Fixture::new();
    for expected in [0, 100_000, 20 << 20] {
        let mut output = fixture.output(expected);
        fixture.write_to(&mut output, options(1000), true, &entries(500, 300));
        output.write(&[1; 5000]).unwrap();
        assert!(fixture.used_bytes() > 0);
        drop(output);
        assert_eq!(fixture.used_bytes(), 0, "expected {expected}");
    }
}

#[test]
fn a_finished_stream_keeps_the_pages_of_its_runs_and_no_more() {
    let fixture = Fixture::new();
    for expected in [0, 30_000, 20 << 20] {
        let before = fixture.used_bytes();
        let mut output = fixture.output(expected);
        let mut metas = Vec::new();
        for count in [1, 10, 1000] {
            metas.push(fixture.write_to(&mut output, options(1000), true, &entries(count, 300)));
        }
        let written = output.finish().unwrap();
        let pages =
            |meta: &frondb_run::RunMeta| meta.extents.iter().map(|e| e.bytes()).sum::<u64>();
        let kept: u64 = metas.iter().map(pages).sum();
        let needed: u64 =
            metas.iter().map(|m| m.disk_bytes().next_multiple_of(PAGE_BYTES as u64)).sum();
        assert_eq!((kept, written), (needed, needed), "expected {expected}");
        assert_eq!(fixture.used_bytes() - before, needed);
        // Extents acquired one by one are one extent if they are adjacent.
        assert!(metas.iter().all(|meta| meta.extents.len() == 1), "{metas:?}");
        for meta in metas {
            fixture.open(meta, None).verify().unwrap();
        }
    }
}

#[test]
fn two_streams_side_by_side_split_their_extents() {
    let fixture = Fixture::new();
    let (mut a, mut b) = (fixture.output(0), fixture.output(0));
    let (mut blocks_a, mut blocks_b) = (Vec::new(), Vec::new());
    for part in 0..40u8 {
        a.write(&[part; 3000]).unwrap();
        blocks_a.extend([part; 3000]);
        b.write(&[100 + part; 5000]).unwrap();
        blocks_b.extend([100 + part; 5000]);
    }
    let (extents_a, extents_b) = (a.end_run(), b.end_run());
    a.finish().unwrap();
    b.finish().unwrap();
    assert!(extents_a.len() > 5 && extents_b.len() > 5, "{extents_a:?} {extents_b:?}");
    for (extents, bytes) in [(extents_a, blocks_a), (extents_b, blocks_b)] {
        let mut found = Vec::new();
        for extent in extents {
            let mut part = vec![0; extent.bytes() as usize];
            fixture.env.space.read(extent, 0, &mut part).unwrap();
            found.extend(part);
            fixture.env.space.release(extent);
        }
        assert_eq!(&found[..bytes.len()], &bytes[..]);
        assert!(found[bytes.len()..].iter().all(|&byte| byte == 0), "padding is zero");
    }
    assert_eq!(fixture.used_bytes(), 0);
}

#[test]
fn a_run_over_many_extents_reads_like_one_over_one() {
    let fixture = Fixture::new();
    let (mut output, mut other) = (fixture.output(0), fixture.output(0));
    let entries = entries(600, 100);
    let mut writer =
        frondb_run::RunWriter::new(fixture.next_id(), frondb_core::TreeId(1), options(700), true);
    for entry in &entries {
        writer.add(&mut output, &entry.key, entry.seq, entry.kind, &entry.value).unwrap();
        other.write(&[0; 150]).unwrap();
    }
    let meta = writer.finish(&mut output).unwrap().unwrap();
    output.finish().unwrap();
    drop(other);
    assert!(meta.extents.len() > 5, "{:?}", meta.extents);
    let run = fixture.open(meta, None);
    run.verify().unwrap();
    assert_eq!(scan(&run, Direction::Forward, ReadMode::Scan, None, None).unwrap(), entries);
    assert_eq!(scan(&run, Direction::Forward, ReadMode::Merge, None, None).unwrap(), entries);
    for entry in entries.iter().step_by(17) {
        assert_eq!(get(&run, &entry.key, 9999).unwrap(), std::slice::from_ref(entry));
    }
    run.kill();
    drop(run);
    assert_eq!(fixture.used_bytes(), 0);
}

#[test]
fn a_dead_run_lives_as_long_as_it_is_held() {
    let fixture = Fixture::new();
    let run = fixture.run(options(100), true, &entries(100, 50));
    let used = fixture.used_bytes();
    let reader = frondb_core::sync::Arc::clone(&run);
    get(&run, &5u32.to_be_bytes(), 999).unwrap();
    run.kill();
    drop(run);
    assert_eq!(fixture.used_bytes(), used);
    assert_eq!(get(&reader, &50u32.to_be_bytes(), 999).unwrap().len(), 1);
    drop(reader);
    assert_eq!(fixture.used_bytes(), 0, "extents of the run");
    assert_eq!(fixture.env.cache.stats().items, 0, "its blocks are out of the cache");
}

#[test]
fn a_run_that_is_not_dead_keeps_its_extents() {
    let fixture = Fixture::new();
    let run = fixture.run(options(100), true, &entries(10, 50));
    let (used, meta) = (fixture.used_bytes(), run.meta().clone());
    drop(run);
    assert_eq!(fixture.used_bytes(), used);
    fixture.open(meta, None).verify().unwrap();
}

#[test]
fn a_full_disk_fails_the_stream_and_loses_no_page() {
    let fixture = Fixture::new();
    fixture.device.set_capacity(2 << 20);
    let mut output = fixture.output(1 << 20);
    let error = (0..10_000).find_map(|_| output.write(&[3; 1000]).err()).unwrap();
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    drop(output);
    assert_eq!(fixture.used_bytes(), 0);
    let whole: u64 = fixture.env.space.free_extents().iter().map(|e: &Extent| e.bytes()).sum();
    assert_eq!(whole, fixture.env.space.stats().file_bytes);
}

/// The handles of a transaction and of its commit refer to one run: its extents are released once,
/// when the last of the references is dropped.
#[test]
fn an_attached_run_is_released_once_with_its_last_holder() {
    let fixture = Fixture::new();
    for attached_goes_first in [false, true] {
        let private = fixture.run(options(1000), true, &entries(50, 300));
        let attached = frondb_core::sync::Arc::clone(&private).attached(SeqNo(1000));
        assert!(attached.meta().extents == private.meta().extents && fixture.used_bytes() > 0);
        attached.kill();
        if attached_goes_first {
            drop(attached);
            assert_eq!(get(&private, &7u32.to_be_bytes(), 60).unwrap()[0].seq, SeqNo(8));
            drop(private);
        } else {
            drop(private);
            assert_eq!(get(&attached, &7u32.to_be_bytes(), 1060).unwrap()[0].seq, SeqNo(1008));
            assert!(fixture.used_bytes() > 0, "a reader holds it");
            drop(attached);
        }
        assert_eq!(fixture.used_bytes(), 0);
    }
}

/// Lookups, cursors and `verify` of an attached run return SeqNos, and a snapshot below the commit
/// sees nothing of it.
#[test]
fn an_attached_run_reads_with_seqnos() {
    let fixture = Fixture::new();
    for each in [false, true] {
        let private = fixture.run(options(200), each, &entries(40, 30));
        let attached = frondb_core::sync::Arc::clone(&private).attached(SeqNo(500));
        attached.verify().unwrap();
        for direction in [Direction::Forward, Direction::Backward] {
            for mode in [ReadMode::Scan, ReadMode::Merge] {
                let local = scan(&private, direction, mode, None, None).unwrap();
                let shifted = scan(&attached, direction, mode, None, None).unwrap();
                let expected = local.iter().map(|entry| SeqNo(entry.seq.get() + 500));
                assert!(shifted.iter().map(|entry| entry.seq).eq(expected), "each: {each}");
            }
        }
        let key = 3u32.to_be_bytes();
        assert_eq!(get(&attached, &key, 500).unwrap(), []);
        assert_eq!(get(&attached, &key, 540).unwrap()[0].seq, SeqNo(if each { 504 } else { 540 }));
    }
}
