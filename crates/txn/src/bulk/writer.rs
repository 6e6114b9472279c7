//! [`BulkWriter`]: buffers the entries of one thread, and writes full buffers as spools.

use frondb_commit::{ENTRY_OVERHEAD_BYTES, write_value};
use frondb_core::budget::{Part, Reservation};
use frondb_core::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX, VALUE_INLINE_BYTES_MAX};
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::{Error, ErrorKind, Result};
use frondb_space::Extent;
use frondb_tree::{AsTree, TreeCore};
use frondb_writeset::SortBuffer;

use super::shared::{BUFFER_BYTES_MIN, LoadShared, free_values};

/// Adds entries to a `BulkLoad`. One thread at a time may use a writer; each thread needs its own.
pub struct BulkWriter {
    pub(super) shared: Arc<LoadShared>,
    trees: Vec<(Arc<TreeCore>, SortBuffer, Vec<Vec<Extent>>)>,
    last: usize,
    /// Bytes added since the last check of the memory limit.
    bytes_since_check: u64,
    memory: Reservation,
}

impl BulkWriter {
    pub(crate) fn new(shared: Arc<LoadShared>) -> Self {
        shared.writers.fetch_add(1, Ordering::Relaxed);
        let memory = shared.budget.reserve(Part::Work, 0);
        Self { shared, trees: Vec::new(), last: 0, bytes_since_check: 0, memory }
    }

    /// Adds an entry. Keys have 0 to 32 KiB, values 0 to 64 MiB.
    ///
    /// # Errors
    /// `Invalid` for a key or value that is too long, or a tree of another database; `NotFound` if
    /// the tree was dropped; `Cancelled`; `NoSpace`, `Io`, `Closed`, after which the load can only
    /// be dropped.
    #[inline]
    pub fn put(
        &mut self,
        tree: &impl AsTree,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.add(tree.core(), key.as_ref(), value.as_ref())
    }

    fn add(&mut self, tree: &Arc<TreeCore>, key: &[u8], value: &[u8]) -> Result<()> {
        let txns = &self.shared.txns;
        txns.health.check_open()?;
        if tree.bulk_load() != self.shared.id {
            tree.check(txns.reads.engine)?;
        }
        self.shared.check_cancelled()?;
        if key.len() > KEY_BYTES_MAX || value.len() > VALUE_BYTES_MAX {
            return Err(Error::invalid(format!(
                "a key has at most {KEY_BYTES_MAX} bytes and a value {VALUE_BYTES_MAX}; these have {} and {}",
                key.len(),
                value.len()
            )));
        }
        let at = self.place_of(tree);
        if value.len() <= VALUE_INLINE_BYTES_MAX {
            self.trees[at].1.put(key, value, false);
        } else {
            self.put_large(at, key, value)?;
        }
        let inlined = value.len().min(VALUE_INLINE_BYTES_MAX);
        self.bytes_since_check += (key.len() + inlined + ENTRY_OVERHEAD_BYTES) as u64;
        if self.bytes_since_check >= BUFFER_BYTES_MIN / 4 { self.make_room() } else { Ok(()) }
    }

    fn place_of(&mut self, tree: &Arc<TreeCore>) -> usize {
        let is = |at: usize| self.trees.get(at).is_some_and(|known| Arc::ptr_eq(&known.0, tree));
        let next = self.last + 1;
        self.last = if is(self.last) {
            self.last
        } else if is(next) {
            next
        } else {
            let known = self.trees.iter().position(|known| Arc::ptr_eq(&known.0, tree));
            known.unwrap_or_else(|| {
                self.trees.push((Arc::clone(tree), SortBuffer::new(), Vec::new()));
                self.trees.len() - 1
            })
        };
        self.last
    }

