//! Rules 6 to 9 and 25: where the log begins and ends, its spare segments, and the ids and SeqNos that a
//! recovery goes on with.

use frondb_commit::{Batch, Durability, LargestIds};
use frondb_core::{ErrorKind, SeqNo};
use frondb_device::{CrashMode, Device, MemoryDevice, OpenOptions};

use super::{KEEPS, Keep, create, has, open, put};
use crate::engine::Engine;
use crate::layout::LOG_DIR;

/// Rules 6 and 8: nothing needs the unsynced end of the log, and power loss takes it. Wherever the
/// manifest says that the log begins, what is committed next is read by the next recovery, and has
/// SeqNos of its own.
#[test]
fn the_log_goes_on_where_power_loss_has_cut_it() {
    for (how, keep) in KEEPS {
        let device = MemoryDevice::new();
        let engine = open(&device).unwrap();
        create(&engine, "stays");
        let goes = create(&engine, "goes");
        put(&engine, &goes, "synced", Durability::Sync);
        for key in 0..100 {
            put(&engine, &goes, &format!("unsynced {key}"), Durability::NoSync);
        }
        engine.drop_tree("goes").unwrap();
        keep(engine.background());
        let device = device.crash(CrashMode::LoseUnsynced);
        drop(engine);

        let engine = open(&device).unwrap();
        let stays = engine.open_tree("stays").unwrap();
        put(&engine, &stays, "synced", Durability::Sync);
        let device = device.crash(CrashMode::LoseUnsynced);
        assert!(has(&open(&device).unwrap(), "stays", "synced"), "lost after {how}");
    }
}

/// The last segment of the log.
fn last_segment(device: &MemoryDevice) -> String {
    let mut segments = device.list(LOG_DIR).unwrap();
    segments.retain(|name| name.ends_with(".wal"));
    segments.sort();
    format!("{LOG_DIR}/{}", segments.pop().unwrap())
}

/// Flips a bit of the key where the log has it.
fn damage(device: &MemoryDevice, key: &str) {
    let file = device.open(&last_segment(device), OpenOptions::WRITE).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(0, &mut bytes).unwrap();
    let at = bytes.windows(key.len()).position(|bytes| bytes == key.as_bytes()).unwrap();
    file.write_at(at as u64, &[bytes[at] ^ 1]).unwrap();
    file.sync().unwrap();
}

/// Rule 9: a bad record below an Lsn that the manifest knows to be durable is damage, also where no
/// later record of the log says so; without that knowledge it is a torn tail, which is reported.
#[test]
fn a_bad_record_below_what_the_manifest_knows_is_corruption() {
    let nothing: Keep = |_| {};
    // The mark beside the log knows it too, where it is.
    for (how, keep) in KEEPS.into_iter().chain([("nothing", nothing), ("the mark", nothing)]) {
        let device = MemoryDevice::new();
        let engine = open(&device).unwrap();
        // What power loss may leave of the mark: the one that the log began with.
        let mut blank = vec![0; 4160];
        let mark = device.open("wal/LOG.mark", OpenOptions::READ).unwrap();
        mark.read_exact_at(0, &mut blank).unwrap();
        let tree = create(&engine, "t");
        put(&engine, &tree, "the last key", Durability::Sync);
        keep(engine.background());
        drop((tree, engine));
        damage(&device, "the last key");
        if how != "the mark" {
            let mark = device.open("wal/LOG.mark", OpenOptions::WRITE).unwrap();
            mark.write_at(0, &blank).unwrap();
        }
        match (how, open(&device)) {
            ("nothing", Ok(engine)) => {
                assert!(engine.recovery().log_tail.is_some(), "the cut is reported");
                assert!(!has(&engine, "t", "the last key"));
            }
            ("nothing", Err(error)) => panic!("{error}"),
            (_, Ok(_)) => panic!("{how}: a record that was durable is lost without a word"),
            (_, Err(error)) => assert_eq!(error.kind(), ErrorKind::Corruption, "{how}: {error}"),
        }
    }
}

/// The largest ids and SeqNo given out.
fn given_out(engine: &Engine) -> (u32, u64, u64, SeqNo) {
    let txns = &engine.txns;
    let LargestIds { tree, run, node, .. } = txns.ids.largest();
    (tree, run, node, txns.reads.oracle.last_reserved())
}

