//! Runs jobs in parallel, so that all processors stay busy while one test waits for a disk or a
//! server, or runs as the last test of its program.
//!
//! | module | |
//! |---|---|
//! | [`schedule`] | which job is started next |
//! | [`times`] | how long each job took when it last ran |
//!
//! When a job has ended, the pool prints one line, and also the job's whole output if the job
//! failed or is [`shown`](Job::shown). Each job belongs to a step of a [`Summary`].

mod schedule;
mod times;

use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use crate::Result;
use crate::step::Cmd;
use crate::summary::{Counts, Part, Summary};
use schedule::{Entry, Schedule};
use times::Times;

/// Interval at which the pool names the running jobs while none of them ends.
const SILENCE: Duration = Duration::from_secs(60);

/// The result of a finished job.
#[derive(Debug)]
pub(crate) struct Ran {
    /// The job's whole output.
    pub(crate) output: String,
    /// The outcome in a few words.
    pub(crate) said: String,
    /// Numbers of the job's tests that passed and failed.
    pub(crate) counts: Counts,
    /// Whether the job succeeded.
    pub(crate) result: Result,
}

/// Work that can run at the same time as other jobs.
pub(crate) struct Job {
    step: String,
    name: String,
    work: Box<dyn FnOnce() -> Ran + Send>,
    seconds: f64,
    alone: Option<&'static str>,
    is_shown: bool,
}

impl Job {
    /// Creates a job of a step of the summary. The name must differ from the names of all other
    /// jobs.
    pub(crate) fn new(step: &str, name: &str, work: impl FnOnce() -> Ran + Send + 'static) -> Self {
        let (step, name) = (step.to_owned(), name.to_owned());
        Self { step, name, work: Box::new(work), seconds: 0.0, alone: None, is_shown: false }
    }

    /// Creates the job of a command that is not a test harness.
    pub(crate) fn command(step: &str, name: &str, command: Cmd) -> Self {
        Self::new(step, name, || {
            let (output, result) = command.run_kept();
            Ran { output, said: "ok".to_owned(), counts: Counts::default(), result }
        })
    }

    /// Creates the job of a command that runs test harnesses. At least `wanted` tests must pass.
    pub(crate) fn tests(step: &str, name: &str, wanted: u64, command: Cmd) -> Self {
        Self::new(step, name, move || {
            let (output, result) = command.run_kept();
            let counts = Counts::of(&output);
            let result = result.and_then(|()| is_whole(&output, counts, wanted));
            Ran { output, said: format!("{} passed", counts.passed), counts, result }
        })
    }

    /// Sets the time that the job is expected to take on a machine where it has not run yet.
    pub(crate) fn taking(mut self, seconds: f64) -> Self {
        self.seconds = seconds;
        self
    }

    /// Makes the job never run at the same time as another job with the same resource.
    pub(crate) fn alone_with(mut self, resource: &'static str) -> Self {
        self.alone = Some(resource);
        self
    }

    /// Makes the pool print the job's output even if the job succeeds.
    pub(crate) fn shown(mut self) -> Self {
        self.is_shown = true;
        self
    }
}

/// Returns an error if fewer than `wanted` tests passed, or if a harness exited with zero but
/// reported no test result, so it ran no tests.
fn is_whole(output: &str, counts: Counts, wanted: u64) -> Result {
    if counts.passed < wanted {
        return Err(format!("{wanted} tests expected, {} passed", counts.passed));
    }
    let is_reported = output.contains("test result: ");
    if is_reported { Ok(()) } else { Err("the program reports no test result".to_owned()) }
}

/// Runs all jobs and adds their steps to the summary, in the order in which the steps first occur.
pub(crate) fn run(summary: &mut Summary, jobs: Vec<Job>) {
    // One job more than processors, since one job usually waits.
    let at_once = 1 + std::thread::available_parallelism().map_or(1, usize::from);
    let name = format!("{at_once} jobs at once");
    summary.parts(&name, || {
        let (parts, times) = Pool::new(jobs, at_once, Times::read()).run();
        times.write();
        parts
    });
}

/// The jobs of one run. `heads` and `work` are indexed by the number of the job.
struct Pool {
    schedule: Schedule,
    times: Times,
    heads: Vec<Head>,
    /// The job's function; `None` after the job has started.
    work: Vec<Option<Box<dyn FnOnce() -> Ran + Send>>>,
    parts: Vec<Part>,
}

impl Pool {
    fn new(jobs: Vec<Job>, at_once: usize, times: Times) -> Self {
        let entries = jobs.iter().enumerate().map(|(job, it)| Entry {
            job,
            seconds: times.of(&it.name).unwrap_or(it.seconds),
            alone: it.alone,
        });
        let schedule = Schedule::new(entries.collect(), at_once);
        let mut parts: Vec<Part> = Vec::new();
        let (mut heads, mut work) = (Vec::new(), Vec::new());
        for Job { step, name, work: its, is_shown, .. } in jobs {
            let known = parts.iter().position(|part| part.name == step);
            let part = known.unwrap_or_else(|| {
                parts.push(Part::new(&step));
                parts.len() - 1
            });
            heads.push(Head { name, part, is_shown });
            work.push(Some(its));
        }
        Self { schedule, times, heads, work, parts }
    }

