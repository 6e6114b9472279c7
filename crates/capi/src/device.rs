//! Measures how fast a device is, and computes which sizes suit it and how long it lasts.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::time::Duration;

use frondb::device::{
    self, BlockAdvice, Caching, MeasureOptions, Measurement, Model, Operation, Point, SliceAdvice,
};
use frondb::{Error, Result};

use crate::call::{call, call_or, create, free};
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::slice::{Text, out};
use crate::verify::frondb_progress;

/// A measured device. Free it with frondb_device_free().
pub struct frondb_device {
    _private: [u8; 0],
}

object!(frondb_device, DeviceObject, Device);

/// The measurement, and the models fitted to it; `None` for an operation that was not measured.
pub struct DeviceObject {
    measured: Measurement,
    reads: Option<Model>,
    writes: Option<Model>,
}

/// The operation of a request.
pub type frondb_request = u32;
/// Reads at a random offset.
pub const FRONDB_REQUEST_READ: frondb_request = 0;
/// Overwrites at a random offset.
pub const FRONDB_REQUEST_WRITE: frondb_request = 1;

/// Whether reads came from the device or from memory of this machine.
pub type frondb_caching = u32;
/// Direct I/O, and the system counted the reads at the device.
pub const FRONDB_CACHING_BYPASSED: frondb_caching = 0;
/// Direct I/O according to the file system, but the system does not count reads of this device.
pub const FRONDB_CACHING_UNVERIFIED: frondb_caching = 1;
/// The file system has no direct I/O, and the file is at least twice as large as the memory of the
/// machine: most reads came from the device.
pub const FRONDB_CACHING_OUTGROWN: frondb_caching = 2;
/// The times may be times of memory instead of the device.
pub const FRONDB_CACHING_CACHED: frondb_caching = 3;

/// Options of a measurement. All zeros are the defaults.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct frondb_measure_options {
    /// About how long the measurement takes, milliseconds: 100 ms to one day. 0 means 30 s.
    budget_millis: u64,
    /// Size of the file that is written and read, bytes, at least 16 MiB. 0 means 4 GiB, or less if
    /// space or time is short.
    file_bytes: u64,
    /// The largest number of threads, 1 to 256. The device is measured with this number, and with
    /// each smaller number of 1, 4, 16, 64 and 256. 0 means 16.
    threads_max: u32,
    /// Whether random writes are measured, too; they wear the device.
    writes: bool,
}

/// A measured device as a whole.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_device_info {
    /// Whether the reads came from the device.
    caching: frondb_caching,
    /// Size of the file that was read and written and is removed now, bytes.
    file_bytes: u64,
    /// Bytes per second while one thread wrote the file, with a sync at the end.
    sequential_write_bytes_per_second: f64,
    /// Time of a write of 4 KiB with a sync, which a durable commit waits for: median, seconds.
    sync_seconds_p50: f64,
    /// The same, 99th percentile, seconds.
    sync_seconds_p99: f64,
    /// The share of the time that the threads waited for a processor, 0 to 1. On a busy machine the
    /// share is large, and the measured times are too long.
    processor_wait: f64,
    /// How long the whole measurement took, seconds.
    seconds: f64,
}

/// Requests of one size by some threads, each of which makes one request at a time.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_device_point {
    /// What the requests did.
    operation: frondb_request,
    /// Number of threads.
    threads: u32,
    /// Size of a request, bytes.
    bytes: u64,
    /// Number of requests made.
    requests: u64,
    /// Time between the ends of two consecutive requests of all threads, seconds: the median of the
    /// means of several rounds. Its inverse is the rate of requests.
    seconds_between: f64,
    /// Time that a thread waits for its request: median, seconds.
    seconds_p50: f64,
    /// The same, 99th percentile, seconds.
    seconds_p99: f64,
}

/// The model of an operation: a request of B bytes takes T = S + B/W.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_device_model {
    /// The half-power point S * W, bytes: half of the time of a request of this size is transfer. 0
    /// if no line fits.
    half_power_bytes: f64,
    /// Number of requests that the device serves at once; 0 if unknown, because a limit hides it or
    /// only one number of threads was measured.
    parallelism: f64,
    /// Whether more threads than `parallelism` were tried; otherwise `parallelism` is a lower
    /// bound.
    parallelism_is_reached: bool,
    /// Whether the model describes the device well.
    is_good: bool,
    /// The most requests per second, whatever the number of threads; 0 if there is no such limit.
    requests_per_second_max: f64,
    /// The most bytes per second, whatever the number of threads; 0 if there is no such limit.
    bytes_per_second_max: f64,
    /// The number of lines; frondb_device_get_line() reads them.
    lines: u32,
}

