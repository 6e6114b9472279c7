//! Measures how fast a device is, and computes which sizes suit it.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::time::Duration;

use frondb::device::{
    self, BlockAdvice, Caching, MeasureOptions, Measurement, Model, Operation, SliceAdvice,
};

use crate::call::call;
use crate::error::frondb_error;
use crate::slice::{Text, out_handle};
use crate::stats::{self, frondb_stats};
use crate::verify::frondb_progress;

/// The number "caching" of a measurement: direct I/O, and the system counted the reads at the
/// device.
pub const FRONDB_CACHING_BYPASSED: u64 = 0;
/// Direct I/O according to the file system, but the system does not count reads of this device.
pub const FRONDB_CACHING_UNVERIFIED: u64 = 1;
/// The file system has no direct I/O, or serves a part of it from memory, and the file is at least
/// twice as large as the memory of the machine: most reads came from the device.
pub const FRONDB_CACHING_OUTGROWN: u64 = 2;
/// The times may be times of memory instead of the device.
pub const FRONDB_CACHING_CACHED: u64 = 3;

/// Options of a measurement. All zeros are the defaults.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct frondb_measure_options {
    /// About how long the measurement takes, milliseconds: 100 ms to one day. 0 means 30 s.
    budget_millis: u64,
    /// Size of the file that is written and read, bytes, at least 16 MiB. 0 means 4 GiB (without
    /// direct I/O twice the memory, if that is more), or less if space or time is short.
    file_bytes: u64,
    /// The largest number of threads, 1 to 256. The device is measured with this number, and with
    /// each smaller number among 1, 4, 16, 64 and 256. 0 means 16.
    threads_max: u32,
    /// Whether random writes are measured, too; they wear the device.
    writes: bool,
}

/// Measures the device of an existing directory, which need not be a database. The measurement
/// writes a file without a name, whose space is freed when the call returns or the process is
/// killed. `options` and `progress` may be NULL. `progress` receives an empty tree name, the
/// milliseconds that have passed, and the milliseconds that the measurement takes in all.
///
/// The names in `stats`, where OP is `read` or `write`, T a number of threads and B a size of
/// requests in bytes; a number that is unknown, or whose operation was not measured, is absent:
///
/// - `caching`: FRONDB_CACHING_BYPASSED or another of these numbers; `file_bytes`,
///   `sequential_write_bytes_per_second`; `sync_nanos_p50` and `_p99`, the time of a 4 KiB write
///   with a sync, for which a durable commit waits; `processor_wait_permille`, the share of the
///   time that threads waited for a processor: if it is large, the measured times are too long.
/// - `OP_T_B_nanos_between`, the mean time between the ends of two consecutive requests of any
///   threads, and `OP_T_B_nanos_p50` and `_p99`, the time that a thread waits for its request.
/// - The model T = S + B/W of a request of B bytes: `OP_T_startup_nanos` (S) and
///   `OP_T_bytes_per_second` (W); `OP_half_power_bytes` (S * W); `OP_parallelism`, the number of
///   requests that the device serves at once; `OP_requests_per_second_max` and
///   `OP_bytes_per_second_max`, the limits of a rented device such as a cloud volume;
///   `OP_model_is_good`, 0 or 1.
/// - `block_bytes` and `slice_bytes`, the sizes that suit the device if data compresses to a half.
///   No option depends on the speed of a device, and the defaults are good on all devices.
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
    stats: Option<&mut MaybeUninit<*mut frondb_stats>>,
) -> *mut frondb_error {
    call(|| {
        let place = out_handle(stats)?;
        let options = measure_options(options.copied().unwrap_or_default());
        let measured = device::measure(dir.path()?, &options, &mut |done, to_do| {
            progress.is_none_or(|progress| progress(user_data, c"".as_ptr(), done, to_do) == 0)
        })?;
        stats::give(Some(place), numbers_of(&measured), None)
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

/// Returns the numbers of a measurement with their names.
fn numbers_of(measured: &Measurement) -> Vec<(String, u64)> {
    let caching = match measured.caching {
        Caching::Bypassed => FRONDB_CACHING_BYPASSED,
        Caching::Unverified => FRONDB_CACHING_UNVERIFIED,
        Caching::Outgrown => FRONDB_CACHING_OUTGROWN,
        Caching::Cached => FRONDB_CACHING_CACHED,
    };
    let mut numbers = Numbers(vec![("caching".to_owned(), caching)]);
    numbers.add("file_bytes", measured.file_bytes as f64);
    numbers.add("sequential_write_bytes_per_second", measured.sequential_write_bytes_per_second);
    numbers.add("sync_nanos_p50", nanos(measured.syncs.seconds_p50));
    numbers.add("sync_nanos_p99", nanos(measured.syncs.seconds_p99));
    numbers.add("processor_wait_permille", measured.processor_wait * 1000.0);
    for point in &measured.points {
        let name = format!("{}_{}_{}", name_of(point.operation), point.threads, point.bytes);
        numbers.add(&format!("{name}_nanos_between"), nanos(point.seconds_between));
        numbers.add(&format!("{name}_nanos_p50"), nanos(point.seconds_p50));
        numbers.add(&format!("{name}_nanos_p99"), nanos(point.seconds_p99));
    }
    let model = |operation| Model::of(operation, &measured.points);
    let (reads, writes) = (model(Operation::Read), model(Operation::Write));
    numbers.add_model(Operation::Read, reads.as_ref());
    numbers.add_model(Operation::Write, writes.as_ref());
    let blocks = reads.as_ref().and_then(|reads| BlockAdvice::of(reads, COMPRESSION, &[]));
    let merges = writes.as_ref().or(reads.as_ref());
    let slices = merges.and_then(|merges| SliceAdvice::of(merges, COMPRESSION));
    numbers.add_known("block_bytes", blocks.map(|blocks| blocks.block_bytes as f64));
    numbers.add_known("slice_bytes", slices.map(|slices| slices.slice_bytes as f64));
    numbers.0
}

/// The compression factor that the advised sizes assume: data compresses to a half.
const COMPRESSION: f64 = 2.0;

fn name_of(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => "read",
        Operation::Write => "write",
    }
}

fn nanos(seconds: f64) -> f64 {
    seconds * 1e9
}

/// Numbers with their names.
struct Numbers(Vec<(String, u64)>);

impl Numbers {
    /// Adds a number, rounded; infinity becomes `u64::MAX`.
    fn add(&mut self, name: &str, value: f64) {
        self.0.push((name.to_owned(), value.round() as u64));
    }

    fn add_known(&mut self, name: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    fn add_model(&mut self, operation: Operation, model: Option<&Model>) {
        let (Some(model), name) = (model, name_of(operation)) else { return };
        for threads in &model.lines {
            let line = |what: &str| format!("{name}_{}_{what}", threads.threads);
            let fitted = threads.line;
            let startup = fitted.map(|fitted| nanos(fitted.startup_seconds));
            self.add_known(&line("startup_nanos"), startup);
            self.add_known(&line("bytes_per_second"), fitted.map(|fitted| fitted.bytes_per_second));
        }
        let parallelism = model.parallelism.map(|found| found.requests);
        self.add_known(&format!("{name}_half_power_bytes"), model.half_power_bytes());
        self.add_known(&format!("{name}_parallelism"), parallelism);
        let limits = &model.limits;
        self.add_known(&format!("{name}_requests_per_second_max"), limits.requests_per_second);
        self.add_known(&format!("{name}_bytes_per_second_max"), limits.bytes_per_second);
        self.add(&format!("{name}_model_is_good"), f64::from(model.is_good()));
    }
}
