//! Threads that read at the same time for a fixed time, and the costs of their reads.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use frondb_core::prng::Prng;

use super::super::threads::joined;
use super::super::timed::{Timed, timed};
use crate::engine::{Engine, Reader};
use crate::error::Result;
use crate::measure::disk::{Device, DeviceCounters};
use crate::measure::{Histogram, process};
use crate::report::ReadCase;

/// One read of a thread.
pub(super) type Operation<'a> = &'a (dyn Fn(&mut dyn Reader, &mut Prng) -> Result<()> + Sync);

/// Starts threads that read an engine.
pub(super) struct Crew<'a> {
    pub(super) engine: &'a dyn Engine,
    pub(super) seed: u64,
    pub(super) device: Option<&'a Device>,
}

/// The costs of the reads of all threads together.
pub(super) struct Costs {
    latency: Histogram,
    /// Time from the start of all threads to the end of the last thread.
    elapsed: Duration,
    cpu: Duration,
    read_bytes: u64,
    device_reads: Option<u64>,
}

impl Crew<'_> {
    /// Lets each of `threads` threads repeat `operation` for `seconds` with its own reader. The
    /// threads start together, when all of them are ready.
    pub(super) fn run(
        &self,
        threads: u64,
        seconds: f64,
        operation: Operation<'_>,
    ) -> Result<Costs> {
        let ready = &Barrier::new(threads as usize + 1);
        let read = |number| self.read(number, ready, seconds, operation);
        let read = &read;
        let (before, elapsed, results) = thread::scope(|scope| {
            let running: Vec<_> =
                (0..threads).map(|number| scope.spawn(move || read(number))).collect();
            let before = self.counters();
            ready.wait();
            let start = Instant::now();
            let results: Vec<_> = running.into_iter().map(|thread| joined(thread.join())).collect();
            (before, start.elapsed(), results)
        });
        let (before, after) = (before?, self.counters()?);
        let mut latency = Histogram::default();
        for result in results {
            latency.merge(&result?.latency);
        }
        let device = before.device.zip(after.device);
        Ok(Costs {
            latency,
            elapsed,
            cpu: after.cpu - before.cpu,
            read_bytes: after.read_bytes - before.read_bytes,
            device_reads: device.map(|(before, after)| after.read_ops - before.read_ops),
        })
    }

    /// Runs the reads of thread `number`.
    fn read(
        &self,
        number: u64,
        ready: &Barrier,
        seconds: f64,
        operation: Operation<'_>,
    ) -> Result<Timed> {
        let reader = self.engine.reader();
        // Wait even if the reader could not be created; otherwise the other threads would wait
        // forever.
        ready.wait();
        let (mut reader, mut prng) = (reader?, self.prng(number));
        timed(seconds, || operation(reader.as_mut(), &mut prng))
    }

    /// Returns the random generator of a thread: the same in every case and for every engine.
    fn prng(&self, number: u64) -> Prng {
        Prng::new(self.seed ^ 0x5EED_0F4E_AD5A_0200 ^ number)
    }

    fn counters(&self) -> Result<Counters> {
        Ok(Counters {
            cpu: process::cpu_time()?,
            read_bytes: process::io()?.read_bytes,
            device: self.device.and_then(Device::counters),
        })
    }
}

/// The counters of the process and of its device at one moment.
struct Counters {
    cpu: Duration,
    read_bytes: u64,
    device: Option<DeviceCounters>,
}

impl Costs {
    /// Returns the figures of a case, without read, keys and threads.
    pub(super) fn case(&self) -> ReadCase {
        let operations = self.latency.count();
        let each = |total: f64| total / operations.max(1) as f64;
        let quantile = |share: f64| self.latency.quantile_ms(share).unwrap_or_default();
        ReadCase {
            operations,
            ops_s: operations as f64 / self.elapsed.as_secs_f64().max(1e-9),
            cpu_us_per_op: each(self.cpu.as_secs_f64() * 1e6),
            read_bytes_per_op: each(self.read_bytes as f64),
            device_reads_per_op: self.device_reads.map(|reads| each(reads as f64)),
            ms_p50: quantile(0.5),
            ms_p99: quantile(0.99),
            ms_p999: quantile(0.999),
            ms_max: self.latency.max_ms().unwrap_or_default(),
            ..ReadCase::default()
        }
    }
}
