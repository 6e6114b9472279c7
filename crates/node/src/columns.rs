//! [`Column`]: byte strings, one after the other, as JavaScript and this crate exchange them.
//!
//! One call with many strings costs little more than a call with one, because a conversion of a
//! value between the two languages costs more than the copy of a short string.

use frondb::{Error, Result};

/// The end of a string that is absent.
pub(crate) const ABSENT: u32 = u32::MAX;

/// Byte strings.
#[derive(Default)]
pub(crate) struct Column {
    bytes: Vec<u8>,
    /// The end of each string in `bytes`; [`ABSENT`] for one that is absent.
    ends: Vec<u32>,
}

impl Column {
    /// Makes a column of the strings of a call.
    ///
    /// # Errors
    /// `Invalid` if the ends do not ascend, or exceed the bytes.
    pub(crate) fn copy_of(bytes: &[u8], ends: &[u32]) -> Result<Self> {
        let last = ends.last().map_or(0, |end| *end as usize);
        let is_sorted = ends.is_sorted();
        match bytes.get(..last) {
            Some(bytes) if is_sorted => Ok(Self { bytes: bytes.to_vec(), ends: ends.to_vec() }),
            _ => Err(Error::invalid("the ends of the strings of a call do not fit their bytes")),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns a string, which must not be absent.
    pub(crate) fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.bytes[start..self.ends[index] as usize]
    }

    pub(crate) fn strings(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Appends a string.
    ///
    /// # Errors
    /// `Invalid` if the column would exceed 4 GiB.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(end(self.bytes.len())?);
        Ok(())
    }

    /// Appends an absent string.
    pub(crate) fn push_absent(&mut self) {
        self.ends.push(ABSENT);
    }

    /// Appends strings that are adjacent in `bytes`, the first from `first` on.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(crate) fn extend(&mut self, bytes: &[u8], first: u32, ends: &[u32]) -> Result<()> {
        let (Some(&last), first) = (ends.last(), first as usize) else { return Ok(()) };
        let before = self.bytes.len();
        end(before + last as usize - first)?;
        self.bytes.extend_from_slice(&bytes[first..last as usize]);
        self.ends.extend(ends.iter().map(|&end| (before + end as usize - first) as u32));
        Ok(())
    }

    pub(crate) fn into_parts(self) -> (Vec<u8>, Vec<u32>) {
        (self.bytes, self.ends)
    }
}

fn end(bytes: usize) -> Result<u32> {
    let end = u32::try_from(bytes).ok().filter(|end| *end != ABSENT);
    end.ok_or_else(|| {
        Error::invalid("the values of one call exceed 4 GiB: read fewer keys at once")
    })
}
