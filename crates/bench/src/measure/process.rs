//! A process, as measured by the kernel's counters: processor time, memory, bytes written.
//!
//! # Which counter of written bytes is right
//!
//! Measured on Linux 6.18 with ext4 (`docs/benchmark-method.md` has the experiment):
//!
//! * `/proc/self/io: write_bytes` counts a direct write when it is submitted, and a buffered write
//!   when it makes a clean page dirty. So a page that is written eight times before the kernel
//!   flushes it counts once, and it goes to the disk once. Pages that a kernel thread flushes later
//!   are already counted. The counts of ended threads stay included.
//! * `cancelled_write_bytes` counts dirty pages that a truncation or a deletion threw away before
//!   they were flushed. The difference is the bytes that reached the disk.
//! * The blkio counters of a cgroup of version 1 miss every page that a kernel thread flushes, so
//!   they miss a log that is never synced.
//!
//! So written bytes are `write_bytes - cancelled_write_bytes`, read after a `syncfs`. Neither
//! counter includes file system metadata and the journal; the device's own counter (`disk::Device`)
//! has them.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::error::{Error, Result};

/// Counters of I/O since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounters {
    /// Bytes that have reached or will reach the disk: dirtied pages and direct writes, less
    /// cancelled pages.
    pub written_bytes: u64,
    /// Bytes of dirty pages that were deleted before they reached the disk.
    pub cancelled_bytes: u64,
    /// Bytes that reads fetched from the disk.
    pub read_bytes: u64,
    /// System calls that wrote, such as `write` and `pwrite`.
    pub write_calls: u64,
}

/// A process, measured through `/proc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// The folder of the process below `/proc`.
    folder: String,
    id: u32,
}

impl Process {
    /// Returns the calling process.
    #[must_use]
    pub fn current() -> Self {
        Self { folder: "/proc/self".to_owned(), id: std::process::id() }
    }

    /// Returns another process, for example a server. Its methods fail after the process has ended.
    #[must_use]
    pub fn of(id: u32) -> Self {
        Self { folder: format!("/proc/{id}"), id }
    }

    /// Returns user and system time of all threads, ended ones included, in steps of 10 ms.
    pub fn cpu_time(&self) -> Result<Duration> {
        let path = format!("{}/stat", self.folder);
        let text = read(&path)?;
        // The second field is the program's name in brackets and may contain blanks, so count the
        // fields after the last bracket.
        let ticks = text.rsplit_once(')').and_then(|(_, rest)| {
            let mut fields = rest.split_ascii_whitespace().skip(11);
            let user: u64 = fields.next()?.parse().ok()?;
            let system: u64 = fields.next()?.parse().ok()?;
            Some(user + system)
        });
        let ticks = ticks.ok_or_else(|| malformed(&path))?;
        let per_second = rustix::param::clock_ticks_per_second().max(1);
        Ok(Duration::from_micros(ticks * 1_000_000 / per_second))
    }

    /// Returns the resident memory now, in bytes.
    pub fn resident_bytes(&self) -> Result<u64> {
        self.status_kilobytes("VmRSS:")
    }

    /// Returns the peak resident memory, bytes. Pages of mapped files count while they are mapped.
    pub fn resident_peak_bytes(&self) -> Result<u64> {
        self.status_kilobytes("VmHWM:")
    }

    /// Resets the peak of [`Process::resident_peak_bytes`] to the current resident memory.
    pub fn forget_peak(&self) -> Result<()> {
        let path = format!("{}/clear_refs", self.folder);
        fs::write(&path, "5").map_err(Error::io(format!("write {path}")))
    }

    /// Reads the counters of I/O. Call `disk::sync_file_system` before the last reading, so that it
    /// includes all writes.
    pub fn io(&self) -> Result<IoCounters> {
        let path = format!("{}/io", self.folder);
        parse_io(&read(&path)?).ok_or_else(|| malformed(&path))
    }

    /// Stops all threads of the process until [`Process::resume`].
    pub fn pause(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Resumes the threads of a paused process.
    pub fn resume(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let id = i32::try_from(self.id).ok().and_then(Pid::from_raw);
        let id = id.ok_or_else(|| Error::Usage(format!("{} is no process", self.id)))?;
        let doing = format!("stop or resume the process {}", self.id);
        kill_process(id, signal).map_err(|error| Error::io(doing)(error.into()))
    }

    fn status_kilobytes(&self, name: &str) -> Result<u64> {
        let path = format!("{}/status", self.folder);
        let kilobytes = number_after(&read(&path)?, name).ok_or_else(|| malformed(&path))?;
        Ok(kilobytes * 1024)
    }
}

/// Returns the [`Process::cpu_time`] of this process.
pub fn cpu_time() -> Result<Duration> {
    Process::current().cpu_time()
}

/// Returns the [`Process::resident_bytes`] of this process.
pub fn resident_bytes() -> Result<u64> {
    Process::current().resident_bytes()
}

/// Returns the [`Process::resident_peak_bytes`] of this process.
pub fn resident_peak_bytes() -> Result<u64> {
    Process::current().resident_peak_bytes()
}

/// Returns the [`Process::io`] of this process.
pub fn io() -> Result<IoCounters> {
    Process::current().io()
}

fn parse_io(text: &str) -> Option<IoCounters> {
    let field = |name: &str| number_after(text, name);
    let (written, cancelled) = (field("\nwrite_bytes:")?, field("\ncancelled_write_bytes:")?);
    Some(IoCounters {
        written_bytes: written.saturating_sub(cancelled),
        cancelled_bytes: cancelled,
        read_bytes: field("\nread_bytes:")?,
        write_calls: field("\nsyscw:")?,
    })
}

fn number_after(text: &str, name: &str) -> Option<u64> {
    let (_, rest) = text.split_once(name)?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).map_err(Error::io(format!("read {path}")))
}

fn malformed(path: &str) -> Error {
    Error::Usage(format!("{path} has an unexpected form: cannot measure on this kernel"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancelled_writes_do_not_count_as_written() {
        let text = "rchar: 1\nwchar: 9\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 600\n\
                    cancelled_write_bytes: 100\n";
        let expected =
            IoCounters { written_bytes: 500, cancelled_bytes: 100, read_bytes: 5, write_calls: 4 };
        assert_eq!(parse_io(text), Some(expected));
        assert_eq!(parse_io("nonsense"), None);
    }

    #[test]
    fn this_process_has_memory_and_counters() {
        assert!(resident_bytes().unwrap() > 0);
        assert!(resident_peak_bytes().unwrap() >= 4096);
        cpu_time().unwrap();
        let same = Process::of(std::process::id());
        assert!(same.resident_bytes().unwrap() > 0 && same.cpu_time().is_ok() && same.io().is_ok());
        assert!(Process::of(u32::MAX).io().is_err());
        assert!(Process::of(0).pause().is_err() && Process::of(u32::MAX).resume().is_err());
        same.forget_peak().unwrap();
        assert!(same.resident_peak_bytes().unwrap() > 0);
    }
}