/// Rules 7 and 8: ids and SeqNos are never given out again, although what had the largest is gone
/// and the manifest that named it too. The log may still have records of a dropped tree: they must
/// not become rows of another.
#[test]
fn ids_go_on_where_they_ended() {
    for log_is_needed in [true, false] {
        let device = MemoryDevice::new();
        let engine = open(&device).unwrap();
        let stays = create(&engine, "stays");
        put(&engine, &stays, "a row", Durability::Sync);
        let goes = create(&engine, "goes");
        let id = goes.id();
        for round in 0..3 {
            put(&engine, &goes, &format!("in a run {round}"), Durability::Sync);
            assert!(engine.background().freeze(goes.core()));
            engine.background().run_pending();
        }
        put(&engine, &goes, "in the log", Durability::Sync);
        drop(goes);
        engine.drop_tree("goes").unwrap();
        if !log_is_needed {
            engine.flush().unwrap();
            engine.background().trim_log().unwrap();
        }
        let before = given_out(&engine);
        assert!(before.1 >= 3, "runs were made");
        assert!(engine.background().rotate_manifest(true).unwrap());
        drop((stays, engine));

        let engine = open(&device).unwrap();
        assert_eq!(engine.recovery().records > 0, log_is_needed);
        let after = given_out(&engine);
        assert!(after.0 >= before.0, "trees: {after:?} after {before:?}");
        assert!(after.1 >= before.1, "runs: {after:?} after {before:?}");
        assert!(after.2 >= before.2, "nodes: {after:?} after {before:?}");
        assert!(after.3 >= before.3, "SeqNos: {after:?} after {before:?}");
        assert!(create(&engine, "new").id() > id);
        drop(engine);
        let engine = open(&device).unwrap();
        assert!(has(&engine, "stays", "a row"));
        assert!(!has(&engine, "new", "in the log"), "a row of a dropped tree came back");
    }
}

/// Rule 8: a flush of which nothing is left makes no run, and its SeqNos are used up all the same:
/// what came later at one of them would be taken for flushed, and not be replayed.
#[test]
fn a_flush_that_leaves_nothing_uses_its_seqnos_up() {
    let device = MemoryDevice::new();
    let engine = open(&device).unwrap();
    let tree = create(&engine, "t");
    let mut batch = Batch::new();
    for row in 0..10u8 {
        batch.put(&tree, &[row], b"");
        batch.delete(&tree, &[row]);
    }
    engine.write(&batch, Durability::Sync).unwrap();
    engine.flush().unwrap();
    assert_eq!(engine.txns.ids.largest().run, 0, "no run was made");
    engine.background().trim_log().unwrap();
    let before = given_out(&engine);
    drop((tree, engine));

    let engine = open(&device).unwrap();
    assert!(given_out(&engine).3 >= before.3);
    let tree = engine.open_tree("t").unwrap();
    put(&engine, &tree, "later", Durability::Sync);
    drop((tree, engine));
    assert!(has(&open(&device).unwrap(), "t", "later"), "a synced row is lost");
}

/// Rule 8: the SeqNo up to which a tree is flushed is exact, and stays so when the manifest is
/// written anew after a reopening: a message is in runs or replayed, and never both. (An update
/// that is folded into a value of a run would otherwise count twice.)
#[test]
fn the_flushed_seqno_outlives_reopening() {
    let device = MemoryDevice::new();
    let mut engine = open(&device).unwrap();
    let (pin, tree) = (create(&engine, "pins the log"), create(&engine, "t"));
    put(&engine, &pin, "first", Durability::Sync);
    put(&engine, &tree, "k", Durability::Sync);
    assert!(engine.background().freeze(tree.core()));
    engine.background().run_pending();
    drop((pin, tree));
    for _ in 0..3 {
        assert!(engine.background().rotate_manifest(true).unwrap());
        drop(engine);
        engine = open(&device).unwrap();
        assert_eq!(engine.recovery().messages, 1, "only what is in no run is replayed");
    }
    assert!(has(&engine, "t", "k") && has(&engine, "pins the log", "first"));
}

/// Rule 25: at most two spare segments of the log are kept under load, and none when idle.
#[test]
fn an_idle_engine_keeps_no_spare_segments() {
    let device = MemoryDevice::new();
    let engine = open(&device).unwrap();
    let tree = create(&engine, "t");
    let spares = || {
        let names = device.list(LOG_DIR).unwrap();
        names.iter().filter(|name| name.ends_with(".spare")).count()
    };
    let mut most = 0;
    for row in 0..4000u64 {
        let mut batch = Batch::new();
        batch.put(&tree, &row.to_be_bytes(), &[7; 1000]);
        engine.write(&batch, Durability::NoSync).unwrap();
        most = most.max(spares());
    }
    engine.flush().unwrap();
    engine.background().trim_log().unwrap();
    most = most.max(spares());
    assert!((1..=2).contains(&most), "{most} spares");
    engine.background().idle_maintenance();
    assert_eq!(spares(), 0);
}
