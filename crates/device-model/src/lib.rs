//! Layer 2: the performance model of a device: T = S + B/W, fitted to times that are measured
//! through the engine's own read path.
//!
//! A request takes a start-up time S and then its B bytes at the bandwidth W. At the half-power
//! point S*W the transfer takes half of the time; blocks of that size are within a factor of two of
//! the best size, for point reads and for ranges. A device that serves P requests at once is P
//! times as fast for P threads. A rented volume also has limits, requests per second and bytes per
//! second, which more threads do not exceed.
//!
//! ```text
//!   Device --measure--> Measurement --Model::of--> Model --BlockAdvice, SliceAdvice--> sizes
//!              |         (Points)     Line, Limits,          (and DecodeTimes)
//!          file, load                 Parallelism
//!                                               Wear, bytes a day --Endurance--> lifetime
//! ```
//!
//! | module | role |
//! |---|---|
//! | `options` | what to measure, and for how long |
//! | `machine` | clock, threads and counters that the measurement uses |
//! | `measure` | divides the time among the points, and measures them |
//! | `file` | the file for the measurement: nameless, so its space is freed in every case |
//! | `load` | threads that make requests of one size |
//! | `sample` | times of requests, and their medians |
//! | `measurement` | the result of a measurement |
//! | `line` | S and W by least squares of relative errors |
//! | `limits` | limits of requests and bytes per second |
//! | `model` | lines, limits and the number of requests at once |
//! | `decode` | compression and decoding times of blocks |
//! | `advice` | sizes of blocks and slices |
//! | `endurance` | how long a device lasts |
//!
//! `line`, `limits`, `model`, `advice` and `endurance` are pure: numbers in, numbers out. All
//! numbers are in seconds, bytes and bytes per second.

mod advice;
mod decode;
mod endurance;
mod file;
mod limits;
mod line;
mod load;
mod machine;
mod measure;
mod measurement;
mod model;
mod options;
mod sample;

pub use advice::{BlockAdvice, BlockCost, SliceAdvice};
pub use decode::{DecodeTime, decode_times};
pub use endurance::{Endurance, Wear, background_rate};
pub use limits::Limits;
pub use line::Line;
pub use machine::Machine;
pub use measure::measure;
pub use measurement::{Caching, Measurement, Operation, Point, SyncTimes};
pub use model::{Model, Parallelism, ThreadLine};
pub use options::MeasureOptions;
