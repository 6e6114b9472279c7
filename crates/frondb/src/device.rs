//! How fast a device is, which sizes suit it, and how long it lasts.
//!
//! A device takes the time T = S + B/W for a request of B bytes: a start-up time S, and then the
//! bytes at the bandwidth W. [`measure`] times requests through the same calls as the engine's
//! reads. [`Model::of`] fits S and W for each number of threads, the number P of requests that the
//! device serves at once, and the limits that a rented volume has. [`BlockAdvice`] and
//! [`SliceAdvice`] compute the sizes that suit the model; no option depends on the speed of the
//! device, and the defaults are good on all devices. [`Wear`] and [`Endurance`] compute how long
//! the device lasts.
//!
//! Everything except [`measure`] and [`decode_times`] is arithmetic. Times are in seconds, rates in
//! bytes or requests per second, and sizes in bytes. The command `frondb device` offers the same.
//!
//! ```
//! use std::time::Duration;
//! use frondb::device::{self, BlockAdvice, MeasureOptions, Model, Operation};
//!
//! # fn main() -> frondb::Result<()> {
//! # let dir = frondb_testkit::TempDir::new("doc");
//! # let path = dir.path();
//! let options = MeasureOptions::new().budget(Duration::from_secs(30));
//! # let options = options.budget(Duration::from_millis(300)).threads(&[1, 2]).file_bytes(16 << 20);
//! let measured = device::measure(path, &options, &mut |done, all| {
//!     println!("{done} of {all} ms");
//!     true
//! })?;
//! let Some(reads) = Model::of(Operation::Read, &measured.points) else { return Ok(()) };
//! for threads in &reads.lines {
//!     println!("{threads:?}");
//! }
//! if !measured.caching.is_doubtful() {
//!     let advice = BlockAdvice::of(&reads, 2.0, &device::decode_times()?);
//!     println!("{advice:?}");
//! }
//! # assert_eq!(reads.lines.len(), 2);
//! # Ok(())
//! # }
//! ```

use std::path::Path;

use frondb_core::Result;
use frondb_device::PosixDevice;
use frondb_device_model::Machine;

pub use frondb_device_model::{
    BlockAdvice, BlockCost, Caching, DecodeTime, Endurance, Limits, Line, MeasureOptions,
    Measurement, Model, Operation, Parallelism, Point, SliceAdvice, SyncTimes, ThreadLine, Wear,
    background_rate,
};

/// Measures the device of the existing directory `dir`, which need not be a database.
///
/// The measurement writes a file without a name, whose space is freed when the call returns or the
/// process is killed. It competes with other users of the device: their requests become slower
/// meanwhile, and the result is only the capacity that they leave.
///
/// `progress` receives the time that has passed and the time that the measurement will take, in
/// milliseconds, after each point and each 4 MiB of the file; the call ends with `Cancelled` when
/// `progress` returns `false`.
///
/// Threads: any; the call starts as many threads of its own as the options say and joins them
/// before it returns.
///
/// # Errors
/// `NotFound` if the directory does not exist; `Invalid` if it is a file, or for options out of
/// range; `NoSpace` if less than twice the file is free; `Cancelled`; `Io`.
pub fn measure(
    dir: impl AsRef<Path>,
    options: &MeasureOptions,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Measurement> {
    let device = PosixDevice::open(dir)?;
    frondb_device_model::measure(&device, &Machine::this(), options, progress)
}

/// Measures how long this machine takes to decode blocks of 8, 16, 32 and 64 KiB with the codec of
/// new trees; the call takes some milliseconds. A read that misses the cache costs this time in
/// addition to the time of the device.
///
/// # Errors
/// `Internal` if the codec fails.
pub fn decode_times() -> Result<Vec<DecodeTime>> {
    frondb_device_model::decode_times(&Machine::this())
}
