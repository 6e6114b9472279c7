//! The open database: its handles and the options of its trees.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr::{self, NonNull};

use frondb_bench::engine::EngineOptions;
use frondb_bench::{Error, Result};
use frondb_core::sync::Mutex;

use super::batch::WriteBatch;
use super::ffi::*;
use super::options::Options;
use super::strings::{chars, check};

pub(super) struct RocksDb {
    pub(super) db: NonNull<rocksdb_t>,
    /// The only column family, an argument of `rocksdb_batched_multi_get_cf`.
    pub(super) family: *mut rocksdb_column_family_handle_t,
    /// The write options without `sync`, then with `sync`.
    pub(super) writes: [*mut rocksdb_writeoptions_t; 2],
    /// The read options of each tree, which end a scan at the end of the tree.
    pub(super) reads: Vec<TreeOptions>,
    pub(super) batch: Mutex<WriteBatch>,
}

// SAFETY: RocksDB's database, column family, write options and read options may be used by any
// number of threads at the same time (rocksdb/db.h: "multithreaded access without external
// synchronization"); the batch, which may not, is behind a lock.
unsafe impl Sync for RocksDb {}

impl RocksDb {
    /// Opens the database, or creates it.
    pub(super) fn open(dir: &Path, options: &EngineOptions) -> Result<Self> {
        let path = CString::new(dir.as_os_str().as_encoded_bytes()).map_err(Error::engine)?;
        let opening = Options::new(options);
        let (mut error, mut family) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: options, path and the lists of one column family live across the call; the error
        // pointer is null before it.
        let db = unsafe {
            rocksdb_open_column_families(
                opening.as_ptr(),
                path.as_ptr(),
                1,
                [c"default".as_ptr()].as_ptr(),
                [opening.as_ptr()].as_ptr(),
                &raw mut family,
                &raw mut error,
            )
        };
        check(error)?;
        let db = NonNull::new(db).ok_or_else(|| Error::engine("RocksDB returned no database"))?;
        Ok(Self {
            db,
            family,
            writes: [write_options(false), write_options(true)],
            reads: (0..options.trees.len()).map(|tree| TreeOptions::new(tree as u8)).collect(),
            batch: Mutex::new(WriteBatch::new()),
        })
    }

    /// Returns an integer property; 0 if RocksDB does not know it.
    pub(super) fn property(&self, name: &CStr) -> u64 {
        let mut value = 0;
        // SAFETY: the database is open; the value outlives the call. For a property that does not
        // exist RocksDB does not write the value.
        unsafe { rocksdb_property_int(self.db.as_ptr(), name.as_ptr(), &raw mut value) };
        value
    }
}

impl Drop for RocksDb {
    fn drop(&mut self) {
        // SAFETY: readers borrow the engine, so none is left; each is destroyed once.
        unsafe {
            rocksdb_column_family_handle_destroy(self.family);
            rocksdb_close(self.db.as_ptr());
            for options in self.writes {
                rocksdb_writeoptions_destroy(options);
            }
        }
    }
}

fn write_options(sync: bool) -> *mut rocksdb_writeoptions_t {
    // SAFETY: created here, destroyed with the database.
    unsafe {
        let options = rocksdb_writeoptions_create();
        rocksdb_writeoptions_set_sync(options, sync.into());
        options
    }
}

/// Read options whose upper bound is the end of a tree.
pub(super) struct TreeOptions {
    pub(super) raw: *mut rocksdb_readoptions_t,
    /// The upper bound, to which the options point.
    _bound: Box<[u8; 1]>,
}

impl TreeOptions {
    fn new(tree: u8) -> Self {
        let bound = Box::new([tree + 1]);
        // SAFETY: the bound is on the heap and lives as long as the options, which are destroyed
        // in `drop`.
        unsafe {
            let raw = rocksdb_readoptions_create();
            rocksdb_readoptions_set_iterate_upper_bound(raw, chars(&bound[..]), 1);
            Self { raw, _bound: bound }
        }
    }
}

impl Drop for TreeOptions {
    fn drop(&mut self) {
        // SAFETY: created in `new`, destroyed once.
        unsafe { rocksdb_readoptions_destroy(self.raw) }
    }
}
