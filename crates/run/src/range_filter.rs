//! Asks the filter of a run about a short range of keys.
//!
//! A filter that hashes the first bytes of keys can exclude a range whose keys all begin with the
//! same bytes: scans of `a = 7` and `a = 7 AND b > 5` over an index on `(a, b)`, if `a` fills these
//! bytes. A scan merges all runs of a leaf, so without the filter it reads a block of each run,
//! although most runs above the base have no key with this `a`.
//!
//! ```text
//!   part of the filter in the cache --> ask it
//!     else block in the cache, or most ranges had keys --> do not ask
//!     else read the part, which probably saves the read of a block, and ask it
//! ```
//!
//! If the keys of the range may lie in two parts of the filter, the filter is not asked. This is
//! rare, because a part has thousands of prefixes.

use frondb_core::Result;

use crate::index::BlockIndex;
use crate::read::ReadMode;
use crate::reader::Run;

/// The answer of a filter about a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RangeAnswer {
    /// The run has no key of the range.
    Excluded,
    /// The run may have keys of the range.
    Passed,
    /// The filter was not asked, to save reading a part of it. The caller must call
    /// [`Run::note_range`] once it knows whether the run has keys of the range.
    Unprobed,
}

impl Run {
    /// Asks the filter whether the run has keys in `[lo, hi)`. If the keys of the range differ in
    /// the first bytes, which the filter hashes, the range passes without asking.
    ///
    /// # Errors
    /// `Corruption` or a device error of the block index or of the filter.
    #[inline]
    pub fn ask_range(&self, lo: &[u8], hi: Option<&[u8]>) -> Result<RangeAnswer> {
        match (self.filter_prefix, hi) {
            (Some(n), Some(hi))
                if self.meta().filter_parts > 0 && has_one_prefix(lo, hi, usize::from(n)) =>
            {
                self.ask_for_prefix(lo, hi)
            }
            _ => Ok(RangeAnswer::Passed),
        }
    }

    /// Notes whether this run has keys of a range about which the filter was not asked. If it has
    /// no keys of most ranges, later calls of [`ask_range`](Self::ask_range) read the filter.
    pub fn note_range(&self, has_keys: bool) {
        self.presence.note(has_keys);
    }

    /// Asks the filter about the prefix of `lo`, which all keys of `[lo, hi)` have.
    fn ask_for_prefix(&self, lo: &[u8], hi: &[u8]) -> Result<RangeAnswer> {
        let whole = (self.meta().filter_parts == 1).then_some(0);
        // A filter with one part needs no index.
        if let Some(part) = whole
            && let Some(passes) = self.probe_cached(part, lo)?
        {
            return Ok(self.answer(passes));
        }
        let index = self.index_for(lo, ReadMode::Scan)?;
        let Some(part) = self.filter_part_for(&index, lo) else { return Ok(RangeAnswer::Passed) };
        if whole.is_none() {
            if !index.holds(hi) || index.filter_part_for(hi) != Some(part) {
                return Ok(RangeAnswer::Passed);
            }
            if let Some(passes) = self.probe_cached(part.part, lo)? {
                return Ok(self.answer(passes));
            }
        }
        if self.presence.is_likely() || self.has_block_cached(&index, lo) {
            return Ok(RangeAnswer::Unprobed);
        }
        let filter = self.filter(part)?;
        Ok(self.answer(self.passes(&filter, lo)))
    }

    fn answer(&self, passes: bool) -> RangeAnswer {
        self.presence.note(passes);
        if passes { RangeAnswer::Passed } else { RangeAnswer::Excluded }
    }

    /// Returns whether the block in which `key` would be is in the cache.
    fn has_block_cached(&self, index: &BlockIndex, key: &[u8]) -> bool {
        self.has_cached_block(index.find(key))
    }
}

/// Returns whether all keys of `[lo, hi)` begin with the first `n` bytes of `lo`; `false` if `lo`
/// is shorter.
fn has_one_prefix(lo: &[u8], hi: &[u8], n: usize) -> bool {
    let Some(prefix) = lo.get(..n).filter(|prefix| !prefix.is_empty()) else { return false };
    // The smallest key above all keys with the prefix: the prefix without trailing FF bytes, with
    // its last byte incremented.
    let is_end = || {
        let last = prefix.iter().rposition(|&byte| byte != 0xff);
        last.is_some_and(|at| {
            hi.len() == at + 1 && hi[..at] == prefix[..at] && hi[at] == prefix[at] + 1
        })
    };
    hi.starts_with(prefix) || is_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_one_prefix_if_all_its_keys_begin_with_it() {
        let yes: [(&[u8], &[u8]); 7] = [
            (b"ab", b"ac"),
            (b"abx", b"ac"),
            (b"ab", b"ab\0"),
            (b"abx", b"aby"),
            (b"a\xff", b"b"),
            (b"a\xffxyz", b"b"),
            (b"\xff\xff", b"\xff\xff\xff"),
        ];
        for (lo, hi) in yes {
            assert!(has_one_prefix(lo, hi, 2), "{lo:?} to {hi:?}");
        }
        let no: [(&[u8], &[u8]); 8] = [
            (b"a", b"ac"),
            (b"", b"ac"),
            (b"ab", b"ad"),
            (b"ab", b"b"),
            (b"ab", b"ac\0"),
            (b"ab", b"acx"),
            (b"a\xff", b"b\0"),
            (b"ab", b""),
        ];
        for (lo, hi) in no {
            assert!(!has_one_prefix(lo, hi, 2), "{lo:?} to {hi:?}");
        }
        assert!(!has_one_prefix(b"a", b"b", 0), "a filter of no bytes excludes nothing");
    }

    /// Returns all keys of up to `len` of these bytes, in order.
    fn keys_of(bytes: &[u8], len: u32) -> Vec<Vec<u8>> {
        let mut keys = vec![vec![]];
        let shorter = (0..len).map(|len| bytes.len().pow(len)).sum();
        for at in 0..shorter {
            let longer = bytes.iter().map(|&byte| [&keys[at][..], &[byte]].concat());
            keys.extend(longer.collect::<Vec<_>>());
        }
        keys.sort();
        keys
    }

    /// Compares with the definition: no key of the range begins with other bytes. Keys of at most
    /// two bytes are enough: if any key of the range breaks the rule, so does a key that is no
    /// longer than the prefix, and whose bytes are bytes of the bounds, or these plus one.
    #[test]
    fn prefixes_are_those_of_the_definition() {
        let bounds = keys_of(&[0, 1, 0xfe, 0xff], 3);
        let others = keys_of(&[0, 1, 2, 0xfe, 0xff], 2);
        for n in 1..3 {
            for lo in bounds.iter().filter(|lo| lo.len() >= n) {
                for hi in bounds.iter().filter(|hi| *hi > lo && !is_above_all(lo, n)) {
                    let mut inside = others.iter().filter(|key| *key >= lo && *key < hi);
                    let is_one = inside.all(|key| key.starts_with(&lo[..n]));
                    assert_eq!(has_one_prefix(lo, hi, n), is_one, "{lo:?} to {hi:?}, {n} bytes");
                }
            }
        }
    }

    /// Returns whether no key is above all keys with the first `n` bytes of `lo`.
    fn is_above_all(lo: &[u8], n: usize) -> bool {
        lo[..n].iter().all(|&byte| byte == 0xff)
    }
}
