//! A write batch: messages for any number of trees that take effect together.
//!
//! Messages are encoded as they are added, in one section for each tree, in the form of the log.
//! The commit appends the sections to the log unchanged and decodes them once, into the memtables.
//!
//! A batch is inserted as a whole, so its size is limited to a part of the memory
//! (`Memory::batch_bytes` of frondb_tree). Large values do not count, because they go to disk: with
//! any memory, a batch can have a value of the maximum length.

use frondb_core::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX, VALUE_INLINE_BYTES_MAX};
use frondb_core::sync::Arc;
use frondb_core::{Error, MessageKind, Result, TreeId};

use frondb_records::{encode_op, encode_range_delete};
use frondb_tree::{AsTree, TreeCore};

/// Bytes that a message takes in a memtable beyond its encoding.
pub const ENTRY_OVERHEAD_BYTES: usize = 24;

/// How durable a commit is when its call returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[non_exhaustive]
pub enum Durability {
    /// The commit survives a power failure, as far as the sync mode promises it.
    #[default]
    Sync,
    /// The operating system has the commit: it survives the end of the process, but not a power
    /// failure.
    NoSync,
}

/// The messages for one tree.
#[derive(Clone, Debug)]
pub struct Section {
    /// The tree that the messages are for.
    pub tree: TreeId,
    /// A handle of the tree, whose memtable gets the messages. Error messages take the tree's name
    /// from it.
    pub handle: Arc<TreeCore>,
    /// The messages, in the encoding of the log.
    pub bytes: Vec<u8>,
    /// The number of messages.
    pub count: u32,
}

/// Writes to any number of trees of one database that `Db::write` commits atomically. Within a tree
/// the last write of a key wins.
///
/// If a key or a value is too long, `Db::write` changes nothing and returns the error. The same
/// holds for a batch of more than `Db::batch_bytes_max` bytes, a quarter of the memory option and
/// at most 512 MiB; values over 64 KiB do not count.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub(crate) sections: Vec<Section>,
    /// Values that get extents of their own; a message refers to its value by position in this list
    /// (rule 17).
    pub(crate) large: Vec<Vec<u8>>,
    /// The number of the open database that the trees belong to; `None` before the first message.
    pub(crate) engine: Option<u64>,
    /// The error of the first invalid write, which the commit returns.
    pub(crate) error: Option<Error>,
    /// Whether the batch has a put or an update.
    grows: bool,
    /// Whether the caller declares that the batch leads to space being freed.
    frees: bool,
    /// Whether the caller declares that the batch must not wait for background work.
    unpaced: bool,
    /// Index of the section used last: a program often writes to a few trees in turn.
    last: usize,
}

impl Batch {
    /// Creates an empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of `key`. Keys have 0 to 32 KiB, values 0 to 64 MiB.
    #[inline]
    pub fn put(&mut self, tree: &impl AsTree, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.add_put(tree.core(), key.as_ref(), value.as_ref());
    }

    /// Removes `key`; it need not exist.
    #[inline]
    pub fn delete(&mut self, tree: &impl AsTree, key: impl AsRef<[u8]>) {
        self.add(tree.core(), MessageKind::Delete, key.as_ref(), b"");
    }

    /// Writes an update of `key` with `operand`, at most 64 KiB, and reads nothing. Readers and
    /// merges apply the tree's update function later. If the function fails, or the value becomes
    /// longer than 64 MiB, reading this key fails with `Invalid` until the key is put or deleted;
    /// other keys are not affected.
    #[inline]
    pub fn update(&mut self, tree: &impl AsTree, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) {
        self.add_update(tree.core(), key.as_ref(), operand.as_ref());
    }

    /// Removes all keys with `lo <= key < hi`; without `hi`, all keys from `lo` on. An empty range
    /// removes nothing.
    #[inline]
    pub fn delete_range(&mut self, tree: &impl AsTree, lo: impl AsRef<[u8]>, hi: Option<&[u8]>) {
        self.add_range_delete(tree.core(), lo.as_ref(), hi);
    }

    fn add_put(&mut self, tree: &Arc<TreeCore>, key: &[u8], value: &[u8]) {
        if value.len() <= VALUE_INLINE_BYTES_MAX {
            self.add(tree, MessageKind::Put, key, value);
        } else if self.check(tree, key, value) {
            let position = self.large.len() as u64;
            self.large.push(value.to_vec());
            self.push(tree, MessageKind::PutRef, key, &position.to_le_bytes());
        }
    }

    fn add_update(&mut self, tree: &Arc<TreeCore>, key: &[u8], operand: &[u8]) {
        if let Err(error) = tree.check_updates() {
            self.fail(error);
        } else if operand.len() > VALUE_INLINE_BYTES_MAX {
            self.fail(Error::invalid(format!(
                "an operand has at most {VALUE_INLINE_BYTES_MAX} bytes, not {}",
                operand.len()
            )));
        } else {
            self.add(tree, MessageKind::Update, key, operand);
        }
    }

    fn add_range_delete(&mut self, tree: &Arc<TreeCore>, lo: &[u8], hi: Option<&[u8]>) {
        if !self.check(tree, lo, b"") || hi.is_some_and(|hi| !self.check(tree, hi, b"")) {
            return;
        }
        if hi.is_some_and(|hi| hi <= lo) {
            return;
        }
        let section = self.section(tree);
        encode_range_delete(&mut section.bytes, lo, hi);
        section.count += 1;
    }

