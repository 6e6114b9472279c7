//! An open file of the operating system: positioned reads and writes, continued until all bytes are
//! transferred or the file ends.

use std::fmt;
use std::io::IoSlice;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;

use rustix::fs::{self, Advice, FallocateFlags};
use rustix::io::{Errno, pread, pwrite, pwritev, retry_on_intr};

use frondb_core::limits::PAGE_BYTES;
use frondb_core::sync::Arc;
use frondb_core::{Error, Result};

use super::error::os_error;
use super::ring::RING_READS;
use super::rings::Rings;
use crate::device::{File, ReadRequest};

/// Maximum number of buffers that the kernel accepts in one vectored write (IOV_MAX).
const VECTORS_MAX: usize = 1024;

pub(super) struct PosixFile {
    pub(super) fd: OwnedFd,
    pub(super) name: String,
    /// Full path, for messages.
    pub(super) path: String,
    pub(super) direct: bool,
    pub(super) rings: Arc<Rings>,
}

impl PosixFile {
    fn error(&self, action: &str, errno: Errno) -> Error {
        os_error(action, &self.path, errno)
    }

    /// Asserts the alignment of direct I/O. Misaligned direct I/O would fail with a bare EINVAL on
    /// one machine and work on another; this assertion catches it on all machines.
    fn assert_aligned(&self, offset: u64, buf: &[u8]) {
        if !self.direct {
            return;
        }
        let aligned = offset.is_multiple_of(PAGE_BYTES as u64)
            && buf.len().is_multiple_of(PAGE_BYTES)
            && buf.as_ptr().addr().is_multiple_of(PAGE_BYTES);
        assert!(
            aligned,
            "direct I/O on {} must be aligned: offset {offset}, {} bytes at {:p}",
            self.name,
            buf.len(),
            buf.as_ptr()
        );
    }

    /// Returns the usable part of a short direct transfer: the rest continues at a page boundary.
    fn advance(&self, done: usize) -> usize {
        if self.direct { done - done % PAGE_BYTES } else { done }
    }
}

impl fmt::Debug for PosixFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = if self.direct { "direct" } else { "buffered" };
        write!(f, "PosixFile({}, {mode})", self.path)
    }
}

impl File for PosixFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.assert_aligned(offset, buf);
        let mut done = 0;
        while done < buf.len() {
            let at = checked_end(&self.path, offset, done)?;
            let read = retry_on_intr(|| pread(&self.fd, &mut buf[done..], at))
                .map_err(|errno| self.error("read", errno))?;
            done += read;
            // A direct read that ends inside a page has reached the end of the file; continuing
            // there would be misaligned.
            if read == 0 || (self.direct && !done.is_multiple_of(PAGE_BYTES)) {
                break;
            }
        }
        Ok(done)
    }

    fn read_many(&self, requests: &mut [ReadRequest<'_>]) {
        requests.iter().for_each(|request| self.assert_aligned(request.offset, request.buf));
        let mut ring = if requests.len() > 1 { self.rings.take() } else { None };
        for requests in requests.chunks_mut(RING_READS) {
            let ring = ring.as_mut().and_then(|ring| ring.ring());
            let full = ring.map_or(0, |ring| ring.read(&self.fd, requests));
            for (i, request) in requests.iter_mut().enumerate() {
                request.result = match full >> i & 1 {
                    1 => Ok(()),
                    _ => self.read_exact_at(request.offset, request.buf),
                };
            }
        }
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.assert_aligned(offset, buf);
        let mut done = 0;
        while done < buf.len() {
            let at = checked_end(&self.path, offset, done)?;
            let written = retry_on_intr(|| pwrite(&self.fd, &buf[done..], at))
                .map_err(|errno| self.error("write", errno))?;
            match self.advance(written) {
                0 => return Err(self.error("write", Errno::IO)),
                written => done += written,
            }
        }
        Ok(())
    }

    fn write_vectored_at(&self, offset: u64, bufs: &[&[u8]]) -> Result<()> {
        bufs.iter().for_each(|buf| self.assert_aligned(offset, buf));
        let mut slices: Vec<IoSlice<'_>> =
            bufs.iter().filter(|buf| !buf.is_empty()).map(|buf| IoSlice::new(buf)).collect();
        let mut rest = slices.as_mut_slice();
        let mut done = 0;
        while !rest.is_empty() {
            let at = checked_end(&self.path, offset, done)?;
            let batch = &rest[..rest.len().min(VECTORS_MAX)];
            let written = retry_on_intr(|| pwritev(&self.fd, batch, at))
                .map_err(|errno| self.error("write", errno))?;
            match self.advance(written) {
                0 => return Err(self.error("write", Errno::IO)),
                written => {
                    done += written;
                    IoSlice::advance_slices(&mut rest, written);
                }
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        retry_on_intr(|| fs::fdatasync(&self.fd)).map_err(|errno| self.error("sync", errno))
    }

    fn len(&self) -> Result<u64> {
        let stat =
            retry_on_intr(|| fs::fstat(&self.fd)).map_err(|errno| self.error("measure", errno))?;
        Ok(u64::try_from(stat.st_size).unwrap_or(0))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        retry_on_intr(|| fs::ftruncate(&self.fd, len))
            .map_err(|errno| self.error("set the length of", errno))
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        match retry_on_intr(|| fs::fallocate(&self.fd, FallocateFlags::empty(), offset, len)) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                let end = offset.saturating_add(len);
                if self.len()? < end { self.set_len(end) } else { Ok(()) }
            }
            result => result.map_err(|errno| self.error("allocate space for", errno)),
        }
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match retry_on_intr(|| fs::fallocate(&self.fd, flags, offset, len)) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(errno) => Err(self.error("punch a hole into", errno)),
        }
    }

    fn allocated_bytes(&self) -> Result<u64> {
        let stat =
            retry_on_intr(|| fs::fstat(&self.fd)).map_err(|errno| self.error("measure", errno))?;
        Ok(u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512))
    }

    fn is_direct(&self) -> bool {
        self.direct
    }

    fn start_writeback(&self, offset: u64, len: u64) -> Result<()> {
        // A direct write has already reached the device. For buffered writes, Linux starts writing
        // the dirty pages of a range when told that they are not needed. It keeps pages that are
        // not clean yet, so only clean pages of recently written data are lost from its cache.
        if !self.direct
            && let Some(len) = NonZeroU64::new(len)
        {
            let _ = fs::fadvise(&self.fd, offset, Some(len), Advice::DontNeed);
        }
        Ok(())
    }
}

/// Returns the offset `done` bytes after `offset`. Fails only if the caller's `offset` is wrong.
fn checked_end(path: &str, offset: u64, done: usize) -> Result<u64> {
    offset.checked_add(done as u64).ok_or_else(|| os_error("reach the end of", path, Errno::FBIG))
}