    fn run(mut self) -> (Vec<Part>, Times) {
        let (sender, ended) = mpsc::channel();
        for done in 1..=self.heads.len() {
            while let Some(job) = self.schedule.next() {
                let (work, sender) = (self.work[job].take(), sender.clone());
                std::thread::spawn(move || start(job, work, &sender));
            }
            let (job, time, ran) = self.wait(&ended);
            self.schedule.ended(job);
            let Head { name, part, is_shown } = &self.heads[job];
            self.times.set(name, time.as_secs_f64());
            let of = format!("[{done}/{}]", self.heads.len());
            let text = report(&of, name, time, &ran, *is_shown);
            // A write fails after the reader has closed the pipe; the outcome still counts.
            let _ = std::io::stdout().write_all(text.as_bytes());
            self.parts[*part].add(name, time, ran.counts, &ran.result);
        }
        (self.parts, self.times)
    }

    /// Waits for the next job that ends.
    fn wait(&self, ended: &Receiver<Ended>) -> Ended {
        loop {
            match ended.recv_timeout(SILENCE) {
                Ok(ended) => return ended,
                // The error is a timeout: the caller of this function holds a sender, so the
                // channel is open.
                Err(_) => {
                    let running = self.schedule.running();
                    let names: Vec<&str> = running.map(|job| &*self.heads[job].name).collect();
                    eprintln!("still running: {}", names.join(", "));
                }
            }
        }
    }
}

/// The description of a job, which the pool needs after the job has started.
struct Head {
    name: String,
    part: usize,
    is_shown: bool,
}

/// The number of a job, how long it took, and its result.
type Ended = (usize, Duration, Ran);

fn start(job: usize, work: Option<Box<dyn FnOnce() -> Ran + Send>>, sender: &Sender<Ended>) {
    let begin = Instant::now();
    let ran = work.map(|work| catch_unwind(AssertUnwindSafe(work)));
    // A job that panics must report too, or the pool would wait for the job forever.
    let ran = ran.and_then(std::result::Result::ok).unwrap_or_else(|| Ran {
        output: String::new(),
        said: String::new(),
        counts: Counts::default(),
        result: Err("xtask itself panicked".to_owned()),
    });
    // Sending fails only if the pool has been dropped, and then nothing needs the result.
    let _ = sender.send((job, begin.elapsed(), ran));
}

/// Formats the text that the terminal shows for a job that has ended.
fn report(of: &str, name: &str, time: Duration, ran: &Ran, is_shown: bool) -> String {
    let Ran { output, said, result, .. } = ran;
    let outcome = match result {
        Ok(()) => said.clone(),
        Err(message) => format!("FAILED: {message}"),
    };
    let line = format!("{of:>9} {:>6.1} s  {name}: {outcome}\n", time.as_secs_f64());
    if result.is_ok() && !is_shown {
        return line;
    }
    let output = output.trim_end();
    format!("---- output of {name}\n{output}\n----\n{line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(passed: u64, result: Result) -> Ran {
        let counts = Counts { passed, failed: 0 };
        Ran { output: "line\n".to_owned(), said: "well".to_owned(), counts, result }
    }

    fn job(step: &str, name: &str, passed: u64, result: Result) -> Job {
        Job::new(step, name, move || ran(passed, result))
    }

    #[test]
    fn jobs_are_summed_up_by_step_and_a_failed_one_hides_no_other() {
        let no = Err("no".to_owned());
        let jobs = vec![
            job("tests", "a", 2, Ok(())),
            job("shuttle", "b", 3, Ok(())),
            job("tests", "c", 4, no),
            Job::new("more", "d", || panic!("a job that panics")),
        ];
        let (parts, times) = Pool::new(jobs, 2, Times::default()).run();
        let names: Vec<&str> = parts.iter().map(|part| &*part.name).collect();
        assert_eq!(names, ["tests", "shuttle", "more"]);
        assert_eq!(parts[0].counts, Counts { passed: 6, failed: 0 });
        assert_eq!(parts[0].result(), Err("c: no".to_owned()));
        assert_eq!(parts[1].result(), Ok(()));
        assert!(parts[2].result().is_err());
        assert!(["a", "b", "c", "d"].iter().all(|job| times.of(job).is_some()));
    }

    #[test]
    fn tests_that_did_not_run_are_noticed() {
        let passed = Counts { passed: 2, failed: 0 };
        assert_eq!(is_whole("test result: ok. 2 passed", passed, 2), Ok(()));
        assert!(is_whole("test result: ok. 2 passed", passed, 3).is_err());
        assert!(is_whole("exited", Counts::default(), 0).is_err());
    }

    #[test]
    fn output_of_failed_jobs_and_of_shown_jobs_is_printed() {
        let time = Duration::from_millis(1500);
        let quiet = report("[1/2]", "a", time, &ran(3, Ok(())), false);
        assert_eq!(quiet, "    [1/2]    1.5 s  a: well\n");
        let shown = report("[1/2]", "a", time, &ran(0, Ok(())), true);
        assert_eq!(shown, "---- output of a\nline\n----\n    [1/2]    1.5 s  a: well\n");
        let failed = report("[1/2]", "a", time, &ran(0, Err("no".to_owned())), false);
        assert!(failed.contains("line") && failed.ends_with("a: FAILED: no\n"), "{failed}");
    }
}
