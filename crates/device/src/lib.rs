//! Layer 1: files behind a trait, so that the engine runs on a disk, in memory, on a disk that
//! breaks by script, and on one that loses power at any call.
//!
//! A [`Device`] is a directory of files; a [`File`] is read and written at offsets. The
//! implementations:
//!
//! | module | what it is |
//! |---|---|
//! | [`posix`] | the operating system's files, direct (`O_DIRECT`) or buffered |
//! | [`memory`] | an in-memory twin that forgets and tears what was not synced |
//! | [`faults`] | any device, with errors, flipped bits and a full disk by script |
//! | [`throttle`] | any device, with a limit on bytes and calls a second |
//! | [`trace`] | any device, with every call written down as a line of text |
//! | [`modes`] | who may read and write what is made |
//! | [`intercept`] | the plumbing under the last three |
//!
//! Every device and file may be used from many threads at once. Reads and writes of ranges that
//! overlap at the same time are the caller's mistake: what is read is then unspecified.

mod copy_on_write;
pub mod device;
pub mod faults;
pub mod intercept;
mod machine;
pub mod memory;
pub mod modes;
pub mod name;
pub mod posix;
pub mod throttle;
pub mod trace;

pub use copy_on_write::CopyOnWriteDevice;
pub use device::{Device, DeviceLock, File, OpenOptions, SharedDevice, SharedFile};
pub use faults::FaultDevice;
pub use machine::memory_bytes;
pub use memory::{CrashMode, MemoryDevice};
pub use modes::Modes;
pub use posix::PosixDevice;
pub use throttle::ThrottleDevice;
pub use trace::TraceDevice;
