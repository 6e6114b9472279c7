//! Divides the time among the points, each an operation, a request size and a number of threads,
//! and measures them.
//!
//! All points are measured in several rounds, in a new order in each: another program that uses the
//! device for some seconds then disturbs one round of many points, and not all rounds of one point.

use std::time::Duration;

use frondb_core::clock::Nanos;
use frondb_core::mem::Buf;
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::{Device, SharedFile};

use crate::file::{self, REQUEST_BYTES_MAX, random_buf, stamp};
use crate::load::{Load, Offsets};
use crate::machine::Machine;
use crate::measurement::{Caching, Measurement, Operation, Point, SyncTimes};
use crate::options::MeasureOptions;
use crate::sample::Sample;

/// Size of the smallest request, and of the synced writes.
const REQUEST_BYTES_MIN: usize = 4 << 10;
/// Minimum time of a point in one of several rounds, seconds. Systems count the requests that they
/// limit in periods of 0.1 s, and a round should have several periods.
const ROUND_SECONDS: f64 = 0.25;
/// Maximum number of rounds.
const ROUNDS_MAX: u32 = 5;
/// Synced writes take at most the budget divided by this.
const SYNC_SHARE: u32 = 30;
/// Number of synced writes that suffice for their median.
const SYNCS_MAX: usize = 1000;
/// Direct reads have bypassed all caches if the system counted at least this share of them at the
/// device.
const COUNTED_SHARE: f64 = 0.9;
/// The order of points and offsets is the same each time.
const SEED: u64 = 0x5eed;

/// Measures the directory `device`. `progress` receives the time that has passed and the time that
/// the measurement will take, in milliseconds; the call ends with `Cancelled` when `progress`
/// returns `false`. The file for the measurement has no name, and its space is freed when this
/// returns or the process ends.
///
/// # Errors
/// `Invalid` for options out of range; `NoSpace` with too little free space; `Cancelled`; `Io`.
pub fn measure(
    device: &dyn Device,
    machine: &Machine,
    options: &MeasureOptions,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Measurement> {
    options.validate()?;
    let mut pace = Pace { machine, started: machine.clock.now(), options, progress };
    let filled = file::fill(device, machine, options, &mut || pace.step())?;
    let mut run = Run::new(machine, options, &filled.file, filled.bytes);
    let syncs = run.syncs(options.budget / SYNC_SHARE, &mut pace)?;
    let reads_before = (machine.device_reads)();
    run.rounds(&mut pace)?;
    let reads_after = (machine.device_reads)();
    let counted = reads_before.zip(reads_after).map(|(before, after)| after.saturating_sub(before));
    let processor_wait = run.processor_wait.share();
    let points = run.points();
    let read: u64 = points
        .iter()
        .filter(|p| p.operation == Operation::Read)
        .map(|p| p.requests * p.bytes)
        .sum();
    Ok(Measurement {
        points,
        file_bytes: filled.bytes,
        caching: caching(
            filled.file.is_direct(),
            counted.map(|counted| counted as f64 / read.max(1) as f64),
            filled.bytes >= machine.memory_bytes.saturating_mul(2),
        ),
        sequential_write_bytes_per_second: filled.bytes_per_second,
        syncs,
        processor_wait,
        seconds: (machine.clock.now() - pace.started).as_secs_f64(),
    })
}

/// Determines where reads came from, by the share of them that the system counted at devices.
fn caching(is_direct: bool, counted: Option<f64>, is_larger_than_memory: bool) -> Caching {
    match (is_direct, counted) {
        (true, Some(share)) if share >= COUNTED_SHARE => Caching::Bypassed,
        (true, None) => Caching::Unverified,
        _ if is_larger_than_memory => Caching::Outgrown,
        _ => Caching::Cached,
    }
}

/// Passes the time so far to `progress`, which may cancel the measurement.
struct Pace<'a> {
    machine: &'a Machine,
    started: Nanos,
    options: &'a MeasureOptions,
    progress: &'a mut dyn FnMut(u64, u64) -> bool,
}

impl Pace<'_> {
    fn step(&mut self) -> Result<()> {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (passed, all) = (millis(self.passed()), millis(self.options.budget));
        match (self.progress)(passed.min(all), all) {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Cancelled, "the measurement was cancelled")),
        }
    }

    fn passed(&self) -> Duration {
        self.machine.clock.now() - self.started
    }
}

/// A measurement in progress.
struct Run<'a> {
    machine: &'a Machine,
    file: &'a SharedFile,
    buffers: Vec<Buf>,
    slots: Vec<Slot>,
    random: Prng,
    processor_wait: ProcessorWait,
}

/// Total time of the requests of all threads, and the time in which the threads waited for a
/// processor.
#[derive(Default)]
struct ProcessorWait {
    waited: Duration,
    all: Duration,
}

