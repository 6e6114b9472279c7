//! RocksDB as an implementation of the benchmark's traits.
//!
//! All trees are in one column family. A key of RocksDB is the number of the tree, one byte,
//! followed by the key of the workload. Every scan makes its own iterator, because an iterator of
//! RocksDB is a snapshot: kept from one read to the next, it would not show newer writes.

mod batch;
mod compression;
mod database;
mod ffi;
mod malloc;
mod multi_get;
mod options;
mod reader;
mod strings;

use std::ffi::CStr;
use std::path::Path;
use std::ptr;

use frondb_bench::Result;
use frondb_bench::engine::{Batch, Codec, Durability, Engine, EngineKind, EngineOptions, Reader};

use database::RocksDb;
use ffi::*;
use reader::RocksDbReader;
use strings::{check, take_text};

/// The entry of RocksDB in the registry.
pub(crate) const ROCKSDB: EngineKind = EngineKind {
    name: "rocksdb",
    describe: options::describe,
    codecs: &[
        Codec::Standard,
        Codec::Aggressive,
        Codec::Default,
        Codec::None,
        Codec::Zstd(3),
        Codec::Zstd(19),
        Codec::ZstdDictionary(19),
    ],
    open,
};

/// Properties of RocksDB that are all zero when no background work runs and none is due.
const DEBTS: [&CStr; 5] = [
    c"rocksdb.mem-table-flush-pending",
    c"rocksdb.num-running-flushes",
    c"rocksdb.compaction-pending",
    c"rocksdb.num-running-compactions",
    c"rocksdb.estimate-pending-compaction-bytes",
];

fn open(dir: &Path, options: &EngineOptions) -> Result<Box<dyn Engine>> {
    malloc::limit();
    Ok(Box::new(RocksDb::open(dir, options)?))
}

impl Engine for RocksDb {
    fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        let mut held = self.batch.lock();
        held.fill(batch);
        let options = self.writes[usize::from(durability == Durability::Sync)];
        let mut error = ptr::null_mut();
        // SAFETY: database, options and batch are alive, and the batch is locked.
        unsafe { rocksdb_write(self.db.as_ptr(), options, held.raw(), &raw mut error) };
        check(error)
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(RocksDbReader::new(self)))
    }

    fn is_settled(&self) -> Result<bool> {
        Ok(DEBTS.iter().all(|name| self.property(name) == 0))
    }

    fn sync(&self) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: the database is open.
        unsafe { rocksdb_flush_wal(self.db.as_ptr(), 1, &raw mut error) };
        check(error)
    }

    fn pack(&self) -> Result<bool> {
        // SAFETY: the database is open; null pointers mean all keys. The call returns when the
        // compaction is done. It returns no error: the next write returns the error of a compaction
        // that failed.
        unsafe { rocksdb_compact_range(self.db.as_ptr(), ptr::null(), 0, ptr::null(), 0) };
        Ok(true)
    }

    fn stats(&self) -> String {
        // SAFETY: the database is open; the text is ours and freed by `take_text`.
        let text = unsafe { rocksdb_property_value(self.db.as_ptr(), c"rocksdb.stats".as_ptr()) };
        take_text(text).unwrap_or_default()
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