/// The line T = S + B/W for one number of threads. T is the time between the ends of two
/// consecutive requests of all threads, not the time that one thread waits.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_device_line {
    /// Number of threads.
    threads: u32,
    /// Whether a line was fitted; if not, limits of the device determine the times.
    is_fitted: bool,
    /// S: the start-up time of a request, seconds.
    startup_seconds: f64,
    /// W: bytes per second; infinite if the time does not depend on the size.
    bytes_per_second: f64,
    /// The share of the variance that the line explains, at most 1.
    r_squared: f64,
    /// The largest relative difference between the line and a measured point.
    worst_residual: f64,
}

/// Measures the device of an existing directory, which need not be a database. The measurement
/// writes a file without a name, whose space is freed when the call returns or the process is
/// killed. `options` and `progress` may be NULL. `progress` receives an empty tree name, the
/// milliseconds that have passed, and the milliseconds that the measurement takes in all.
///
/// Threads: any; the call starts threads of its own and joins them before it returns.
///
/// Errors: FRONDB_NOT_FOUND if the directory does not exist; FRONDB_INVALID if it is a file, or for
/// options out of range; FRONDB_NO_SPACE if less than twice the size of the file is free;
/// FRONDB_CANCELLED; FRONDB_IO.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_device_measure(
    dir: Text,
    options: Option<&frondb_measure_options>,
    progress: frondb_progress,
    user_data: *mut c_void,
    device: Option<&mut MaybeUninit<*mut frondb_device>>,
) -> *mut frondb_error {
    create(device, || {
        let options = measure_options(options.copied().unwrap_or_default());
        let measured = device::measure(dir.path()?, &options, &mut |done, to_do| {
            progress.is_none_or(|progress| progress(user_data, c"".as_ptr(), done, to_do) == 0)
        })?;
        let model = |operation| Model::of(operation, &measured.points);
        let (reads, writes) = (model(Operation::Read), model(Operation::Write));
        Ok(DeviceObject { reads, writes, measured })
    })
}

fn measure_options(given: frondb_measure_options) -> MeasureOptions {
    let mut options = MeasureOptions::new().writes(given.writes);
    if given.budget_millis > 0 {
        options = options.budget(Duration::from_millis(given.budget_millis));
    }
    if given.file_bytes > 0 {
        options = options.file_bytes(given.file_bytes);
    }
    if given.threads_max > 0 {
        let most = given.threads_max as usize;
        let fewer = [1, 4, 16, 64, 256].into_iter().filter(|threads| *threads < most);
        options = options.threads(&fewer.chain([most]).collect::<Vec<_>>());
    }
    options
}

/// Returns the results for the device as a whole.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_device_get_info(
    device: *mut frondb_device,
    info: Option<&mut MaybeUninit<frondb_device_info>>,
) -> *mut frondb_error {
    call(|| {
        let (place, device) = (out(info)?, handle::shared::<DeviceObject>(device)?);
        let found = &device.measured;
        place.write(frondb_device_info {
            caching: match found.caching {
                Caching::Bypassed => FRONDB_CACHING_BYPASSED,
                Caching::Unverified => FRONDB_CACHING_UNVERIFIED,
                Caching::Outgrown => FRONDB_CACHING_OUTGROWN,
                Caching::Cached => FRONDB_CACHING_CACHED,
            },
            file_bytes: found.file_bytes,
            sequential_write_bytes_per_second: found.sequential_write_bytes_per_second,
            sync_seconds_p50: found.syncs.seconds_p50,
            sync_seconds_p99: found.syncs.seconds_p99,
            processor_wait: found.processor_wait,
            seconds: found.seconds,
        });
        Ok(())
    })
}

/// Returns the number of points; 0 for a pointer that is not a frondb_device.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_device_point_count(device: *mut frondb_device) -> usize {
    call_or(0, || Ok(handle::shared::<DeviceObject>(device)?.measured.points.len()))
}