    fn put_large(&mut self, at: usize, key: &[u8], value: &[u8]) -> Result<()> {
        let _call = self.shared.calls.begin()?;
        let (_, buffer, values) = &mut self.trees[at];
        let space = &self.shared.space;
        let mut extents = Vec::new();
        let reference = write_value(space, value, &mut extents).inspect_err(|_| {
            extents.iter().for_each(|extent| space.release(*extent));
        });
        let reference = reference?;
        values.push(extents);
        let mut encoded = Vec::new();
        reference.encode(&mut encoded);
        buffer.put(key, &encoded, true);
        Ok(())
    }

    /// Writes the largest buffers to spools while this writer exceeds its share of the memory.
    fn make_room(&mut self) -> Result<()> {
        self.bytes_since_check = 0;
        let share = self.shared.writer_bytes();
        loop {
            let sum = |of: fn(&SortBuffer) -> u64| self.trees.iter().map(|(_, b, _)| of(b)).sum();
            self.memory.resize(sum(SortBuffer::memory_bytes));
            let used: u64 = sum(SortBuffer::used_bytes);
            let largest = (0..self.trees.len()).max_by_key(|&i| self.trees[i].1.used_bytes());
            let Some(largest) = largest.filter(|_| used > share) else { return Ok(()) };
            if self.trees[largest].1.is_empty() {
                return Ok(());
            }
            self.spill(largest)?;
        }
    }

    fn spill(&mut self, at: usize) -> Result<()> {
        self.sort(at)?;
        let _call = self.shared.calls.begin()?;
        let alone = self.trees.len() == 1;
        let (tree, buffer, _) = &mut self.trees[at];
        let mut writer = self.shared.spool_writer(tree, buffer.raw_bytes());
        buffer.for_each(|key, kind, value| writer.add(key, kind, value))?;
        let spool = writer.finish()?;
        if alone {
            buffer.clear();
        } else {
            // Free the memory, because the next full buffer may belong to another tree.
            *buffer = SortBuffer::new();
        }
        let number = self.shared.next_number();
        self.shared.spilled.fetch_add(1, Ordering::Relaxed);
        let spool = spool.map(|spool| (number, Arc::new(spool)));
        self.shared.gathered.lock().tree(tree).spools.extend(spool);
        Ok(())
    }

    /// Sorts a buffer, and frees the large values of duplicate entries.
    fn sort(&mut self, at: usize) -> Result<()> {
        let (tree, buffer, values) = &mut self.trees[at];
        let duplicates = buffer.sort();
        {
            let mut gathered = self.shared.gathered.lock();
            gathered.duplicates += duplicates.entries;
            gathered.note_duplicate(tree.id, duplicates.first);
        }
        free_values(&self.shared.space, values, &duplicates.references)
    }

    /// Hands the writer's entries to the load. If a writer with entries is dropped without this
    /// call, the load cannot be finished.
    ///
    /// # Errors
    /// `Cancelled`.
    pub fn finish(mut self) -> Result<()> {
        self.shared.check_cancelled()?;
        for at in 0..self.trees.len() {
            self.sort(at)?;
        }
        let mut gathered = self.shared.gathered.lock();
        for (tree, buffer, values) in self.trees.drain(..) {
            let place = gathered.tree(&tree);
            place.values.extend(values);
            if !buffer.is_empty() {
                place.buffers.push(buffer);
            }
        }
        Ok(())
    }
}

impl Drop for BulkWriter {
    fn drop(&mut self) {
        self.shared.writers.fetch_sub(1, Ordering::Relaxed);
        if self.trees.is_empty() {
            return;
        }
        let space = &self.shared.space;
        for extent in self.trees.drain(..).flat_map(|(_, _, values)| values).flatten() {
            space.release(extent);
        }
        let error = Error::new(
            ErrorKind::Cancelled,
            "a writer of the load was dropped before it was finished",
        );
        self.shared.gathered.lock().broken.get_or_insert(error);
    }
}

impl std::fmt::Debug for BulkWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BulkWriter")
    }
}
