//! Decodes the frames of a block index, and checks that they agree with the metadata and with each
//! other.

use frondb_core::codec::{Reader, Truncated};

use super::filter_parts::{FilterParts, FilterSpan};
use super::packer::IndexPacker;
use super::part::{BlockIndex, Packed};
use super::separator::may_follow;
use super::top::PartPlace;
use crate::format::{RunMeta, decode_index_entry};

impl BlockIndex {
    /// Decodes the payload of the only frame of an index.
    ///
    /// # Errors
    /// [`Truncated`] if the payload does not describe the blocks and the filter of `meta`.
    pub fn decode(payload: &[u8], meta: &RunMeta) -> Result<Self, Truncated> {
        let mut input = Reader::new(payload);
        let mut index = Self::decode_blocks(&mut input, meta.blocks)?;
        let span =
            FilterSpan { first: 0, offset: 0, parts: meta.filter_parts, bytes: meta.filter_bytes };
        // A filter with one part covers all blocks and is not listed.
        let filters = match meta.filter_parts {
            0 => FilterParts::none(),
            1 => FilterParts::one(span, meta.blocks)?,
            _ => FilterParts::decode(&mut input, span, meta.blocks)?,
        };
        index.set_filters(filters);
        let is_whole =
            index.bytes == meta.blocks_bytes && input.is_empty() && index.starts_with(&[], false);
        if is_whole { Ok(index) } else { Err(Truncated) }
    }

    /// Decodes the payload of one part's frame.
    ///
    /// # Errors
    /// [`Truncated`] if the payload does not agree with the top index.
    pub(crate) fn decode_part(payload: &[u8], place: &PartPlace<'_>) -> Result<Self, Truncated> {
        let mut input = Reader::new(payload);
        let mut index = Self::decode_blocks(&mut input, place.blocks)?;
        let parts = input.varint_u32()?;
        match place.filters {
            Some(span) if span.parts == parts => {
                index.set_filters(FilterParts::decode(&mut input, span, place.blocks)?);
            }
            Some(_) => return Err(Truncated),
            // The run's filter was dropped after this part had been written.
            None => (0..u64::from(parts) * 2).try_for_each(|_| input.varint().map(drop))?,
        }
        if input.is_empty() { index.placed(place) } else { Err(Truncated) }
    }

    /// Gives the part its position in the run; [`Truncated`] if the part does not agree with the
    /// top index.
    pub(crate) fn placed(mut self, place: &PartPlace<'_>) -> Result<Self, Truncated> {
        let is_right = self.starts_with(place.separator, place.continues)
            && self.blocks == place.blocks as usize
            && (self.bytes, self.entries) == (place.bytes, place.entries);
        if !is_right {
            return Err(Truncated);
        }
        if let Some((separator, continues)) = place.next {
            let last = self.separator(self.blocks - 1).to_vec();
            if !may_follow(&last, separator, continues) {
                return Err(Truncated);
            }
            self.next = Some((separator.into(), continues));
        }
        (self.first, self.offset, self.rank) = (place.first, place.offset, place.rank);
        Ok(self)
    }

    fn decode_blocks(input: &mut Reader<'_>, blocks: u32) -> Result<Self, Truncated> {
        let count = input.varint_u32()?;
        if count != blocks || count == 0 || u64::from(count) > input.rest().len() as u64 {
            return Err(Truncated);
        }
        let mut packer = IndexPacker::with_capacity(count as usize);
        let mut separator = Vec::new();
        for _ in 0..count {
            let (bytes, continues, entries) = decode_index_entry(input, &mut separator)?;
            if entries == 0 {
                return Err(Truncated);
            }
            packer.push(&separator, bytes, continues, entries)?;
        }
        packer.finish()
    }

    fn set_filters(&mut self, mut filters: FilterParts) {
        let first = self.first;
        filters.set_separators(|block| self.separator(first + block as usize));
        self.filters = filters;
    }

    fn starts_with(&self, separator: &[u8], continues: bool) -> bool {
        self.block(self.first)
            .is_some_and(|block| block.separator == *separator && block.continues == continues)
    }

    /// Appends the blocks of this part to a packer.
    pub(super) fn unpack(&self, packer: &mut IndexPacker) -> Result<(), Truncated> {
        let groups = 0..self.places.len();
        for block in groups.flat_map(|group| self.walk(group)) {
            let Packed { separator, bytes, entries, continues } = block;
            packer.push(&separator.to_vec(), bytes, continues, entries)?;
        }
        Ok(())
    }

    /// Joins `parts`, which are all parts of an index, into one index without a filter.
    pub(crate) fn join(parts: &[impl AsRef<Self>]) -> Result<Self, Truncated> {
        let mut packer = IndexPacker::with_capacity(parts.iter().map(|p| p.as_ref().blocks).sum());
        parts.iter().try_for_each(|part| part.as_ref().unpack(&mut packer))?;
        packer.finish()
    }
}
