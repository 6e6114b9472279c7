//! [`LargeValues`]: the extents of a tree's large values with the sum of their bytes, from which
//! the planner learns the average size of a value.

use std::collections::HashMap;
use std::ops::Deref;

use frondb_core::limits::VALUE_INLINE_BYTES_MAX;
use frondb_space::Extent;

/// The extents of each large value, keyed by the first of them. Dereferences to the map.
#[derive(Default)]
pub struct LargeValues {
    map: HashMap<Extent, Vec<Extent>>,
    /// The sum of the bytes of all extents in `map`.
    bytes: u64,
}

impl LargeValues {
    /// Adds a value whose first extent is `first`, or replaces the value that begins with it.
    pub fn insert(&mut self, first: Extent, extents: Vec<Extent>) {
        self.bytes += bytes_of(&extents);
        if let Some(old) = self.map.insert(first, extents) {
            self.bytes -= bytes_of(&old);
        }
    }

    /// Removes the value that begins with `first`.
    pub fn remove(&mut self, first: &Extent) -> Option<Vec<Extent>> {
        let extents = self.map.remove(first)?;
        self.bytes -= bytes_of(&extents);
        Some(extents)
    }

    /// Bytes on disk of all values.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Average bytes on disk of a value; without values, the size at which a value becomes large.
    pub fn mean_bytes(&self) -> u64 {
        self.bytes.checked_div(self.map.len() as u64).unwrap_or(VALUE_INLINE_BYTES_MAX as u64)
    }

    /// The extents of each value.
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
