//! Looks up many keys with one call of RocksDB's batched MultiGet, which reads a block once for all
//! its keys. The buffers are reused from call to call.

use std::ffi::c_char;
use std::ptr;

use frondb_bench::Result;
use frondb_bench::engine::Digest;

use super::database::RocksDb;
use super::ffi::*;
use super::strings::{bytes, check};

/// The arguments and results of a call: lists with one element for each key.
#[derive(Default)]
pub(super) struct MultiGet {
    /// All keys, each after the number of its tree.
    keys: Vec<u8>,
    starts: Vec<*const c_char>,
    lengths: Vec<usize>,
    values: Vec<*mut rocksdb_pinnableslice_t>,
    errors: Vec<*mut c_char>,
}

impl MultiGet {
    /// Looks up `keys`. Adds the keys that exist to `digest`, in the order of `keys`, and returns
    /// their number.
    pub(super) fn run(
        &mut self,
        engine: &RocksDb,
        tree: usize,
        keys: &[&[u8]],
        digest: &mut Digest,
    ) -> Result<u64> {
        self.fill(tree, keys);
        // SAFETY: database, options and column family are alive as long as the engine. All lists
        // have an element for each key, and the keys live across the call.
        unsafe {
            rocksdb_batched_multi_get_cf(
                engine.db.as_ptr(),
                engine.reads[tree].raw,
                engine.family,
                keys.len(),
                self.starts.as_ptr(),
                self.lengths.as_ptr(),
                self.values.as_mut_ptr(),
                self.errors.as_mut_ptr(),
                false,
            );
        }
        self.take(keys, digest)
    }

    fn fill(&mut self, tree: usize, keys: &[&[u8]]) {
        self.keys.clear();
        self.lengths.clear();
        for key in keys {
            self.keys.push(tree as u8);
            self.keys.extend_from_slice(key);
            self.lengths.push(key.len() + 1);
        }
        self.starts.clear();
        let mut rest = self.keys.as_slice();
        for &length in &self.lengths {
            self.starts.push(rest.as_ptr().cast());
            rest = &rest[length..];
        }
        self.values.clear();
        self.values.resize(keys.len(), ptr::null_mut());
        self.errors.clear();
        self.errors.resize(keys.len(), ptr::null_mut());
    }

    /// Adds the values to `digest` and frees them. Returns their number, or the first error.
    fn take(&mut self, keys: &[&[u8]], digest: &mut Digest) -> Result<u64> {
        let (mut found, mut result) = (0, Ok(()));
        for ((key, &slice), &error) in keys.iter().zip(&self.values).zip(&self.errors) {
            result = result.and(check(error));
            if slice.is_null() {
                continue;
            }
            let mut length = 0;
            // SAFETY: a slice that is returned stays valid until it is destroyed, once, here.
            unsafe {
                let value = rocksdb_pinnableslice_value(slice, &raw mut length);
                digest.add(key, bytes(value, length));
                rocksdb_pinnableslice_destroy(slice);
            }
            found += 1;
        }
        result.map(|()| found)
    }
}
