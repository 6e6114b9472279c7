//! The entries of a batch. A batch copies entries into one buffer, so that a hundred of them cost
//! one call.
//!
//! Entries that are adjacent in a block or memtable are copied together:
//! ```text
//!   bytes    k0 v0  k1 k2 k3 v1 v2 v3  k4 v4 ...
//!   entries  {k0, v0} {k1, v1} {k2, v2}     made last, because the buffer may move while it grows
//! ```

use std::ops::Range;

use frondb::Entries;
use frondb_core::pool::Pool;

use crate::slice::frondb_slice;

/// Limits of the memory that a batch reserves when it has its first entry.
const RESERVED_ROWS_MAX: usize = 256;
const RESERVED_BYTES_MAX: usize = 32 << 10;

/// Batches that no cursor uses, kept for their memory. A statement makes a cursor for each range
/// that it reads; without this pool, allocating the buffers of the batches took 2 % of a server's
/// CPU under sysbench's oltp_read_write.
static IDLE: Pool<Batch> = Pool::new(8);

#[derive(Default)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    /// The places of all keys and values in `bytes`.
    pub(super) places: Vec<Place>,
    pub(super) entries: Vec<frondb_entry>,
}

/// The place of an entry in the bytes of a batch.
pub(super) struct Place {
    key: Range<usize>,
    value: Range<usize>,
}

impl Batch {
    /// Returns an empty batch, with the memory of an earlier batch if one is idle.
    pub(super) fn reused() -> Self {
        IDLE.take().unwrap_or_default()
    }

    /// Returns whether the batch has never allocated memory.
    pub(super) fn is_new(&self) -> bool {
        self.places.capacity() == 0
    }

    /// Keeps the memory of a batch for another cursor, unless it is large.
    pub(super) fn recycle(mut self) {
        let is_large = self.bytes.capacity() > 2 * RESERVED_BYTES_MAX
            || self.places.capacity().max(self.entries.capacity()) > 2 * RESERVED_ROWS_MAX;
        if !self.is_new() && !is_large {
            self.clear();
            IDLE.put(self);
        }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
        self.entries.clear();
    }

    /// Reserves memory for `rows_max` entries of the size of the first entry, which the batch
    /// already has; at most [`RESERVED_ROWS_MAX`] and [`RESERVED_BYTES_MAX`], because the range may
    /// have far fewer entries.
    pub(super) fn expect(&mut self, rows_max: usize, bytes_max: usize) {
        let rows = rows_max.min(RESERVED_ROWS_MAX);
        let bytes = self.bytes.len().saturating_mul(rows);
        self.bytes.reserve(bytes.min(bytes_max).min(RESERVED_BYTES_MAX));
        self.places.reserve(rows);
        self.entries.reserve(rows);
    }

    #[inline]
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.places.push(Place { key: start..key_end, value: key_end..self.bytes.len() });
    }

    pub(super) fn add_many(&mut self, entries: &Entries<'_>) {
        let ((keys, keys_from, key_ends), (values, values_from, value_ends)) =
            (entries.keys(), entries.values());
        let (Some(&keys_to), Some(&values_to)) = (key_ends.last(), value_ends.last()) else {
            return;
        };
        let mut key_at = self.bytes.len();
        self.bytes.extend_from_slice(&keys[keys_from as usize..keys_to as usize]);
        let mut value_at = self.bytes.len();
        self.bytes.extend_from_slice(&values[values_from as usize..values_to as usize]);
        let (keys_at, values_at) = (key_at, value_at);
        self.places.extend(key_ends.iter().zip(value_ends).map(|(key_end, value_end)| {
            let key = key_at..keys_at + (key_end - keys_from) as usize;
            let value = value_at..values_at + (value_end - values_from) as usize;
            (key_at, value_at) = (key.end, value.end);
            Place { key, value }
        }));
    }

    pub(super) fn finish(&mut self) {
        let Self { bytes, places, entries } = self;
        let slice = |place: &Range<usize>| frondb_slice::of(&bytes[place.clone()]);
        entries.extend(
            places
                .iter()
                .map(|place| frondb_entry { key: slice(&place.key), value: slice(&place.value) }),
        );
    }
}

/// An entry of a tree.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_entry {
    /// The key.
    pub(super) key: frondb_slice,
    /// The value.
    pub(super) value: frondb_slice,
}

/// Entries that a cursor has read in one call. They are valid until the cursor moves or is freed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_rows {
    /// The entries, in the order in which the cursor read them.
    pub(super) entries: *const frondb_entry,
    /// The number of entries; 0 at the end of the range.
    pub(super) count: usize,
    /// Whether the batch reached the end of the range, so that the next batch would have no entry.
    /// False if this is not known, because the batch ended at one of its limits.
    pub(super) is_end: bool,
}