/// Reads point `at`, from 0. Points are ordered by operation, number of threads and size.
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID if `at` is beyond the last point.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_device_get_point(
    device: *mut frondb_device,
    at: usize,
    point: Option<&mut MaybeUninit<frondb_device_point>>,
) -> *mut frondb_error {
    call(|| {
        let (place, device) = (out(point)?, handle::shared::<DeviceObject>(device)?);
        let points = &device.measured.points;
        let beyond = || {
            Error::invalid(format!("index {at} is out of range: there are {} points", points.len()))
        };
        let &Point { operation, bytes, threads, requests, seconds_between, .. } =
            points.get(at).ok_or_else(beyond)?;
        place.write(frondb_device_point {
            operation: match operation {
                Operation::Read => FRONDB_REQUEST_READ,
                Operation::Write => FRONDB_REQUEST_WRITE,
            },
            threads: count(threads),
            bytes,
            requests,
            seconds_between,
            seconds_p50: points[at].seconds_p50,
            seconds_p99: points[at].seconds_p99,
        });
        Ok(())
    })
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl DeviceObject {
    fn model(&self, operation: frondb_request) -> Result<&Model> {
        let model = match operation {
            FRONDB_REQUEST_READ => &self.reads,
            FRONDB_REQUEST_WRITE => &self.writes,
            other => return Err(Error::invalid(format!("{other} is no frondb_request"))),
        };
        model.as_ref().ok_or_else(|| Error::invalid("the operation was not measured"))
    }
}

/// Returns the model of an operation.
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID if the operation was not measured.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_device_get_model(
    device: *mut frondb_device,
    operation: frondb_request,
    model: Option<&mut MaybeUninit<frondb_device_model>>,
) -> *mut frondb_error {
    call(|| {
        let (place, device) = (out(model)?, handle::shared::<DeviceObject>(device)?);
        let found = device.model(operation)?;
        place.write(frondb_device_model {
            half_power_bytes: found.half_power_bytes().unwrap_or(0.0),
            parallelism: found.parallelism.map_or(0.0, |found| found.requests),
            parallelism_is_reached: found.parallelism.is_some_and(|found| found.is_reached),
            is_good: found.is_good(),
            requests_per_second_max: found.limits.requests_per_second.unwrap_or(0.0),
            bytes_per_second_max: found.limits.bytes_per_second.unwrap_or(0.0),
            lines: count(found.lines.len()),
        });
        Ok(())
    })
}

/// Reads line `at`, from 0, of an operation's model. Lines are ordered by number of threads.
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID if the operation was not measured, or `at` is beyond the last line.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_device_get_line(
    device: *mut frondb_device,
    operation: frondb_request,
    at: usize,
    line: Option<&mut MaybeUninit<frondb_device_line>>,
) -> *mut frondb_error {
    call(|| {
        let (place, device) = (out(line)?, handle::shared::<DeviceObject>(device)?);
        let lines = &device.model(operation)?.lines;
        let beyond = || {
            Error::invalid(format!("index {at} is out of range: there are {} lines", lines.len()))
        };
        let found = lines.get(at).ok_or_else(beyond)?;
        let fitted = found.line;
        place.write(frondb_device_line {
            threads: count(found.threads),
            is_fitted: fitted.is_some(),
            startup_seconds: fitted.map_or(0.0, |line| line.startup_seconds),
            bytes_per_second: fitted.map_or(0.0, |line| line.bytes_per_second),
            r_squared: fitted.map_or(0.0, |line| line.r_squared),
            worst_residual: fitted.map_or(0.0, |line| line.worst_residual),
        });
        Ok(())
    })
}

/// Computes the sizes that suit the device: the block size for frondb_tree_options_set(), and the
/// slice size. `compression` is the factor by which the data compresses (2: to a half).
/// `block_bytes` and `slice_bytes` may be NULL. No option depends on the speed of a device, and the
/// defaults are good on all devices.
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID if no line fits the times, or `compression` is not a number.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_device_advise(
    device: *mut frondb_device,
    compression: f64,
    block_bytes: Option<&mut MaybeUninit<u64>>,
    slice_bytes: Option<&mut MaybeUninit<u64>>,
) -> *mut frondb_error {
    call(|| {
        let device = handle::shared::<DeviceObject>(device)?;
        if !compression.is_finite() {
            return Err(Error::invalid(format!("{compression} is no compression")));
        }
        let reads = device.model(FRONDB_REQUEST_READ)?;
        let merges = device.writes.as_ref().unwrap_or(reads);
        let none = || Error::invalid("no line fits the times of the device");
        let blocks = BlockAdvice::of(reads, compression, &[]).ok_or_else(none)?;
        let slices = SliceAdvice::of(merges, compression).ok_or_else(none)?;
        if let Some(place) = block_bytes {
            place.write(blocks.block_bytes);
        }
        if let Some(place) = slice_bytes {
            place.write(slices.slice_bytes);
        }
        Ok(())
    })
}

/// Returns the lifetime in days of a drive with an endurance of `endurance_bytes` (its TBW) that
/// receives `bytes_per_second` and writes `amplification` bytes internally for each byte received.
/// Returns infinity if the lifetime is unlimited, or if an argument makes no sense.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_lifetime_days(
    bytes_per_second: f64,
    endurance_bytes: f64,
    amplification: f64,
) -> f64 {
    call_or(f64::INFINITY, || {
        let lasts = frondb::lifetime(bytes_per_second, endurance_bytes, amplification);
        Ok(lasts.map_or(f64::INFINITY, |lasts| lasts.as_secs_f64() / 86_400.0))
    })
}

/// Frees the measurement of a device; NULL is ignored.
///
/// Threads: any; must be the last call with this object.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_device_free(device: *mut frondb_device) -> frondb_kind {
    free::<DeviceObject>(device)
}
