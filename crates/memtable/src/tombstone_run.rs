//! Counts the longest stretch of deletes without a put between them (rule 15).
//!
//! Reading the first or last key has to step over such a stretch, so a memtable that grew a long
//! one is frozen and consolidated. An exact count would need an ordered walk; this follows one
//! stretch, as an interval of keys: a delete joins it and widens the interval, a put inside the
//! interval ends it. Deleting from the left or from the right, in any order of keys, is counted
//! exactly. A put that is older than the deletes around it is not noticed, so the count may be
//! too high; two stretches that grow in turns with puts between them end each other, so it may be
//! too low when deletes do not go one way.

#[derive(Default)]
pub(crate) struct TombstoneRun {
    lo: Vec<u8>,
    hi: Vec<u8>,
    len: u64,
    longest: u64,
}

impl TombstoneRun {
    /// Deletes in the longest stretch so far.
    pub(crate) fn longest(&self) -> u64 {
        self.longest
    }

    /// Whether puts need not be reported.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.len > 0
    }

    /// Its first and last key, if it goes on.
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

    /// A message that leaves the key with a value.
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
    fn a_put_inside_ends_the_stretch_and_one_outside_does_not() {
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
