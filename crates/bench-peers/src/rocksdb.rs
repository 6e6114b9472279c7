//! RocksDB as an implementation of the benchmark's traits.
//!
//! All trees live in one column family; a key is the number of its tree, one byte, and the
//! workload's key. Every scan makes an iterator of its own, because a RocksDB iterator is a
//! snapshot and must not be kept from one read to the next.

mod compression;
mod ffi;
mod malloc;
mod multi_get;
mod options;

use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::ptr::{self, NonNull};

use frondb_bench::engine::{
    Batch, Change, Codec, Digest, Durability, Engine, EngineKind, EngineOptions, Reader,
};
use frondb_bench::{Error, Result};
use frondb_core::sync::Mutex;

use ffi::*;
use multi_get::MultiGet;
use options::Options;

/// Its entry in the registry.
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

/// Properties that are zero when nothing runs and nothing is due.
const DEBTS: [&CStr; 5] = [
    c"rocksdb.mem-table-flush-pending",
    c"rocksdb.num-running-flushes",
    c"rocksdb.compaction-pending",
    c"rocksdb.num-running-compactions",
    c"rocksdb.estimate-pending-compaction-bytes",
];

struct RocksDb {
    db: NonNull<rocksdb_t>,
    /// The only column family, which `rocksdb_batched_multi_get_cf` asks for.
    family: *mut rocksdb_column_family_handle_t,
    writes: [*mut rocksdb_writeoptions_t; 2],
    /// Read options of each tree: bounded by its successor.
    reads: Vec<TreeOptions>,
    batch: Mutex<WriteBatch>,
}

// SAFETY: RocksDB's database, column family, write options and read options may be used by any
// number of threads at the same time (rocksdb/db.h: "multithreaded access without external
// synchronization"); the batch, which may not, is behind a lock.
unsafe impl Sync for RocksDb {}

fn open(dir: &Path, options: &EngineOptions) -> Result<Box<dyn Engine>> {
    let path = CString::new(dir.as_os_str().as_encoded_bytes()).map_err(Error::engine)?;
    malloc::limit();
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
    Ok(Box::new(RocksDb {
        db,
        family,
        writes: [write_options(false), write_options(true)],
        reads: (0..options.trees.len()).map(|tree| TreeOptions::new(tree as u8)).collect(),
        batch: Mutex::new(WriteBatch::new()),
    }))
}

fn write_options(sync: bool) -> *mut rocksdb_writeoptions_t {
    // SAFETY: created here, destroyed with the database.
    unsafe {
        let options = rocksdb_writeoptions_create();
        rocksdb_writeoptions_set_sync(options, sync.into());
        options
    }
}

impl RocksDb {
    fn property(&self, name: &CStr) -> u64 {
        let mut value = 0;
        // SAFETY: the database is open; the value outlives the call. For a property that does not
        // exist RocksDB does not write the value.
        unsafe { rocksdb_property_int(self.db.as_ptr(), name.as_ptr(), &raw mut value) };
        value
    }
}

impl Engine for RocksDb {
    fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        let mut held = self.batch.lock();
        held.fill(batch);
        let options = self.writes[usize::from(durability == Durability::Sync)];
        let mut error = ptr::null_mut();
        // SAFETY: database, options and batch are alive, and the batch is locked.
        unsafe { rocksdb_write(self.db.as_ptr(), options, held.raw, &raw mut error) };
        check(error)
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(RocksDbReader { engine: self, key: Vec::new(), many: MultiGet::default() }))
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
        // compaction is done, and has no error: one that a job met is that of the next write.
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

/// RocksDB's batch, its memory reused.
struct WriteBatch {
    raw: *mut rocksdb_writebatch_t,
    key: Vec<u8>,
}

// SAFETY: the batch belongs to this value alone; RocksDB ties it to no thread.
unsafe impl Send for WriteBatch {}

impl WriteBatch {
    fn new() -> Self {
        // SAFETY: created here, destroyed in `drop`.
        Self { raw: unsafe { rocksdb_writebatch_create() }, key: Vec::new() }
    }

    fn fill(&mut self, batch: &Batch) {
        // SAFETY: the batch is alive and not shared.
        unsafe { rocksdb_writebatch_clear(self.raw) };
        for change in batch.changes() {
            match change {
                Change::Put { tree, key, value } => {
                    prefixed(&mut self.key, tree, key);
                    // SAFETY: RocksDB copies key and value before it returns.
                    unsafe {
                        rocksdb_writebatch_put(
                            self.raw,
                            chars(&self.key),
                            self.key.len(),
                            chars(value),
                            value.len(),
                        );
                    }
                }
                Change::Delete { tree, key } => {
                    prefixed(&mut self.key, tree, key);
                    // SAFETY: RocksDB copies the key before it returns.
                    unsafe {
                        rocksdb_writebatch_delete(self.raw, chars(&self.key), self.key.len());
                    }
                }
            }
        }
    }
}

impl Drop for WriteBatch {
    fn drop(&mut self) {
        // SAFETY: created in `new`, destroyed once.
        unsafe { rocksdb_writebatch_destroy(self.raw) }
    }
}

/// Read options that end at the end of a tree.
struct TreeOptions {
    raw: *mut rocksdb_readoptions_t,
    /// What the options point to.
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

struct RocksDbReader<'a> {
    engine: &'a RocksDb,
    key: Vec<u8>,
    many: MultiGet,
}