impl ProcessorWait {
    fn share(&self) -> f64 {
        self.waited.as_secs_f64() / self.all.as_secs_f64().max(1e-9)
    }
}

/// A point in progress.
struct Slot {
    operation: Operation,
    threads: usize,
    offsets: Arc<Offsets>,
    sample: Sample,
}

impl<'a> Run<'a> {
    fn new(
        machine: &'a Machine,
        options: &MeasureOptions,
        file: &'a SharedFile,
        file_bytes: u64,
    ) -> Self {
        let mut random = Prng::new(SEED);
        let sizes = std::iter::successors(Some(REQUEST_BYTES_MIN), |bytes| Some(bytes * 2))
            .take_while(|bytes| *bytes <= REQUEST_BYTES_MAX);
        let offsets: Vec<Arc<Offsets>> = sizes
            .map(|bytes| Arc::new(Offsets::new(bytes as u64, file_bytes, random.next_u64())))
            .collect();
        let operations: &[Operation] = match options.writes {
            true => &[Operation::Read, Operation::Write],
            false => &[Operation::Read],
        };
        let mut slots = Vec::new();
        for operation in operations {
            for threads in &options.threads {
                slots.extend(offsets.iter().map(|offsets| Slot {
                    operation: *operation,
                    threads: *threads,
                    offsets: Arc::clone(offsets),
                    sample: Sample::default(),
                }));
            }
        }
        Self {
            machine,
            file,
            buffers: Vec::new(),
            slots,
            random,
            processor_wait: ProcessorWait::default(),
        }
    }

    /// Measures all points, in as many rounds as the rest of the budget allows.
    fn rounds(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        let left = pace.options.budget.saturating_sub(pace.passed());
        let worth = ROUND_SECONDS * self.slots.len() as f64;
        let rounds = (left.as_secs_f64() / worth).clamp(1.0, f64::from(ROUNDS_MAX)) as u32;
        for round in 0..rounds {
            let mut order: Vec<usize> = (0..self.slots.len()).collect();
            self.random.shuffle(&mut order);
            for (place, slot) in order.into_iter().enumerate() {
                let left = pace.options.budget.saturating_sub(pace.passed());
                let rest =
                    self.slots.len() - place + (rounds - 1 - round) as usize * self.slots.len();
                self.slot(slot, left / u32::try_from(rest).unwrap_or(u32::MAX))?;
                pace.step()?;
            }
        }
        Ok(())
    }

    fn slot(&mut self, slot: usize, time: Duration) -> Result<()> {
        let Slot { operation, threads, offsets, sample } = &mut self.slots[slot];
        let (operation, threads, file) = (*operation, *threads, self.file);
        let load = Load { file, operation, threads, offsets, time };
        let done = load.run(self.machine, &mut self.buffers)?;
        sample.add(&done.times);
        self.processor_wait.waited += done.processor_wait;
        self.processor_wait.all += done.times.iter().flatten().sum::<Duration>();
        Ok(())
    }

    /// Writes and syncs small requests during `time`: at least one, and at most [`SYNCS_MAX`].
    fn syncs(&mut self, time: Duration, pace: &mut Pace<'_>) -> Result<SyncTimes> {
        let clock = &self.machine.clock;
        let mut buf = random_buf(SEED);
        let mut times = Vec::new();
        let started = clock.now();
        while times.is_empty() || times.len() < SYNCS_MAX && clock.now() - started < time {
            let before = clock.now();
            let request = &mut buf[..REQUEST_BYTES_MIN];
            stamp(request, before.0);
            // Write in sequence over existing blocks, as a log is written.
            self.file.write_at((times.len() * REQUEST_BYTES_MIN) as u64, request)?;
            self.file.sync()?;
            times.push(clock.now() - before);
            pace.step()?;
        }
        let mut sample = Sample::default();
        sample.add(&[times]);
        Ok(SyncTimes {
            syncs: sample.requests(),
            seconds_p50: sample.quantile(0.5).unwrap_or(0.0),
            seconds_p99: sample.quantile(0.99).unwrap_or(0.0),
        })
    }

    fn points(self) -> Vec<Point> {
        let point = |mut slot: Slot| {
            let request = (slot.operation, slot.offsets.bytes(), slot.threads);
            Point::of(request, &mut slot.sample)
        };
        self.slots.into_iter().filter_map(point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direct_reads_count_only_if_the_device_made_them() {
        assert_eq!(caching(true, Some(1.01), false), Caching::Bypassed);
        assert_eq!(caching(true, None, false), Caching::Unverified);
        assert_eq!(caching(true, Some(0.0), false), Caching::Cached);
        assert_eq!(caching(true, Some(0.5), true), Caching::Outgrown);
        assert_eq!(caching(false, Some(1.0), true), Caching::Outgrown);
        assert_eq!(caching(false, None, false), Caching::Cached);
    }
}
