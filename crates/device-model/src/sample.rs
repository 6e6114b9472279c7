//! Times of requests of one kind, collected in rounds.

use std::time::Duration;

/// Times of the requests of one point.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    /// All times, nanoseconds; in no order.
    nanos: Vec<u64>,
    /// For each round, the mean time between the ends of two consecutive requests of any threads,
    /// seconds.
    rounds: Vec<f64>,
}

impl Sample {
    /// Adds a round: for each thread, the times of its consecutive requests from the common start
    /// on. Ignores a round in which a thread made no request.
    ///
    /// ```text
    ///   thread 1  |----|----|----|           The ends up to the first end of a thread count: until
    ///   thread 2  |------|------|------|     then all threads were at work. Here these are 5 ends
    ///             start         ^end         (`|` up to `^`, which is one of them).
    /// ```
    /// On a device that lets requests through in bursts, whole bursts count instead
    /// ([`of_bursts`]).
    pub(crate) fn add(&mut self, round: &[Vec<Duration>]) {
        let total = |times: &Vec<Duration>| times.iter().sum::<Duration>();
        let Some(end) = round.iter().map(total).min().filter(|end| !end.is_zero()) else { return };
        let mut ends = Vec::new();
        for times in round {
            let mut at = Duration::ZERO;
            ends.extend(times.iter().map(|time| {
                at += *time;
                at
            }));
        }
        ends.retain(|at| *at <= end);
        ends.sort_unstable();
        self.rounds.push(of_bursts(&ends).unwrap_or_else(|| after_warm_up(&ends)));
        let nanos = |time: &Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.extend(round.iter().flatten().map(nanos));
    }

    pub(crate) fn requests(&self) -> u64 {
        self.nanos.len() as u64
    }

    /// Returns the median over the rounds of their mean times between ends, seconds.
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

    /// Returns the time that `share` of the requests do not exceed, seconds.
    pub(crate) fn quantile(&mut self, share: f64) -> Option<f64> {
        let last = self.nanos.len().checked_sub(1)?;
        let place = (last as f64 * share).round() as usize;
        let (_, nanos, _) = self.nanos.select_nth_unstable(place.min(last));
        Some(*nanos as f64 / 1e9)
    }
}

/// The first part of a round is ignored: this share of the round, but at most this time. A device
/// with a limit may grant 0.1 s of unused requests at the beginning.
const WARM_UP: (f64, Duration) = (0.3, Duration::from_millis(100));

/// Returns the mean time between two of the sorted `ends` after the warm-up, seconds. REQUIRES:
/// `ends` is not empty.
fn after_warm_up(ends: &[Duration]) -> f64 {
    let last = ends.last().copied().unwrap_or_default();
    let (share, most) = WARM_UP;
    let warm_up = last.mul_f64(share).min(most);
    // Measure from an end on, at which the next request begins.
    let before = ends.partition_point(|at| *at <= warm_up);
    let begin = before.checked_sub(1).and_then(|place| ends.get(place)).copied();
    (last - begin.unwrap_or_default()).as_secs_f64() / (ends.len() - before) as f64
}

/// Pauses are gaps between two ends that are at least this share of the longest gap.
const PAUSE_SHARE: f64 = 0.5;
/// A device lets requests through in bursts if pauses take this share of the time.
const PAUSES_SHARE: f64 = 0.3;
/// A further condition for bursts: at least this many requests for each pause.
const BURST_REQUESTS: usize = 4;

/// Returns the mean time between two of the sorted `ends`, seconds, if the device lets requests
/// through in bursts; `None` if it does not, or if there are fewer than two pauses.
///
/// ```text
///   |||||||        |||||||        |||||||        |||       a limit of Linux: 300 requests at once,
///          pause 1 ^      pause 2 ^      pause 3 ^         then none until 0.1 s are over
///                  +-------counted-------+
/// ```
/// The first burst may be larger, because the device was idle before, and the last one is cut off.
/// The bursts between the ends of the first and the last pause are complete.
fn of_bursts(ends: &[Duration]) -> Option<f64> {
    let gaps = || ends.iter().zip(ends.iter().skip(1)).map(|(a, b)| (*b - *a).as_secs_f64());
    let least = gaps().fold(0.0, f64::max) * PAUSE_SHARE;
    let pauses: Vec<(usize, f64)> =
        gaps().enumerate().filter(|(_, gap)| *gap >= least).map(|(i, gap)| (i + 1, gap)).collect();
    let [(first, _), .., (last, _)] = pauses.as_slice() else { return None };
    let paused: f64 = pauses.iter().map(|(_, gap)| gap).sum();
    let is_in_bursts = paused >= ends.last()?.as_secs_f64() * PAUSES_SHARE
        && ends.len() >= pauses.len() * BURST_REQUESTS;
    let time = *ends.get(*last)? - *ends.get(*first)?;
    is_in_bursts.then(|| time.as_secs_f64() / (last - first) as f64)
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
        for times in [[3, 1].as_slice(), &[2, 2], &[90, 90, 90], &[]] {
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
        // Each request takes 10 ms of the device; two threads made a further request before the
        // deadline at 25 ms.
        assert_eq!(between(&[&[10, 40], &[20, 40], &[30], &[40]]), Some(0.01));
        assert_eq!(between(&[&[4, 4], &[]]), None);
    }

    #[test]
    fn a_credit_at_the_beginning_does_not_count() {
        let mut sample = Sample::default();
        sample.add(&round(&[&[vec![1; 100], vec![10; 20]].concat()]));
        assert_eq!(sample.median_of_rounds(), Some(0.2 / 20.0), "not 0.3 / 120");
        // In a short round the warm-up is 30 %: 10 of 40 ms lie before its end.
        sample = Sample::default();
        sample.add(&round(&[&[vec![1; 10], vec![10; 3]].concat()]));
        assert_eq!(sample.median_of_rounds(), Some(0.01));
    }

    #[test]
    fn whole_bursts_count() {
        // Ten requests every 100 ms, the first ten without a wait, and an incomplete last burst.
        let burst = |first: u64, requests: usize| [vec![first], vec![1; requests - 1]].concat();
        let times = [burst(1, 20), burst(81, 10), burst(91, 10), burst(91, 10), burst(91, 4)];
        let mut sample = Sample::default();
        sample.add(&round(&[&times.concat()]));
        assert_eq!(sample.median_of_rounds(), Some(0.01));
        // One long gap is a disturbance, and not a burst.
        sample = Sample::default();
        sample.add(&round(&[&[burst(1, 20), burst(81, 20)].concat()]));
        assert_eq!(sample.median_of_rounds(), Some(0.1 / 20.0), "after the warm-up");
    }

    #[test]
    fn without_requests_there_are_no_times() {
        let mut sample = Sample::default();
        assert_eq!((sample.median_of_rounds(), sample.quantile(0.5)), (None, None));
    }
}
