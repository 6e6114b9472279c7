//! Reads: lookups of one key, lookups of many keys, and scans.

use std::ptr;

use frondb_bench::Result;
use frondb_bench::engine::{Digest, Reader};

use super::database::RocksDb;
use super::ffi::*;
use super::multi_get::MultiGet;
use super::strings::{bytes, chars, check, prefixed};

/// A reader. It borrows the engine, which keeps the database and the options alive.
pub(super) struct RocksDbReader<'a> {
    engine: &'a RocksDb,
    key: Vec<u8>,
    many: MultiGet,
}

impl<'a> RocksDbReader<'a> {
    pub(super) fn new(engine: &'a RocksDb) -> Self {
        Self { engine, key: Vec::new(), many: MultiGet::default() }
    }

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
            // The first byte is the number of the tree, which this adapter has added. It is not
            // part of the workload's key.
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

/// An iterator over one tree. It borrows the engine, which keeps the database and the options
/// alive.
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
