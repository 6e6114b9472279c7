//! The file for the measurement: random bytes, so that no device can compress them, and without a
//! name.
//!
//! The name is removed as soon as the file is open. The file system frees the space when the file
//! is closed, so nothing stays after an error, Ctrl-C, or a kill. Only a crash between the open and
//! the removal of the name can leave an empty file.

use std::time::Duration;

use frondb_core::limits::PAGE_BYTES;
use frondb_core::mem::Buf;
use frondb_core::prng::Prng;
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::{Device, OpenOptions, SharedFile};

use crate::machine::Machine;
use crate::options::{FILE_BYTES_MIN, MeasureOptions};

/// Size of the largest request, and of the requests that write the file, bytes.
pub(crate) const REQUEST_BYTES_MAX: usize = 4 << 20;
/// Default size of the file with direct I/O, bytes: more than the cache of a controller.
const FILE_BYTES: u64 = 4 << 30;
/// If the options give no file size, writing the file ends after the time of the measurement
/// divided by this, but not before the file has [`FILE_BYTES_KEPT`] bytes.
const WRITING_SHARE: u32 = 4;
/// Smallest default size of the file, bytes, however slow the device is.
const FILE_BYTES_KEPT: u64 = 64 << 20;

/// Fixed: the bytes of the file may be the same each time, as long as they cannot be compressed.
const SEED: u64 = 1;

/// The file for the measurement, written, and how fast the writing was.
pub(crate) struct Filled {
    pub(crate) file: SharedFile,
    pub(crate) bytes: u64,
    pub(crate) bytes_per_second: f64,
}

/// Creates the file in the directory `device`, and fills it. `progress` is called from time to
/// time.
///
/// # Errors
/// `NoSpace` if there is too little free space, `Cancelled`, `Io`.
pub(crate) fn fill(
    device: &dyn Device,
    machine: &Machine,
    options: &MeasureOptions,
    progress: &mut dyn FnMut() -> Result<()>,
) -> Result<Filled> {
    let free = device.free_bytes()?;
    let least = options.file_bytes.unwrap_or(FILE_BYTES_KEPT);
    if least > free / 2 {
        return Err(Error::new(
            ErrorKind::NoSpace,
            format!(
                "{} has {free} bytes of free space: a measurement needs {} bytes, twice its file",
                device.describe(),
                least.saturating_mul(2)
            ),
        ));
    }
    let file = create(device)?;
    let wanted = options.file_bytes.unwrap_or_else(|| match file.is_direct() {
        true => FILE_BYTES,
        false => machine.memory_bytes.saturating_mul(2).max(FILE_BYTES),
    });
    let wanted = whole(wanted.min(free / 2).max(FILE_BYTES_MIN));
    let time = match options.file_bytes {
        Some(_) => Duration::MAX,
        None => options.budget / WRITING_SHARE,
    };
    let started = machine.clock.now();
    let mut random = random_buf(SEED);
    let mut written = 0;
    while written < wanted {
        let late = machine.clock.now() - started > time;
        if late && written >= FILE_BYTES_KEPT {
            break;
        }
        // Every request has different bytes; otherwise a device that finds equal blocks would store
        // only one.
        stamp(&mut random, written);
        file.write_at(written, &random)?;
        written += REQUEST_BYTES_MAX as u64;
        progress()?;
    }
    file.sync()?;
    let seconds = (machine.clock.now() - started).as_secs_f64().max(1e-9);
    Ok(Filled { file, bytes: written, bytes_per_second: written as f64 / seconds })
}

/// Opens a new file and removes its name.
fn create(device: &dyn Device) -> Result<SharedFile> {
    let mut number = 0_u32;
    loop {
        let name = format!("frondb-device-{}-{number}.tmp", std::process::id());
        match device.open(&name, OpenOptions::CREATE_NEW.direct(true)) {
            // An earlier process with the same id crashed here.
            Err(error) if error.kind() == ErrorKind::Exists && number < 1000 => number += 1,
            opened => {
                let file = opened?;
                device.remove(&name)?;
                return Ok(file);
            }
        }
    }
}

/// Returns a page-aligned buffer of random bytes, as long as the largest request.
pub(crate) fn random_buf(seed: u64) -> Buf {
    let mut buf = Buf::paged(REQUEST_BYTES_MAX);
    Prng::new(seed).fill(&mut buf);
    buf
}

/// Makes the pages of a buffer differ from the pages of other requests.
pub(crate) fn stamp(buf: &mut [u8], number: u64) {
    for (page, bytes) in (0_u64..).zip(buf.chunks_mut(PAGE_BYTES)) {
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        bytes[8..16].copy_from_slice(&page.to_le_bytes());
    }
}

/// Rounds a size down to a multiple of the largest request.
const fn whole(bytes: u64) -> u64 {
    bytes - bytes % REQUEST_BYTES_MAX as u64
}
