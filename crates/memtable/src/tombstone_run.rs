//! Counts the longest tombstone run: deletes without a put between them (rule 15).
//!
//! A reader that searches for a tree's first or last key must step over such a run, so a memtable
//! with a long run is frozen early, and the leaves are consolidated. An exact count would need an
//! ordered walk. This counter follows one run as an interval of keys: a delete joins the run and
//! widens the interval; a put inside the interval ends the run. The count is exact when rows are
//! deleted in ascending or descending order. The count may be too high, because a put that is older
//! than the deletes around it goes unnoticed. It may be too low when deletes alternate between two
//! places: two runs that grow in turns, with puts between them, end each other.

#[derive(Default)]
pub(crate) struct TombstoneRun {
    lo: Vec<u8>,
    hi: Vec<u8>,
    len: u64,
    longest: u64,
}

impl TombstoneRun {
    /// Returns the number of deletes in the longest run so far.
    pub(crate) fn longest(&self) -> u64 {
        self.longest
    }

    /// Returns whether a run is open. Without one, puts need not be reported.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.len > 0
    }

    /// Returns the first and the last key of the open run.
    pub(crate) fn bounds(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        self.is_open().then(|| (self.lo.clone(), self.hi.clone()))
    }

    pub(crate) fn delete(&mut self, key: &[u8]) {
        if self.len == 0 {
            replace(&mut self.lo, key);
            replace(&mut self.hi, key);
        } else if *key > *self.hi {
            replace(&mut self.hi, key);
        } else if *key < *self.lo {
            replace(&mut self.lo, key);
        }
        self.len += 1;
        self.longest = self.longest.max(self.len);
    }

    /// Reports a message that leaves the key with a value.
    pub(crate) fn put(&mut self, key: &[u8]) {
        if self.len > 0 && *self.lo <= *key && *key <= *self.hi {
            self.len = 0;
        }
    }
}

fn replace(target: &mut Vec<u8>, key: &[u8]) {
    target.clear();
    target.extend_from_slice(key);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_put_inside_ends_the_run_and_one_outside_does_not() {
        let mut run = TombstoneRun::default();
        for key in [b"d", b"c", b"f"] {
            run.delete(key);
        }
        run.put(b"z");
        run.put(b"a");
        run.delete(b"e");
        assert_eq!(run.longest(), 4);
        run.put(b"d");
        assert!(!run.is_open());
        run.delete(b"e");
        assert_eq!(run.longest(), 4);
    }
}