impl RocksDbReader<'_> {
    fn iterator(&self, tree: usize) -> Iter<'_> {
        let options = self.engine.reads[tree].raw;
        // SAFETY: database and options are alive as long as the engine, which is borrowed.
        let raw = unsafe { rocksdb_create_iterator(self.engine.db.as_ptr(), options) };
        Iter { raw, _engine: self.engine }
    }
}

impl Reader for RocksDbReader<'_> {
    fn get(&mut self, tree: usize, key: &[u8], digest: &mut Digest) -> Result<bool> {
        prefixed(&mut self.key, tree, key);
        let mut error = ptr::null_mut();
        // SAFETY: database and options are alive, the key lives across the call; a slice that is
        // returned stays valid until it is destroyed, below.
        unsafe {
            let slice = rocksdb_get_pinned(
                self.engine.db.as_ptr(),
                self.engine.reads[tree].raw,
                chars(&self.key),
                self.key.len(),
                &raw mut error,
            );
            check(error)?;
            if slice.is_null() {
                return Ok(false);
            }
            let mut length = 0;
            let value = rocksdb_pinnableslice_value(slice, &raw mut length);
            digest.add(key, bytes(value, length));
            rocksdb_pinnableslice_destroy(slice);
        }
        Ok(true)
    }

    fn multi_get(&mut self, tree: usize, keys: &[&[u8]], digest: &mut Digest) -> Result<u64> {
        self.many.run(self.engine, tree, keys, digest)
    }

    fn scan(&mut self, tree: usize, from: &[u8], limit: u64, digest: &mut Digest) -> Result<u64> {
        prefixed(&mut self.key, tree, from);
        let mut iter = self.iterator(tree);
        iter.seek(&self.key);
        let mut items = 0;
        while items < limit && iter.valid() {
            // The first byte, the tree's number, was added by this adapter and is not part of the
            // workload's key.
            digest.add(&iter.key()[1..], iter.value());
            items += 1;
            iter.next();
        }
        iter.status()?;
        Ok(items)
    }

    fn first_key(&mut self, tree: usize) -> Result<Option<Vec<u8>>> {
        let mut iter = self.iterator(tree);
        iter.seek(&[tree as u8]);
        iter.status()?;
        Ok(iter.valid().then(|| iter.key()[1..].to_vec()))
    }

    fn last_key(&mut self, tree: usize) -> Result<Option<Vec<u8>>> {
        let mut iter = self.iterator(tree);
        iter.seek_to_last();
        iter.status()?;
        let inside = iter.valid() && usize::from(iter.key()[0]) == tree;
        Ok(inside.then(|| iter.key()[1..].to_vec()))
    }
}

/// An iterator over one tree. It borrows the engine, which keeps database and options alive.
struct Iter<'a> {
    raw: *mut rocksdb_iterator_t,
    _engine: &'a RocksDb,
}

impl Iter<'_> {
    fn seek(&mut self, key: &[u8]) {
        // SAFETY: the iterator is alive; the key is read during the call.
        unsafe { rocksdb_iter_seek(self.raw, chars(key), key.len()) }
    }

    fn seek_to_last(&mut self) {
        // SAFETY: the iterator is alive.
        unsafe { rocksdb_iter_seek_to_last(self.raw) }
    }

    fn valid(&self) -> bool {
        // SAFETY: the iterator is alive.
        unsafe { rocksdb_iter_valid(self.raw) != 0 }
    }

    fn next(&mut self) {
        // SAFETY: the iterator is alive, and callers have checked `valid`.
        unsafe { rocksdb_iter_next(self.raw) }
    }

    fn key(&self) -> &[u8] {
        let mut length = 0;
        // SAFETY: callers have checked `valid`; the bytes are valid until the iterator moves, which
        // requires a mutable borrow of it.
        unsafe { bytes(rocksdb_iter_key(self.raw, &raw mut length), length) }
    }

    fn value(&self) -> &[u8] {
        let mut length = 0;
        // SAFETY: as for `key`.
        unsafe { bytes(rocksdb_iter_value(self.raw, &raw mut length), length) }
    }

    fn status(&self) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: the iterator is alive.
        unsafe { rocksdb_iter_get_error(self.raw, &raw mut error) };
        check(error)
    }
}

impl Drop for Iter<'_> {
    fn drop(&mut self) {
        // SAFETY: created by `iterator`, destroyed once.
        unsafe { rocksdb_iter_destroy(self.raw) }
    }
}

fn prefixed(out: &mut Vec<u8>, tree: usize, key: &[u8]) {
    out.clear();
    out.push(tree as u8);
    out.extend_from_slice(key);
}

fn chars(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}

/// The bytes that a C function returned.
///
/// # Safety
/// `start` points to `length` bytes that stay valid and unchanged for `'a`.
unsafe fn bytes<'a>(start: *const c_char, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: promised by the caller.
    unsafe { std::slice::from_raw_parts(start.cast(), length) }
}

fn check(error: *mut c_char) -> Result<()> {
    take_text(error).map_or(Ok(()), |text| Err(Error::Engine(text)))
}

/// Takes over a text that RocksDB allocated; none if the pointer is null.
fn take_text(text: *mut c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: RocksDB returns a text that ends in zero and is the caller's to free, once.
    unsafe {
        let owned = CStr::from_ptr(text).to_string_lossy().into_owned();
        rocksdb_free(text.cast());
        Some(owned)
    }
}
