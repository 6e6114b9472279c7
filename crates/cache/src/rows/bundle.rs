//! [`Bundle`]: rows one after the other, in one buffer.
//!
//! ```text
//!   0  u64  run
//!   8  u64  SeqNo as the run stores it
//!  16  u16  key length
//!  18  u16  value length
//!  20  u8   kind of the message
//!  21       key, value                          the next row begins at a multiple of 16
//! ```
//!
//! Rows are appended and never removed; the memory of all of them is freed with the bundle. A bit
//! for each row says whether it was read since it was appended.

use frondb_core::budget::Reservation;
use frondb_core::mem::Buf;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::{MessageKind, RunId, SeqNo};

/// Bytes of a bundle: a size class of the allocator, and small beside the smallest cache.
pub(crate) const BUNDLE_BYTES: usize = 16 << 10;
/// Rows begin at multiples of this.
const ALIGNMENT: usize = 16;
/// Places at which rows can begin.
pub(crate) const PLACES: usize = BUNDLE_BYTES / ALIGNMENT;
/// Largest number of rows in a bundle; limits the memory of the shard's table for these rows.
const ROWS_MAX: usize = 256;
/// Bytes that a row takes in the shard's table, on average: a slot has eight bytes, and between
/// three eighths and three quarters of the slots are taken.
const TABLE_BYTES_PER_ROW: usize = 14;
/// Bytes in front of a row's key.
const HEADER_BYTES: usize = 21;
/// Longest row, key and value together: a longer one would waste the end of many bundles.
pub(crate) const ROW_BYTES_MAX: usize = BUNDLE_BYTES / 16;

/// One message of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names and the types of its fields say it")]
pub struct Row<'a> {
    pub run: RunId,
    pub key: &'a [u8],
    /// The SeqNo as the run stores it; [`SeqNo::MIN`] if the run stores one SeqNo for all messages.
    pub seq: SeqNo,
    pub kind: MessageKind,
    pub value: &'a [u8],
}

/// Rows in one buffer; see the module's head.
pub(crate) struct Bundle {
    bytes: Buf,
    used: usize,
    rows: usize,
    read: [AtomicU64; PLACES / 64],
    _memory: Reservation,
}

impl Bundle {
    /// Memory of a bundle, and of the table for its rows.
    pub(crate) const FOOTPRINT: u64 =
        (BUNDLE_BYTES + size_of::<Self>() + ROWS_MAX * TABLE_BYTES_PER_ROW) as u64;

    /// Creates an empty bundle, charged by `memory`.
    pub(crate) fn new(memory: Reservation) -> Self {
        let bytes = Buf::packed(BUNDLE_BYTES);
        Self { bytes, used: 0, rows: 0, read: [const { AtomicU64::new(0) }; _], _memory: memory }
    }

    /// Appends a row and returns its place; `None` if it does not fit.
    pub(crate) fn append(&mut self, row: &Row<'_>) -> Option<usize> {
        let start = self.used;
        let (key, value) = (row.key.len(), row.value.len());
        let end = start + HEADER_BYTES + key + value;
        let has_room = self.rows < ROWS_MAX;
        let bytes = self.bytes.get_mut(start..end).filter(|_| has_room)?;
        self.rows += 1;
        let (header, rest) = bytes.split_at_mut(HEADER_BYTES);
        header[..8].copy_from_slice(&row.run.get().to_le_bytes());
        header[8..16].copy_from_slice(&row.seq.get().to_le_bytes());
        header[16..18].copy_from_slice(&(key as u16).to_le_bytes());
        header[18..20].copy_from_slice(&(value as u16).to_le_bytes());
        header[20] = row.kind as u8;
        rest[..key].copy_from_slice(row.key);
        rest[key..].copy_from_slice(row.value);
        self.used = end.next_multiple_of(ALIGNMENT).min(BUNDLE_BYTES);
        Some(start / ALIGNMENT)
    }

    /// Returns the row at a place that [`append`](Self::append) returned.
    #[inline]
    pub(crate) fn row(&self, place: usize) -> Option<Row<'_>> {
        let (header, rest) =
            self.bytes.get(place * ALIGNMENT..)?.split_first_chunk::<HEADER_BYTES>()?;
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| header[at + i]));
        let u16_at = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
        let (key, rest) = rest.split_at_checked(u16_at(16))?;
        Some(Row {
            run: RunId(u64_at(0)),
            key,
            seq: SeqNo(u64_at(8)),
            kind: MessageKind::from_u8(header[20])?,
            value: rest.get(..u16_at(18))?,
        })
    }

    /// Returns all rows in order, with their places.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (usize, Row<'_>)> {
        let mut place = 0;
        std::iter::from_fn(move || {
            let at = place;
            let row = (at * ALIGNMENT < self.used).then(|| self.row(at)).flatten()?;
            let bytes = HEADER_BYTES + row.key.len() + row.value.len();
            place += bytes.div_ceil(ALIGNMENT);
            Some((at, row))
        })
    }

    /// Notes that a row was read.
    #[inline]
    pub(crate) fn note_read(&self, place: usize) {
        let (word, bit) = (&self.read[place / 64], 1 << (place % 64));
        // A load costs less than a locked instruction, and most reads are not the first.
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Returns whether a row was read since it was appended.
    pub(crate) fn was_read(&self, place: usize) -> bool {
        self.read[place / 64].load(Ordering::Relaxed) & 1 << (place % 64) != 0
    }
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use super::*;
    use frondb_core::budget::{Budget, Part};
    use frondb_core::prng::Prng;

    #[test]
    fn rows_of_every_length_come_back_until_the_bundle_is_full() {
        let budget = Budget::new(1 << 20);
        let mut bundle = Bundle::new(budget.reserve(Part::Rows, Bundle::FOOTPRINT));
        let mut prng = Prng::new(3);
        let mut bytes = vec![0; ROW_BYTES_MAX];
        prng.fill(&mut bytes);
        let mut expected = Vec::new();
        let full = loop {
            let (key, value) = bytes.split_at(prng.index(ROW_BYTES_MAX / 4));
            let value = &value[..prng.index(value.len() + 1)];
            let (run, seq) = (RunId(prng.next_u64()), SeqNo(prng.next_u64()));
            let row = Row { run, key, seq, kind: MessageKind::Update, value };
            match bundle.append(&row) {
                Some(place) => expected.push((place, row)),
                None => break row,
            }
        };
        assert!(expected.len() >= BUNDLE_BYTES / (ROW_BYTES_MAX + 3 * ALIGNMENT));
        assert_eq!(bundle.rows().collect::<Vec<_>>(), expected);
        assert!(bundle.append(&full).is_none());
        for (n, &(place, row)) in expected.iter().enumerate() {
            assert_eq!(bundle.row(place), Some(row));
            assert!(!bundle.was_read(place));
            if n % 2 == 0 {
                bundle.note_read(place);
            }
        }
        let read = expected.iter().filter(|(place, _)| bundle.was_read(*place)).count();
        assert_eq!(read, expected.len().div_ceil(2));
        drop(bundle);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_bundle_has_a_limited_number_of_rows() {
        let budget = Budget::new(1 << 20);
        let mut bundle = Bundle::new(budget.reserve(Part::Rows, Bundle::FOOTPRINT));
        let row =
            Row { run: RunId(1), key: b"k", seq: SeqNo(1), kind: MessageKind::Put, value: b"" };
        let rows = (0..2 * ROWS_MAX).filter(|_| bundle.append(&row).is_some()).count();
        assert_eq!((rows, bundle.rows().count()), (ROWS_MAX, ROWS_MAX));
    }
}