    /// Returns the messages, by tree.
    #[doc(hidden)]
    #[must_use]
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Returns the number of writes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sections.iter().map(|section| section.count as usize).sum()
    }

    /// Returns whether the batch has no writes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sections.iter().all(|section| section.count == 0)
    }

    /// Returns the approximate size of the batch, bytes: its writes, and its values over 64 KiB,
    /// which do not go to the log.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let large: usize = self.large.iter().map(Vec::len).sum();
        large + self.sections.iter().map(|section| section.bytes.len()).sum::<usize>()
    }

    /// Returns the approximate memory that the batch takes once committed, bytes: keys, operands,
    /// values of at most 64 KiB, and 24 bytes for each write. `Db::batch_bytes_max` is the limit.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let overhead = self.len() * ENTRY_OVERHEAD_BYTES;
        overhead + self.sections.iter().map(|section| section.bytes.len()).sum::<usize>()
    }

    /// Checks that the batch takes at most `max` bytes in memtables.
    ///
    /// # Errors
    /// `Invalid` if it takes more.
    #[doc(hidden)]
    pub fn check_bytes(&self, max: u64) -> Result<()> {
        let bytes = self.memory_bytes();
        if bytes as u64 > max {
            return Err(Error::invalid(format!(
                "a batch has at most {max} bytes (a quarter of the memory, and 512 MiB), not \
                 {bytes}"
            )));
        }
        Ok(())
    }

    /// Marks the batch as a step of an operation that frees space, for example removing the names
    /// of trees before they are dropped. While the disk is full, the database then accepts the
    /// batch like a batch of deletes. Only for small batches: the space reserved for a full disk
    /// (`Options::reserve_bytes`) is small.
    pub fn set_frees_space(&mut self) {
        self.frees = true;
    }

    /// Exempts the batch from write stalls, which delay commits while background work is behind.
    /// Use it for small, rare writes that other threads wait for, such as a counter.
    pub fn exempt_from_pacing(&mut self) {
        self.unpaced = true;
    }

    /// Returns whether the batch is exempt from pacing. On a full disk, the database treats such a
    /// batch like any other.
    #[doc(hidden)]
    pub fn is_unpaced(&self) -> bool {
        self.unpaced
    }

    /// Returns whether the batch is admitted while the disk is full: it has only deletes, or the
    /// caller has declared that it leads to space being freed.
    #[doc(hidden)]
    pub fn frees_space(&self) -> bool {
        self.frees || !self.grows
    }

    /// Removes all writes, and undoes [`set_frees_space`](Self::set_frees_space) and
    /// [`exempt_from_pacing`](Self::exempt_from_pacing). Keeps the allocated memory, except that of
    /// values over 64 KiB.
    pub fn clear(&mut self) {
        for section in &mut self.sections {
            section.bytes.clear();
            section.count = 0;
        }
        self.large.clear();
        self.engine = None;
        self.error = None;
        (self.frees, self.unpaced) = (false, false);
        self.grows = false;
    }

    fn add(&mut self, tree: &Arc<TreeCore>, kind: MessageKind, key: &[u8], value: &[u8]) {
        if self.check(tree, key, value) {
            self.push(tree, kind, key, value);
        }
    }

    fn push(&mut self, tree: &Arc<TreeCore>, kind: MessageKind, key: &[u8], value: &[u8]) {
        self.grows |= kind != MessageKind::Delete;
        let section = self.section(tree);
        encode_op(&mut section.bytes, kind, key, value);
        section.count += 1;
    }

    /// Returns the section of a tree; adds one if there is none.
    fn section(&mut self, handle: &Arc<TreeCore>) -> &mut Section {
        let tree = handle.id;
        let next = self.last + 1;
        let at = if self.sections.get(self.last).is_some_and(|s| s.tree == tree) {
            self.last
        } else if self.sections.get(next).is_some_and(|s| s.tree == tree) {
            next
        } else {
            self.sections.iter().position(|s| s.tree == tree).unwrap_or_else(|| {
                let handle = handle.clone();
                self.sections.push(Section { tree, handle, bytes: Vec::new(), count: 0 });
                self.sections.len() - 1
            })
        };
        self.last = at;
        &mut self.sections[at]
    }

    /// Returns whether a message may be added. If not, remembers the error.
    fn check(&mut self, tree: &Arc<TreeCore>, key: &[u8], value: &[u8]) -> bool {
        let result = self.check_lengths(key, value).and_then(|()| self.check_engine(tree));
        match result {
            Ok(()) => true,
            Err(error) => {
                self.fail(error);
                false
            }
        }
    }

    #[allow(clippy::unused_self)]
    fn check_lengths(&self, key: &[u8], value: &[u8]) -> Result<()> {
        if key.len() > KEY_BYTES_MAX {
            return Err(Error::invalid(format!(
                "a key has at most {KEY_BYTES_MAX} bytes, not {}",
                key.len()
            )));
        }
        if value.len() > VALUE_BYTES_MAX {
            return Err(Error::invalid(format!(
                "a value has at most {VALUE_BYTES_MAX} bytes, not {}",
                value.len()
            )));
        }
        Ok(())
    }

    /// Checks that the tree belongs to the same open database as the batch.
    fn check_engine(&mut self, tree: &Arc<TreeCore>) -> Result<()> {
        match self.engine {
            Some(engine) if engine != tree.engine() => Err(Error::invalid(format!(
                "tree {:?} belongs to another open database than the batch",
                tree.name()
            ))),
            _ => {
                self.engine = Some(tree.engine());
                Ok(())
            }
        }
    }

    /// Remembers the first error.
    fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }
}
