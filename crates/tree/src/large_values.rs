//! The extents of a tree's large values, with their sum, so that the planner knows what a value takes.

use std::collections::HashMap;
use std::ops::Deref;

use frondb_core::limits::VALUE_INLINE_BYTES_MAX;
use frondb_space::Extent;

/// Extents of each large value, by the first of them. Read as a map.
#[derive(Default)]
pub struct LargeValues {
    map: HashMap<Extent, Vec<Extent>>,
    /// Bytes of all extents.
    bytes: u64,
}

impl LargeValues {
    /// Adds a value, by its first extent.
    pub fn insert(&mut self, first: Extent, extents: Vec<Extent>) {
        self.bytes += bytes_of(&extents);
        if let Some(old) = self.map.insert(first, extents) {
            self.bytes -= bytes_of(&old);
        }
    }

    /// Takes out the value that begins with `first`.
    pub fn remove(&mut self, first: &Extent) -> Option<Vec<Extent>> {
        let extents = self.map.remove(first)?;
        self.bytes -= bytes_of(&extents);
        Some(extents)
    }

    /// Bytes of all values.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of a value on average; a guess if there is none.
    pub fn mean_bytes(&self) -> u64 {
        self.bytes.checked_div(self.map.len() as u64).unwrap_or(VALUE_INLINE_BYTES_MAX as u64)
    }

    /// The values themselves.
    pub fn into_values(self) -> impl Iterator<Item = Vec<Extent>> {
        self.map.into_values()
    }
}

impl From<HashMap<Extent, Vec<Extent>>> for LargeValues {
    fn from(map: HashMap<Extent, Vec<Extent>>) -> Self {
        let bytes = map.values().map(|extents| bytes_of(extents)).sum();
        Self { map, bytes }
    }
}

impl Deref for LargeValues {
    type Target = HashMap<Extent, Vec<Extent>>;

    fn deref(&self) -> &Self::Target {
        &self.map
    }
}

fn bytes_of(extents: &[Extent]) -> u64 {
    extents.iter().map(|extent| extent.bytes()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(page: u32, pages: u32) -> Extent {
        Extent { file: 0, page, pages }
    }

    #[test]
    fn the_sum_follows_every_change() {
        let mut values = LargeValues::default();
        assert_eq!(values.mean_bytes(), VALUE_INLINE_BYTES_MAX as u64);
        values.insert(extent(0, 2), vec![extent(0, 2), extent(8, 3)]);
        values.insert(extent(20, 1), vec![extent(20, 1)]);
        assert_eq!((values.bytes(), values.mean_bytes()), (6 * 4096, 3 * 4096));
        values.insert(extent(20, 1), vec![extent(20, 1), extent(30, 2)]);
        assert_eq!(values.bytes(), 8 * 4096);
        let copy = LargeValues::from(values.map.clone());
        assert_eq!(copy.bytes(), values.bytes());
        assert_eq!(values.remove(&extent(20, 1)).map(|extents| extents.len()), Some(2));
        assert_eq!(values.remove(&extent(20, 1)), None);
        assert_eq!(values.bytes(), 5 * 4096);
    }
}
