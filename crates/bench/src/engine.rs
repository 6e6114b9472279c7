//! The interface between the benchmark and an engine: the [`Engine`] and [`Reader`] traits and
//! their plain types.
//!
//! An adapter only translates calls. It must not batch, cache, delay or prefetch, since the effect
//! would be attributed to the engine. Two rules keep the comparison fair:
//!
//! * every read feeds the bytes of key and value to a [`Digest`], so that all engines decode the
//!   same bytes and equal digests prove equal answers;
//! * every read sees all writes that were acknowledged before the read began, so a reader may keep
//!   buffers and handles from one call to the next, but no snapshot.
//!
//! Threads: an [`Engine`] is shared by reference; each reading thread creates its own [`Reader`].

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use crate::codec::Codec;
use crate::error::Result;

/// A tree of a workload. Batches and reads name it by its index in [`EngineOptions::trees`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeSpec {
    /// The name of the tree, for engines with named trees.
    pub name: &'static str,
    /// Whether the workload does point reads in this tree, so that a filter on whole keys is worth
    /// its memory.
    pub unique: bool,
}

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// As soon as the write survives the death of the process.
    NoSync,
    /// As soon as the write survives power loss.
    Sync,
}

/// The options that an engine is opened with.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// All memory that the engine may use, bytes: caches, write buffers, indexes and filters
    /// together. The child's cgroup, if it has one, limits it to 1.5 times this number, page cache
    /// included.
    pub memory_bytes: u64,
    /// The trees of the workload.
    pub trees: Vec<TreeSpec>,
    /// The codec of the trees.
    pub codec: Codec,
    /// Whether the workload will request synced commits. Some engines decide this when they are
    /// opened, and not for each commit.
    pub durability: Durability,
}

/// One change of a [`Batch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// Writes `value` under `key`.
    Put {
        /// Number of the tree.
        tree: usize,
        /// The key.
        key: &'a [u8],
        /// The value, possibly empty.
        value: &'a [u8],
    },
    /// Removes `key`.
    Delete {
        /// Number of the tree.
        tree: usize,
        /// The key.
        key: &'a [u8],
    },
}

/// Changes that are written atomically. They are in an arena that is reused from batch to batch, so
/// that filling a batch needs no allocation.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    changes: Vec<Slot>,
}

/// Where a change is in the arena: the key of `key` bytes at `start`, then the value of `value`
/// bytes, `None` for a delete.
#[derive(Clone, Copy, Debug)]
struct Slot {
    tree: usize,
    start: usize,
    key: usize,
    value: Option<usize>,
}

impl Batch {
    /// Removes all changes and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.changes.clear();
    }

    /// Adds a put.
    pub fn put(&mut self, tree: usize, key: &[u8], value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.changes.push(Slot { tree, start, key: key.len(), value: Some(value.len()) });
    }

    /// Adds a delete.
    pub fn delete(&mut self, tree: usize, key: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.changes.push(Slot { tree, start, key: key.len(), value: None });
    }

    /// Returns the changes in the order in which they were added.
    pub fn changes(&self) -> impl Iterator<Item = Change<'_>> {
        self.changes.iter().map(|&Slot { tree, start, key, value }| {
            let (key, rest) = self.bytes[start..].split_at(key);
            match value {
                Some(length) => Change::Put { tree, key, value: &rest[..length] },
                None => Change::Delete { tree, key },
            }
        })
    }

    /// Returns the number of changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Returns whether there are no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns the bytes of all keys and values, the denominator of write amplification.
    #[must_use]
    pub fn raw_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }
}

/// Folds the bytes that reads return into one number, in order.
///
/// A digest makes an engine produce every byte, and lets the answers of two engines be compared. It
/// is cheap (a rotate, an XOR and a multiplication for eight bytes), so it costs little compared
/// with the read itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest(u64);

impl Digest {
    /// Adds an entry. Both lengths count, so moving a byte from key to value changes the result.
    #[inline]
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        self.bytes(key);
        self.bytes(value);
    }

    /// Returns the digest of all bytes so far.
    #[must_use]
    pub fn value(self) -> u64 {
        self.0
    }

    /// Adds a key, or a value: an entry is its key and then its value.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            let mut whole = [0; 8];
            whole.copy_from_slice(word);
            self.word(u64::from_le_bytes(whole));
        }
        let mut last = [0; 8];
        let tail = words.remainder();
        last[..tail.len()].copy_from_slice(tail);
        self.word(u64::from_le_bytes(last) ^ ((bytes.len() as u64) << 56));
    }

    #[inline]
    fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

/// An open engine.
pub trait Engine: Sync {
    /// Writes `batch` atomically and returns when the batch is as durable as `durability` demands.
    fn write(&self, batch: &Batch, durability: Durability) -> Result<()>;

    /// Creates a reader for the calling thread.
    fn reader(&self) -> Result<Box<dyn Reader + '_>>;

