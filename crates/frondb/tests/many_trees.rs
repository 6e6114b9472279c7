//! Ten thousand trees in one database, each with a few rows: a table of many partitions, or a
//! database of many tenants. Even after an explicit flush of all trees, the database may take at
//! most 64 MiB of resident memory, 80 MB of disk and 64 open files. The limit of the memory also
//! holds after the database is opened again.
//!
//! This program contains no other test, because memory and open files are counted for the whole
//! process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use frondb::{Batch, Db, Durability, Options, TreeOptions};
use frondb_testkit::TempDir;

const TREES: u64 = 10_000;
const ROWS: u64 = 4;

/// Returns the peak resident memory of the process, bytes.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib << 10
}

/// Returns whether `make sanitize` runs the test: the sanitizer multiplies the memory, so the test
/// does not check it.
fn is_sanitized() -> bool {
    std::env::var("FRONDB_C_FLAGS").is_ok_and(|flags| flags.contains("sanitize"))
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Bytes that the files of a folder take on disk.
fn disk_bytes(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| {
            let meta = entry.metadata().unwrap();
            if meta.is_dir() { disk_bytes(&entry.path()) } else { meta.blocks() * 512 }
        })
        .sum()
}

fn name(tree: u64) -> String {
    format!("tenant {tree}")
}

#[test]
fn ten_thousand_trees_stay_small() {
    let dir = TempDir::new("many-trees");
    let options = || Options::new().memory_bytes(128 << 20);
    let db = Db::open(dir.path(), options()).unwrap();
    let mut batch = Batch::new();
    for i in 0..TREES {
        let tree = db.create_tree(&name(i), TreeOptions::new()).unwrap();
        for row in 0..ROWS {
            batch.put(&tree, &row.to_be_bytes(), &[i as u8; 20]);
        }
        if batch.len() as u64 >= 100 * ROWS {
            db.write(&batch, Durability::NoSync).unwrap();
            batch.clear();
        }
    }
    db.flush().unwrap();
    db.wait_settled().unwrap();
    let (memory, files, disk) = (peak_bytes(), open_files(), disk_bytes(dir.path()));
    println!("{} MB of memory, {files} files, {} MB of disk", memory / 1_000_000, disk / 1_000_000);
    assert!(is_sanitized() || memory <= 64 << 20, "{memory} bytes of memory");
    assert!(files <= 64, "{files} files");
    assert!(disk <= 80_000_000, "{disk} bytes of disk");
    db.close().unwrap();
    drop((batch, db));

    let db = Db::open(dir.path(), options()).unwrap();
    for i in (0..TREES).step_by(97) {
        let tree = db.open_tree(&name(i)).unwrap();
        assert_eq!(tree.get(&3u64.to_be_bytes()).unwrap().unwrap(), [i as u8; 20]);
    }
    let memory = peak_bytes();
    assert!(
        is_sanitized() || memory <= 64 << 20,
        "{memory} bytes of memory after opening it again"
    );
}
