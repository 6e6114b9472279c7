//! [`FilterWriter`]: builds the filter of a run in parts while the run is written.
//!
//! ```text
//!  blocks   | 0 | 1 | 2 | 3 | 4 | 5 | 6 |
//!  filter   |  part 0   |  part 1   | 2 |   a part ends with the block in which it has enough keys
//! ```
//!
//! A lookup reads only the part that covers the block in which its key would be, so the cost of a
//! lookup does not grow with the run. A part also ends where a part of the block index must end, so
//! that it lies within one index part. The frames of the filter follow the block index, so they are
//! kept in memory until the last block is written: about eleven bits a key.

use frondb_block::{BlockKind, FRAME_HEADER_BYTES, seal_frame};
use frondb_core::Result;
use frondb_core::budget::{Budget, Part, Reservation};
use frondb_core::mem::Buf;
use frondb_core::sync::Arc;
use frondb_filter::{FilterBuilder, FilterKind};

/// The usual number of keys after which a part ends with the current block. A part of 8 Ki keys has
/// 10 KiB, so reading it costs about as much as reading a block. With fewer keys a fuse filter
/// needs more bits for each key: 11.3 with 4 Ki keys, 10.6 with 8 Ki, 9.6 with 128 Ki.
pub const FILTER_PART_KEYS: usize = 8 << 10;

/// Largest filter: the memory budget divided by this, and at most [`FILTER_BYTES_MAX`]. A larger
/// filter is dropped, because its parts would take too much memory until they are written.
const BUDGET_DIVISOR: u64 = 16;
/// Largest filter with any memory budget, bytes.
const FILTER_BYTES_MAX: u64 = 1 << 30;

/// Bytes by which the filter grows before the charge on the budget is updated.
const CHARGE_BYTES: u64 = 64 << 10;

/// Builds the filter of one run. Used by one thread at a time.
pub(crate) struct FilterWriter {
    kind: FilterKind,
    part_keys: usize,
    /// The part under construction, and the number of blocks that it covers so far.
    builder: FilterBuilder,
    blocks: u32,
    /// The last hash of the part: versions of a key, and keys with one prefix, are adjacent, and
    /// the filter needs their hash once.
    last: Option<u64>,
    filters: Filters,
    /// Memory of the finished parts.
    bytes: u64,
    /// `None` if the memory is not charged.
    budget: Option<Arc<Budget>>,
}

/// The finished filter of a run; it may have no parts.
#[derive(Default)]
pub(crate) struct Filters {
    /// Number of blocks and of bytes of each part.
    parts: Vec<(u32, u32)>,
    frames: Vec<Buf>,
    memory: Option<Reservation>,
}

impl FilterWriter {
    /// Creates a writer whose parts end after `part_keys` keys.
    pub(crate) fn new(kind: FilterKind, part_keys: usize) -> Self {
        Self {
            kind,
            part_keys,
            builder: FilterBuilder::new(kind),
            blocks: 0,
            last: None,
            filters: Filters::default(),
            bytes: 0,
            budget: None,
        }
    }

    /// Charges the memory of large filters to `budget`.
    pub(crate) fn charging(mut self, budget: &Arc<Budget>) -> Self {
        self.budget = Some(Arc::clone(budget));
        self
    }

    /// Adds the hash of a key of the current block.
    #[inline]
    pub(crate) fn push(&mut self, hash: u64) {
        if self.last.replace(hash) != Some(hash) {
            self.builder.push(hash);
        }
    }

    /// Ends a block. Also ends the part if it has enough keys, or if `ends_part` is set. Returns
    /// `false` if the filter has become too large and must be dropped.
    ///
    /// # Errors
    /// As [`seal_frame`].
    pub(crate) fn end_block(&mut self, ends_part: bool) -> Result<bool> {
        self.blocks += 1;
        if ends_part || self.builder.len() >= self.part_keys {
            self.end_part()?;
        }
        let most = self.budget.as_ref().map_or(u64::MAX, |budget| budget.total() / BUDGET_DIVISOR);
        Ok(self.bytes <= most.min(FILTER_BYTES_MAX))
    }

    /// Returns whether the part under construction has no block yet.
    pub(crate) fn is_between_parts(&self) -> bool {
        self.blocks == 0
    }

    /// Returns the number of blocks and bytes of each finished part.
    pub(crate) fn parts(&self) -> &[(u32, u32)] {
        &self.filters.parts
    }

    fn end_part(&mut self) -> Result<()> {
        let builder = std::mem::replace(&mut self.builder, FilterBuilder::new(self.kind));
        let mut frame = builder.finish_behind(FRAME_HEADER_BYTES);
        seal_frame(BlockKind::Filter, &mut frame)?;
        // A key that continues in the next part needs its hash there too.
        self.last = None;
        self.filters.parts.push((std::mem::take(&mut self.blocks), frame.len() as u32));
        self.bytes += frame.footprint() as u64;
        self.filters.frames.push(frame);
        self.charge();
        Ok(())
    }

    /// Charges the memory of the frames: the filter of a large run has megabytes.
    fn charge(&mut self) {
        let Some(budget) = &self.budget else { return };
        let memory = &mut self.filters.memory;
        if self.bytes >= memory.as_ref().map_or(0, Reservation::bytes) + CHARGE_BYTES {
            memory.get_or_insert_with(|| budget.reserve(Part::Work, 0)).resize(self.bytes);
        }
    }

    /// Ends the last part and returns the filter.
    ///
    /// # Errors
    /// As [`end_block`](Self::end_block).
    pub(crate) fn finish(mut self) -> Result<Filters> {
        if self.blocks > 0 {
            self.end_part()?;
        }
        Ok(self.filters)
    }
}

impl Filters {
    /// Returns the number of blocks and bytes of each part.
    pub(crate) fn parts(&self) -> &[(u32, u32)] {
        &self.parts
    }

    pub(crate) fn frames(&self) -> impl Iterator<Item = &[u8]> {
        self.frames.iter().map(|frame| &frame[..])
    }
}
