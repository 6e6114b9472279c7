//! [`History`]: the writes of a database since its totals began, with samples of the last hour.
//!
//! ```text
//!   since ... |--- 1 h before the newest ----------------------------| newest
//!        s0        s1      s2      s3      s4      s5      s6      s7   s8
//!        ^ the only one before the hour                                 ^ replaced by the next
//!                                                     sample if that is within 10 minutes of s7
//! ```
//!
//! A sample has the totals at its moment, so the writes between two moments are a difference of
//! totals. Between two samples, writes are assumed to be evenly spread. `History` reads no clock;
//! the caller passes the time.

use super::counters::WriteSums;
use super::report::{Wear, Written};

/// Seconds. A new sample replaces the newest one if the new one is at most this long after the
/// sample before the newest.
const SPACING_SECONDS: u64 = 600;

/// Seconds of the period for which samples are kept.
const SPAN_SECONDS: u64 = 3600;

/// Most samples of a history. The first and the third of three adjacent samples are more than
/// [`SPACING_SECONDS`] apart. So there are at most two samples in each ten minutes of the hour, one
/// before the hour, and a few at the ends.
pub const SAMPLES_MAX: usize = 2 * (SPAN_SECONDS / SPACING_SECONDS) as usize + 4;

/// Seconds. If the newest sample is farther than this in the future, it comes from a wrong clock.
const FUTURE_SECONDS_MAX: u64 = 24 * 3600;

/// The totals at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// The moment, in seconds since 1970.
    pub at: u64,
    /// The writes from the beginning of the totals to the moment.
    pub sums: WriteSums,
}

/// Totals over time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct History {
    /// When the totals began, seconds since 1970.
    since: u64,
    /// In ascending order of time; never empty.
    samples: Vec<Sample>,
}

impl History {
    /// Creates a history whose totals begin at `now`, in seconds since 1970.
    #[must_use]
    pub fn new(now: u64) -> Self {
        Self { since: now, samples: vec![Sample { at: now, sums: WriteSums::default() }] }
    }

    /// Creates a history with these samples. `None` if there are no samples or too many, if they do
    /// not ascend by time, or if the first is before `since`.
    #[must_use]
    pub fn from_samples(since: u64, samples: Vec<Sample>) -> Option<Self> {
        let first = samples.first()?;
        let ordered = samples.windows(2).all(|pair| pair[0].at <= pair[1].at);
        let sound = since <= first.at && samples.len() <= SAMPLES_MAX && ordered;
        sound.then_some(Self { since, samples })
    }

    /// Returns when the totals began, in seconds since 1970.
    #[must_use]
    pub fn since(&self) -> u64 {
        self.since
    }

    /// Returns the samples, the oldest first.
    #[must_use]
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Returns the newest sample.
    #[must_use]
    pub fn newest(&self) -> Sample {
        let none = Sample { at: self.since, sums: WriteSums::default() };
        self.samples.last().copied().unwrap_or(none)
    }

    /// Adds `sample` as the newest sample. Drops samples that the last hour does not need any more.
    pub fn add(&mut self, sample: Sample) {
        let sample = Sample { at: sample.at.max(self.newest().at), ..sample };
        match self.samples.as_mut_slice() {
            [.., before, newest] if sample.at - before.at <= SPACING_SECONDS => *newest = sample,
            _ => self.samples.push(sample),
        }
        let begin = sample.at.saturating_sub(SPAN_SECONDS);
        let gone = self.samples.iter().skip(1).take_while(|next| next.at <= begin).count();
        self.samples.drain(..gone);
    }

    /// Adapts a history that was read from a file to a clock that shows `now`. If the newest sample
    /// is far in the future, its clock was wrong: then keeps the totals, and drops the times.
    pub fn resume(&mut self, now: u64) {
        let newest = self.newest();
        if newest.at > now.saturating_add(FUTURE_SECONDS_MAX) {
            self.since = self.since.min(now);
            self.samples = vec![Sample { at: now, ..newest }];
        }
    }

    /// Returns the wear up to `until`. `sums` are the totals at that moment.
    #[must_use]
    pub fn wear(&self, until: u64, sums: &WriteSums) -> Wear {
        let until = until.max(self.newest().at);
        let oldest = self.samples.first().map_or(self.since, |sample| sample.at);
        let begin = until.saturating_sub(SPAN_SECONDS).max(oldest);
        let before = self.sums_at(begin, Sample { at: until, sums: *sums });
        Wear {
            since: self.since,
            until,
            total: Written { seconds: until - self.since, sums: *sums },
            last_hour: Written { seconds: until - begin, sums: sums.minus(&before) },
        }
    }

