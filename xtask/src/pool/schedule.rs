//! Chooses the job that starts next, as a pure function of the waiting and the running jobs.
//!
//! The longest job starts first, so that no long job runs alone at the end while the other
//! processors are idle. Jobs that would disturb each other, because they use the same folder or
//! port, name the same resource and never run at the same time. A job that waits for its resource
//! does not delay other jobs.

/// What the schedule records about a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entry {
    /// The job's number.
    pub(super) job: usize,
    /// How long the job is expected to take.
    pub(super) seconds: f64,
    /// The resource that the job must not share with another running job.
    pub(super) alone: Option<&'static str>,
}

/// Jobs that wait and jobs that run.
#[derive(Debug)]
pub(super) struct Schedule {
    /// The longest first.
    waiting: Vec<Entry>,
    running: Vec<Entry>,
    at_once: usize,
}

impl Schedule {
    /// Creates a schedule that runs at most `at_once` of these jobs at the same time.
    pub(super) fn new(mut jobs: Vec<Entry>, at_once: usize) -> Self {
        // The sort is stable: equal jobs keep their order.
        jobs.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        Self { waiting: jobs, running: Vec::new(), at_once: at_once.max(1) }
    }

    /// Returns the job to start now. None if `at_once` jobs run, or if each waiting job needs a
    /// resource that is in use.
    pub(super) fn next(&mut self) -> Option<usize> {
        if self.running.len() >= self.at_once {
            return None;
        }
        let is_held = |alone| self.running.iter().any(|running| running.alone == Some(alone));
        let place = self.waiting.iter().position(|job| !job.alone.is_some_and(is_held))?;
        let entry = self.waiting.remove(place);
        self.running.push(entry);
        Some(entry.job)
    }

    /// Notes that a running job has ended.
    pub(super) fn ended(&mut self, job: usize) {
        self.running.retain(|running| running.job != job);
    }

    /// Returns the running jobs, in the order in which they started.
    pub(super) fn running(&self) -> impl Iterator<Item = usize> {
        self.running.iter().map(|entry| entry.job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(job: usize, seconds: f64, alone: Option<&'static str>) -> Entry {
        Entry { job, seconds, alone }
    }

    /// Starts all jobs that can start, and returns them.
    fn start(schedule: &mut Schedule) -> Vec<usize> {
        std::iter::from_fn(|| schedule.next()).collect()
    }

    #[test]
    fn the_longest_go_first_and_no_more_than_allowed_at_once() {
        let jobs = [1.0, 9.0, 5.0, 5.0].into_iter().enumerate();
        let jobs = jobs.map(|(job, seconds)| entry(job, seconds, None)).collect();
        let mut schedule = Schedule::new(jobs, 2);
        assert_eq!(start(&mut schedule), [1, 2]);
        schedule.ended(2);
        assert_eq!(start(&mut schedule), [3]);
        assert_eq!(schedule.running().collect::<Vec<_>>(), [1, 3]);
        schedule.ended(1);
        schedule.ended(3);
        assert_eq!(start(&mut schedule), [0]);
        schedule.ended(0);
        assert_eq!(schedule.next(), None);
        assert_eq!(schedule.running().count(), 0);
    }

    #[test]
    fn jobs_of_one_resource_run_one_after_the_other_and_hold_up_no_other() {
        let tree = Some("tree");
        let jobs = vec![entry(0, 9.0, tree), entry(1, 8.0, tree), entry(2, 1.0, Some("port"))];
        let mut schedule = Schedule::new(jobs, 3);
        assert_eq!(start(&mut schedule), [0, 2]);
        schedule.ended(2);
        assert_eq!(start(&mut schedule), [0; 0]);
        schedule.ended(0);
        assert_eq!(start(&mut schedule), [1]);
    }

    #[test]
    fn there_is_always_a_place_for_one() {
        let mut schedule = Schedule::new(vec![entry(0, 1.0, None), entry(1, 1.0, None)], 0);
        assert_eq!(start(&mut schedule), [0]);
    }
}
