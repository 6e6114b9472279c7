//! [`LargeValues`]: the extents of a tree's large values with the sum of their bytes, from which
//! the planner learns the average size of a value.

use std::collections::HashMap;

use frondb_core::limits::VALUE_INLINE_BYTES_MAX;
use frondb_space::Extent;

type Map = HashMap<Extent, Vec<Extent>>;

/// The extents of each large value, keyed by the first of them. Most trees have none and need no
/// map.
#[derive(Default)]
pub struct LargeValues(Option<Box<Values>>);

#[derive(Default)]
struct Values {
    map: Map,
    /// The sum of the bytes of all extents in `map`.
    bytes: u64,
}

impl LargeValues {
    /// Adds a value whose first extent is `first`, or replaces the value that begins with it.
    pub fn insert(&mut self, first: Extent, extents: Vec<Extent>) {
        let values = self.0.get_or_insert_default();
        values.bytes += bytes_of(&extents);
        if let Some(old) = values.map.insert(first, extents) {
            values.bytes -= bytes_of(&old);
        }
    }

    /// Removes the value that begins with `first`.
    pub fn remove(&mut self, first: &Extent) -> Option<Vec<Extent>> {
        let values = self.0.as_mut()?;
        let extents = values.map.remove(first)?;
        values.bytes -= bytes_of(&extents);
        Some(extents)
    }

    /// Returns the extents of the value that begins with `first`.
    pub fn get(&self, first: &Extent) -> Option<&Vec<Extent>> {
        self.0.as_ref()?.map.get(first)
    }

    /// Returns the number of bytes of all values on disk.
    pub fn bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |values| values.bytes)
    }

    /// Returns the average bytes of a value on disk; without values, the size at which a value
    /// becomes large.
    pub fn mean_bytes(&self) -> u64 {
        let values = self.0.as_ref().map_or(0, |values| values.map.len() as u64);
        self.bytes().checked_div(values).unwrap_or(VALUE_INLINE_BYTES_MAX as u64)
    }

    /// Visits the extents of each value.
    pub fn iter(&self) -> impl Iterator<Item = &Vec<Extent>> {
        self.0.iter().flat_map(|values| values.map.values())
    }

    /// Returns whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|values| values.map.is_empty())
    }

    /// Returns the extents of each value.
    pub fn into_values(self) -> impl Iterator<Item = Vec<Extent>> {
        self.0.into_iter().flat_map(|values| values.map.into_values())
    }
}

impl From<Map> for LargeValues {
    fn from(map: Map) -> Self {
        let bytes = map.values().map(|extents| bytes_of(extents)).sum();
        Self((!map.is_empty()).then(|| Box::new(Values { map, bytes })))
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
        let copy = LargeValues::from(values.0.as_ref().unwrap().map.clone());
        assert_eq!(copy.bytes(), values.bytes());
        assert_eq!(values.remove(&extent(20, 1)).map(|extents| extents.len()), Some(2));
        assert_eq!(values.remove(&extent(20, 1)), None);
        assert_eq!(values.bytes(), 5 * 4096);
    }
}