    /// Returns whether no background work is running or due. An adapter must not speed that work
    /// up.
    fn is_settled(&self) -> Result<bool>;

    /// Makes all acknowledged writes survive power loss.
    fn sync(&self) -> Result<()>;

    /// Returns the number of log syncs since the engine was opened; `None` if the engine does not
    /// count them.
    fn log_syncs(&self) -> Option<u64> {
        None
    }

    /// Returns the bytes of keys and values that background work has compressed again with a slow
    /// codec, so that writers need not wait for that codec. `None` if the engine has no such work
    /// for the codec of its trees.
    fn packed_bytes(&self) -> Option<u64> {
        None
    }

    /// Compresses all data with its final codec. This includes data that the engine would otherwise
    /// keep in memory, in its log or in upper levels until more is written. Returns whether the
    /// time of this call counts as packing. Only the workload `compression` calls it.
    fn pack(&self) -> Result<bool> {
        Ok(false)
    }

    /// Returns the free space in the engine's files, bytes; an idle engine returns it to the file
    /// system.
    fn free_bytes(&self) -> u64 {
        0
    }

    /// Returns the disk space that does not depend on the amount of data, bytes: what the engine
    /// reserves, and the part of the log that recovery would not read.
    fn reserved_bytes(&self) -> Result<u64> {
        Ok(0)
    }

    /// Returns the engine's own statistics as text.
    fn stats(&self) -> String;

    /// Closes the engine. The data stays on the disk.
    fn close(self: Box<Self>) -> Result<()>;
}

/// The reads of one thread. Each call sees all writes that were acknowledged before the call began.
pub trait Reader {
    /// Looks `key` up. If the key exists, feeds key and value to `digest` and returns `true`.
    fn get(&mut self, tree: usize, key: &[u8], digest: &mut Digest) -> Result<bool>;

    /// Looks all `keys` up, with one call if the engine has such a call. Feeds the found keys and
    /// their values to `digest`, in the order of `keys`, and returns the number of found keys.
    fn multi_get(&mut self, tree: usize, keys: &[&[u8]], digest: &mut Digest) -> Result<u64> {
        let mut found = 0;
        for key in keys {
            found += u64::from(self.get(tree, key, digest)?);
        }
        Ok(found)
    }

    /// Feeds up to `limit` entries with keys at or after `from` to `digest`, in key order. Returns
    /// the number of entries.
    fn scan(&mut self, tree: usize, from: &[u8], limit: u64, digest: &mut Digest) -> Result<u64>;

    /// Returns the smallest key of the tree; `None` if the tree is empty.
    fn first_key(&mut self, tree: usize) -> Result<Option<Vec<u8>>>;

    /// Returns the largest key of the tree; `None` if the tree is empty.
    fn last_key(&mut self, tree: usize) -> Result<Option<Vec<u8>>>;
}

/// An engine that can be opened: an entry of the registry.
#[derive(Clone, Copy)]
pub struct EngineKind {
    /// The name of the engine on the command line and in reports.
    pub name: &'static str,
    /// Returns the engine's version and its settings for these options, in one line for the report.
    pub describe: fn(&EngineOptions) -> String,
    /// The codecs that the engine has. A variant with another codec skips the engine, with a note
    /// except in `compression`.
    pub codecs: &'static [Codec],
    /// Creates a database in an existing, empty directory, or opens the database that an earlier
    /// child has left in the directory.
    pub open: fn(&Path, &EngineOptions) -> Result<Box<dyn Engine>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_returns_its_changes_unchanged() {
        let mut batch = Batch::default();
        batch.put(0, b"key", b"value");
        batch.delete(1, b"gone");
        batch.put(2, b"k", b"");
        let changes: Vec<_> = batch.changes().collect();
        assert_eq!(
            changes,
            [
                Change::Put { tree: 0, key: b"key", value: b"value" },
                Change::Delete { tree: 1, key: b"gone" },
                Change::Put { tree: 2, key: b"k", value: b"" },
            ]
        );
        assert_eq!(batch.raw_bytes(), 13);
        batch.clear();
        assert!(batch.is_empty() && batch.raw_bytes() == 0);
    }

    #[test]
    fn a_digest_depends_on_every_byte_its_place_and_the_border() {
        let of = |entries: &[(&[u8], &[u8])]| {
            let mut digest = Digest::default();
            for (key, value) in entries {
                digest.add(key, value);
            }
            digest.value()
        };
        let base = of(&[(b"0123456789", b"abc"), (b"1", b"2")]);
        assert_eq!(base, of(&[(b"0123456789", b"abc"), (b"1", b"2")]));
        assert_ne!(base, of(&[(b"0123456789a", b"bc"), (b"1", b"2")]));
        assert_ne!(base, of(&[(b"1", b"2"), (b"0123456789", b"abc")]));
        assert_ne!(base, of(&[(b"0123456788", b"abc"), (b"1", b"2")]));
        assert_ne!(of(&[(b"", b"")]), of(&[(b"\0", b"")]));
    }
}
