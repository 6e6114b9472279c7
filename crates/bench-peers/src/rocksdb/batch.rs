//! A batch of changes.

use frondb_bench::engine::{Batch, Change};

use super::ffi::*;
use super::strings::{chars, prefixed};

/// A batch of RocksDB whose memory is reused.
pub(super) struct WriteBatch {
    raw: *mut rocksdb_writebatch_t,
    key: Vec<u8>,
}

// SAFETY: the batch belongs to this value alone; RocksDB ties it to no thread.
unsafe impl Send for WriteBatch {}

impl WriteBatch {
    pub(super) fn new() -> Self {
        // SAFETY: created here, destroyed in `drop`.
        Self { raw: unsafe { rocksdb_writebatch_create() }, key: Vec::new() }
    }

    /// Replaces the contents by the changes of `batch`.
    pub(super) fn fill(&mut self, batch: &Batch) {
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

    /// Returns the batch for `rocksdb_write`. The pointer is valid while this value lives.
    pub(super) fn raw(&mut self) -> *mut rocksdb_writebatch_t {
        self.raw
    }
}

impl Drop for WriteBatch {
    fn drop(&mut self) {
        // SAFETY: created in `new`, destroyed once.
        unsafe { rocksdb_writebatch_destroy(self.raw) }
    }
}
