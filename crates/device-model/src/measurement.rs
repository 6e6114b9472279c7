//! The result of a measurement: plain numbers, to which the model is fitted.

use crate::sample::Sample;

/// The operation of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Operation {
    /// Reads at a random offset.
    Read,
    /// Overwrites at a random offset.
    Write,
}

impl Operation {
    /// Returns the name in tables: "read" or "write".
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// Requests of one size by some threads, each of which makes one request at a time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// What the requests did.
    pub operation: Operation,
    /// Size of a request, bytes.
    pub bytes: u64,
    /// Number of threads that made requests at the same time.
    pub threads: usize,
    /// Number of requests made.
    pub requests: u64,
    /// Time of the device for each request, seconds: the mean time between the ends of two requests
    /// of any threads. It is the median of the means of the rounds: a mean includes waits that a
    /// limit of the device causes, and the median ignores a round in which another program used the
    /// device.
    pub seconds_between: f64,
    /// Time that a thread waits for a request: median, seconds.
    pub seconds_p50: f64,
    /// Time that a thread waits for a request: 99th percentile, seconds.
    pub seconds_p99: f64,
}

impl Point {
    /// Returns a point with a known time, for models of devices that were not measured.
    #[must_use]
    pub fn known(operation: Operation, bytes: u64, threads: usize, seconds_between: f64) -> Self {
        let seconds = seconds_between * threads as f64;
        let (seconds_p50, seconds_p99) = (seconds, seconds);
        Self { operation, bytes, threads, requests: 1, seconds_between, seconds_p50, seconds_p99 }
    }

    /// Makes a point from a sample; `None` if no request was made.
    pub(crate) fn of(
        (operation, bytes, threads): (Operation, u64, usize),
        sample: &mut Sample,
    ) -> Option<Self> {
        Some(Self {
            operation,
            bytes,
            threads,
            requests: sample.requests(),
            seconds_between: sample.median_of_rounds()?,
            seconds_p50: sample.quantile(0.5)?,
            seconds_p99: sample.quantile(0.99)?,
        })
    }

    /// Returns the requests per second of all threads.
    #[must_use]
    pub fn requests_per_second(&self) -> f64 {
        self.seconds_between.recip()
    }

    /// Returns the bytes per second of all threads.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes as f64 / self.seconds_between
    }
}

/// Times of small synced writes by one thread, which a durable commit waits for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SyncTimes {
    /// Number of writes of 4 KiB, each with a sync.
    pub syncs: u64,
    /// Median, seconds.
    pub seconds_p50: f64,
    /// 99th percentile, seconds.
    pub seconds_p99: f64,
}

/// Whether reads came from the device or from memory of this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Caching {
    /// Direct I/O, and the system counted the reads at the device.
    Bypassed,
    /// Direct I/O according to the file system, but the system does not count reads of this device.
    Unverified,
    /// The file system has no direct I/O, or serves a part of it from memory, and the file has at
    /// least twice the memory of the machine: most reads came from the device.
    Outgrown,
    /// The file system has no direct I/O, or serves it from memory, and the file is smaller than
    /// twice the memory of the machine: the times are not the times of the device.
    Cached,
}

impl Caching {
    /// Returns the name in tables: "bypassed", "unverified", "outgrown" or "cached".
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bypassed => "bypassed",
            Self::Unverified => "unverified",
            Self::Outgrown => "outgrown",
            Self::Cached => "cached",
        }
    }

    /// Returns whether the times may be times of memory and not of the device.
    #[must_use]
    pub const fn is_doubtful(self) -> bool {
        matches!(self, Self::Cached)
    }
}

/// A measured device.
#[derive(Clone, PartialEq, Debug)]
pub struct Measurement {
    /// The points, by operation, number of threads and size.
    pub points: Vec<Point>,
    /// Size of the file that was read and written, bytes. The file no longer exists.
    pub file_bytes: u64,
    /// Whether the reads came from the device.
    pub caching: Caching,
    /// Bytes per second while one thread wrote the file in requests of 4 MiB, with a sync at the
    /// end.
    pub sequential_write_bytes_per_second: f64,
    /// Times of small writes with a sync each.
    pub syncs: SyncTimes,
    /// The share of their time that the threads waited for a processor, 0 to 1; 0 if the system
    /// does not count it. On a busy machine the measured times are too long.
    pub processor_wait: f64,
    /// Duration of the whole measurement, seconds.
    pub seconds: f64,
}
