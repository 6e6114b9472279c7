//! [`Presence`]: the share of a run's lookups that find their key.
//!
//! Reading a part of a filter costs as much as reading the block, and saves that read only if the
//! key is absent. The base of a leaf holds almost every key that is looked up, a run above it
//! almost none.

use frondb_core::sync::atomic::{AtomicU16, Ordering};

/// The fixed-point representation of 1.
const ONE: u16 = 1 << 10;
/// Each lookup moves the share towards its outcome by 1/16 of the distance.
const WEIGHT: u16 = 16;

/// The approximate share of recent lookups that found their key. Any thread may use it; a lost
/// update does no harm.
pub(crate) struct Presence(AtomicU16);

impl Default for Presence {
    /// Returns an undecided share: the first lookup decides.
    fn default() -> Self {
        Self(AtomicU16::new(ONE / 2))
    }
}

impl Presence {
    /// Counts a lookup. Writes nothing once the same outcome has been repeated often enough, so
    /// that threads that read the same run do not contend for a cache line.
    #[inline]
    pub(crate) fn note(&self, found: bool) {
        let share = self.0.load(Ordering::Relaxed);
        let next = match found {
            true => share + (ONE - share) / WEIGHT,
            false => share - share / WEIGHT,
        };
        if next != share {
            self.0.store(next, Ordering::Relaxed);
        }
    }

    /// Returns whether almost every lookup finds its key.
    #[inline]
    pub(crate) fn is_almost_certain(&self) -> bool {
        self.0.load(Ordering::Relaxed) > ONE / 8 * 7
    }

    /// Returns whether more than half of the recent lookups found their key.
    #[inline]
    pub(crate) fn is_likely(&self) -> bool {
        self.0.load(Ordering::Relaxed) > ONE / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lookup_decides_and_later_ones_can_overrule_it() {
        let presence = Presence::default();
        assert!(!presence.is_likely(), "undecided: the filter is read");
        presence.note(true);
        assert!(presence.is_likely());
        presence.note(false);
        presence.note(false);
        assert!(!presence.is_likely());
        let until = |found, likely| {
            (1..).find(|_| {
                presence.note(found);
                presence.is_likely() == likely
            })
        };
        (0..1000).for_each(|_| presence.note(true));
        assert_eq!(until(false, false), Some(11));
        (0..1000).for_each(|_| presence.note(false));
        assert_eq!(until(true, true), Some(11));
    }

    #[test]
    fn almost_certain_is_a_run_of_which_more_than_seven_eighths_are_found() {
        let presence = Presence::default();
        let lookups = (1..).find(|_| {
            presence.note(true);
            presence.is_almost_certain()
        });
        assert_eq!(lookups, Some(23));
        presence.note(false);
        presence.note(false);
        assert!(!presence.is_almost_certain() && presence.is_likely());
    }

    #[test]
    fn a_run_with_keys_and_without_is_judged_by_the_larger_part() {
        for (hits, likely) in [(1, false), (2, false), (6, true), (7, true)] {
            let presence = Presence::default();
            for n in 0..800 {
                presence.note(n % 8 < hits);
            }
            assert_eq!(presence.is_likely(), likely, "{hits} of 8");
        }
    }
}
