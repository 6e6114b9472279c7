//! Layer 1: files behind traits, so that the engine runs on a disk and, in tests, on the devices of
//! `testkit`: in memory, with scripted faults, with a loss of power at any call.
//!
//! A [`Device`] is a directory of files; a [`File`] is read and written at offsets. The
//! implementations, and what they share:
//!
//! | module | role |
//! |---|---|
//! | [`posix`] | the operating system's files, direct (`O_DIRECT`) or buffered |
//! | [`CountedDevice`] | a wrapper that counts writes |
//! | [`CopyOnWriteDevice`] | a wrapper that keeps changes away from the device below it |
//! | [`modes`] | permissions of new files and directories |
//! | [`intercept`] | the common code of wrappers: `counted`, and the wrappers of `testkit` |
//!
//! Every device and file may be used from many threads at once. Concurrent reads and writes of
//! overlapping ranges are the caller's mistake: the result of such a read is unspecified.

mod copy_on_write;
mod counted;
pub mod device;
pub mod intercept;
mod machine;
pub mod modes;
pub mod name;
pub mod posix;

pub use copy_on_write::CopyOnWriteDevice;
pub use counted::CountedDevice;
pub use device::{Device, DeviceLock, File, OpenOptions, ReadRequest, SharedDevice, SharedFile};
pub use machine::{bytes_read_from_devices, memory_bytes};
pub use modes::Modes;
pub use posix::{Connection, Listener, PosixDevice};
