//! Layer 1: files behind traits, so that the engine runs on a disk, in memory, on a disk with
//! scripted faults, and on one that loses power at any call.
//!
//! A [`Device`] is a directory of files; a [`File`] is read and written at offsets. The
//! implementations:
//!
//! | module | role |
//! |---|---|
//! | [`posix`] | the operating system's files, direct (`O_DIRECT`) or buffered |
//! | [`memory`] | an in-memory device that forgets and tears unsynced writes in a simulated crash |
//! | [`faults`] | a wrapper with errors, flipped bits and a full disk by script |
//! | [`throttle`] | a wrapper that limits bytes and calls per second |
//! | [`trace`] | a wrapper that records every call as a line of text |
//! | [`CountedDevice`] | a wrapper that counts writes |
//! | [`CopyOnWriteDevice`] | a wrapper that keeps changes away from the device below it |
//! | [`modes`] | permissions of new files and directories |
//! | [`intercept`] | the common code of the wrappers `faults`, `throttle`, `trace` and `counted` |
//!
//! Every device and file may be used from many threads at once. Concurrent reads and writes of
//! overlapping ranges are the caller's mistake: the result of such a read is unspecified.

mod copy_on_write;
mod counted;
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
pub use counted::CountedDevice;
pub use device::{Device, DeviceLock, File, OpenOptions, ReadRequest, SharedDevice, SharedFile};
pub use faults::FaultDevice;
pub use machine::{bytes_read_from_devices, memory_bytes};
pub use memory::{CrashMode, MemoryDevice};
pub use modes::Modes;
pub use posix::{Connection, Listener, PosixDevice};
pub use throttle::ThrottleDevice;
pub use trace::TraceDevice;
