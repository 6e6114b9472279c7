//! Times of requests of one kind, collected in rounds.

use std::time::Duration;

/// Times of the requests of one point.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    /// All times, nanoseconds; in no order.
    nanos: Vec<u64>,
    /// The mean time between the ends of two requests in each round, seconds.
    rounds: Vec<f64>,
}

impl Sample {
    /// Adds a round: for each thread, the times of its requests, which it made one after the other from
    /// the common start on. A round in which a thread made none is left out.
    ///
    /// ```text
    ///   thread 1  |----|----|----|            The ends up to the first end of a thread count: until
    ///   thread 2  |------|------|------|      then all threads were at work. Here these are 5 ends
    ///             start         ^end          (`|` up to `^`, which is one of them).
    /// ```
    /// On a device that makes requests wait for the next period of a limit, the first end of a thread
    /// is the end of such a wait, so the time consists of whole periods.
    pub(crate) fn add(&mut self, round: &[Vec<Duration>]) {
        let total = |times: &Vec<Duration>| times.iter().sum::<Duration>();
        let Some(end) = round.iter().map(total).min().filter(|end| !end.is_zero()) else { return };
        let mut ends = 0_u64;
        for times in round {
            let mut at = Duration::ZERO;
            let within = times.iter().take_while(|time| {
                at += **time;
                at <= end
            });
            ends += within.count() as u64;
        }
        self.rounds.push(end.as_secs_f64() / ends as f64);
        let nanos = |time: &Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.extend(round.iter().flatten().map(nanos));
    }

    /// Number of requests.
    pub(crate) fn requests(&self) -> u64 {
        self.nanos.len() as u64
    }

    /// The median over the rounds of their mean times between ends, seconds.
    pub(crate) fn median_of_rounds(&self) -> Option<f64> {
        let mut rounds = self.rounds.clone();
        rounds.sort_by(f64::total_cmp);
        let middle = rounds.len() / 2;
        match rounds.len() {
            0 => None,
            len if len.is_multiple_of(2) => Some((rounds[middle - 1] + rounds[middle]) / 2.0),
            _ => Some(rounds[middle]),
        }
    }

    /// The time that `share` of the requests do not exceed, seconds.
    pub(crate) fn quantile(&mut self, share: f64) -> Option<f64> {
        let last = self.nanos.len().checked_sub(1)?;
        let place = (last as f64 * share).round() as usize;
        let (_, nanos, _) = self.nanos.select_nth_unstable(place.min(last));
        Some(*nanos as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(threads: &[&[u64]]) -> Vec<Vec<Duration>> {
        let times = |thread: &&[u64]| thread.iter().map(|ms| Duration::from_millis(*ms)).collect();
        threads.iter().map(times).collect()
    }

    #[test]
    fn a_round_that_was_disturbed_does_not_count() {
        let mut sample = Sample::default();
        for times in [[1, 3].as_slice(), &[2, 2], &[90, 90, 90], &[]] {
            sample.add(&round(&[times]));
        }
        assert_eq!((sample.requests(), sample.median_of_rounds()), (7, Some(0.002)));
        assert_eq!((sample.quantile(0.0), sample.quantile(1.0)), (Some(0.001), Some(0.09)));
        assert_eq!(sample.quantile(0.5), Some(0.003));
        let mut two = Sample::default();
        two.add(&round(&[&[2]]));
        two.add(&round(&[&[4]]));
        assert_eq!(two.median_of_rounds(), Some(0.003));
    }

    #[test]
    fn ends_count_while_all_threads_are_at_work() {
        let between = |threads: &[&[u64]]| {
            let mut sample = Sample::default();
            sample.add(&round(threads));
            sample.median_of_rounds()
        };
        assert_eq!(between(&[&[4, 4, 4], &[6, 6, 6]]), Some(0.012 / 5.0), "as drawn");
        // One request after the other, 10 ms each: two threads went on before the deadline at 25.
        assert_eq!(between(&[&[10, 40], &[20, 40], &[30], &[40]]), Some(0.01));
        assert_eq!(between(&[&[4, 4], &[]]), None);
    }

    #[test]
    fn without_requests_there_are_no_times() {
        let mut sample = Sample::default();
        assert_eq!((sample.median_of_rounds(), sample.quantile(0.5)), (None, None));
    }
}