    /// Interpolates the totals at `moment`, which is not before the oldest sample. `end` has the
    /// current totals.
    fn sums_at(&self, moment: u64, end: Sample) -> WriteSums {
        let mut before = self.samples.first().copied().unwrap_or(end);
        for next in self.samples.iter().copied().chain([end]) {
            if next.at > moment {
                let written = next.sums.minus(&before.sums);
                let share = written.share(moment.saturating_sub(before.at), next.at - before.at);
                return before.sums.plus(&share);
            }
            before = next;
        }
        before.sums
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::wear::WriteCause;

    fn sums(bytes: u64) -> WriteSums {
        WriteSums::default().with(WriteCause::Flush, bytes)
    }

    fn hour(history: &History, until: u64, bytes: u64) -> (u64, u64) {
        let hour = history.wear(until, &sums(bytes)).last_hour;
        (hour.seconds, hour.sums.total().bytes)
    }

    #[test]
    fn the_last_hour_of_even_writes_is_an_hour_of_them() {
        let mut history = History::new(1_000_000);
        for minute in 1..=600 {
            history.add(Sample { at: 1_000_000 + 60 * minute, sums: sums(6_000 * minute) });
            assert!(history.samples().len() <= SAMPLES_MAX / 2, "{}", history.samples().len());
        }
        let until = 1_000_000 + 36_000;
        assert_eq!(hour(&history, until, 3_600_000), (3600, 360_000));
        let wear = history.wear(until, &sums(3_600_000));
        assert_eq!((wear.since, wear.until), (1_000_000, until));
        assert_eq!((wear.total.seconds, wear.total.sums.total().bytes), (36_000, 3_600_000));
    }

    #[test]
    fn a_burst_after_a_pause_lies_in_the_last_hour() {
        let mut history = History::new(0);
        history.add(Sample { at: 100, sums: sums(1_000) });
        // Ten hours later, there is a first commit, whose sample includes its write, and then many
        // commits.
        history.add(Sample { at: 36_000, sums: sums(1_010) });
        history.add(Sample { at: 36_060, sums: sums(9_000) });
        let (seconds, bytes) = hour(&history, 36_060, 9_000);
        assert_eq!(seconds, 3600);
        // A part of the first commit counts as written during the pause.
        assert!((7_990..=8_000).contains(&bytes), "{bytes}");
        // An hour later, all writes are older than the last hour.
        assert_eq!(hour(&history, 39_660, 9_000), (3600, 0));
    }

    #[test]
    fn no_history_has_more_samples_than_the_limit() {
        let mut prng = crate::prng::Prng::new(7);
        let (mut history, mut at, mut most) = (History::new(0), 0, 0);
        for i in 0..100_000 {
            // Pairs of samples that are close to each other are the worst case.
            at += if i % 2 == 0 { SPACING_SECONDS } else { prng.below(3) };
            history.add(Sample { at, sums: sums(at) });
            most = most.max(history.samples().len());
            let kept = history.samples();
            assert!(kept.windows(3).all(|three| three[2].at - three[0].at > SPACING_SECONDS));
            assert!(kept[0].at + SPAN_SECONDS <= at || kept[0].at == 0);
        }
        assert!(most <= SAMPLES_MAX && most > SAMPLES_MAX / 2, "{most}");
    }

    #[test]
    fn a_young_history_has_less_than_an_hour() {
        let history = History::new(500);
        assert_eq!(hour(&history, 500, 7), (0, 0));
        assert_eq!(hour(&history, 560, 7), (60, 7));
    }

    #[test]
    fn a_clock_that_went_back_keeps_the_totals() {
        let mut history = History::new(1_000);
        history.add(Sample { at: 900_000_000, sums: sums(50) });
        history.resume(2_000);
        assert_eq!(history.newest(), Sample { at: 2_000, sums: sums(50) });
        let wear = history.wear(2_010, &sums(60));
        assert_eq!((wear.since, wear.total.seconds, wear.last_hour.seconds), (1_000, 1_010, 10));
        // A sample with a slightly too early time gets the time of the previous sample.
        history.add(Sample { at: 1_990, sums: sums(70) });
        assert_eq!(history.newest().at, 2_000);
    }

    #[test]
    fn samples_out_of_order_are_refused() {
        let sample = |at| Sample { at, sums: sums(at) };
        assert!(History::from_samples(1, vec![sample(1), sample(5)]).is_some());
        assert_eq!(History::from_samples(1, vec![]), None);
        assert_eq!(History::from_samples(2, vec![sample(1)]), None);
        assert_eq!(History::from_samples(1, vec![sample(5), sample(4)]), None);
        assert_eq!(History::from_samples(1, vec![sample(5); SAMPLES_MAX + 1]), None);
    }
}
