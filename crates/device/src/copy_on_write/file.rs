//! A file of a copy-on-write device: written pages over the file below.

use std::collections::BTreeMap;

use frondb_core::limits::PAGE_BYTES;
use frondb_core::sync::{Arc, Mutex};
use frondb_core::{Error, Result};

use super::pages::{PAGE, Page, PageStore};
use crate::device::{File, SharedFile};

/// The content of a file, shared by its open handles.
#[derive(Debug)]
pub(super) struct Content {
    below: Option<SharedFile>,
    changes: Mutex<Changes>,
    scratch: Arc<PageStore>,
}

#[derive(Debug)]
struct Changes {
    len: u64,
    /// Bytes of the file below that are still part of this file.
    below_len: u64,
    pages: BTreeMap<u64, Page>,
}

#[derive(Debug)]
pub(super) struct CopyOnWriteFile {
    pub(super) name: String,
    pub(super) content: Arc<Content>,
}

impl File for CopyOnWriteFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let below = self.content.below.as_ref();
        let changes = self.content.changes.lock();
        let rest = usize::try_from(changes.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let buf_len = rest.min(buf.len());
        let buf = &mut buf[..buf_len];
        let touched = offset / PAGE..=offset.saturating_add(buf.len() as u64) / PAGE;
        if changes.pages.range(touched).next().is_none() {
            let below_len = changes.below_len;
            // The file below does not change, so other threads need not wait for this read.
            drop(changes);
            read_below(below, below_len, offset, buf)?;
            return Ok(buf.len());
        }
        for (page, inside, at, take) in pieces(offset, buf.len()) {
            let out = &mut buf[at..at + take];
            match changes.pages.get(&page) {
                Some(Page::Memory(page)) => out.copy_from_slice(&page[inside..inside + take]),
                Some(Page::Temporary(at)) => {
                    self.content.scratch.file()?.read_exact_at(*at + inside as u64, out)?;
                }
                None => read_below(below, changes.below_len, offset + at as u64, out)?,
            }
        }
        Ok(buf.len())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let Some(end) = offset.checked_add(bytes.len() as u64) else {
            return Err(Error::invalid(format!(
                "offset {offset} of {} is out of range",
                self.name
            )));
        };
        let mut changes = self.content.changes.lock();
        for (page, inside, at, take) in pieces(offset, bytes.len()) {
            self.content.write(&mut changes, page, inside, &bytes[at..at + take])?;
        }
        changes.len = changes.len.max(end);
        Ok(())
    }

    fn write_vectored_at(&self, offset: u64, bufs: &[&[u8]]) -> Result<()> {
        let mut at = offset;
        for buf in bufs {
            self.write_at(at, buf)?;
            at += buf.len() as u64;
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.content.changes.lock().len)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        let mut changes = self.content.changes.lock();
        if len < changes.len {
            changes.pages.split_off(&len.div_ceil(PAGE));
            let inside = (len % PAGE) as usize;
            if inside > 0 && (changes.pages.contains_key(&(len / PAGE)) || len < changes.below_len)
            {
                let zeros = [0; PAGE_BYTES];
                self.content.write(&mut changes, len / PAGE, inside, &zeros[inside..])?;
            }
            changes.below_len = changes.below_len.min(len);
        }
        changes.len = len;
        Ok(())
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        let mut changes = self.content.changes.lock();
        changes.len = changes.len.max(offset.saturating_add(len));
        Ok(())
    }

    fn punch(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }

    fn allocated_bytes(&self) -> Result<u64> {
        match &self.content.below {
            Some(below) => below.allocated_bytes(),
            None => Ok(self.content.changes.lock().pages.len() as u64 * PAGE),
        }
    }

    fn is_direct(&self) -> bool {
        false
    }

    fn start_writeback(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
}

impl Content {
    /// Creates the content of the file `below`, which has `len` bytes; an empty content if `below`
    /// is `None`.
    pub(super) fn new(below: Option<SharedFile>, len: u64, scratch: Arc<PageStore>) -> Self {
        let changes = Changes { len, below_len: len, pages: BTreeMap::new() };
        Self { below, changes: Mutex::new(changes), scratch }
    }

    /// Writes within a page. A page is copied from the file below before its first write, unless
    /// that write covers the whole page.
    fn write(&self, changes: &mut Changes, number: u64, inside: usize, bytes: &[u8]) -> Result<()> {
        match changes.pages.get_mut(&number) {
            Some(Page::Memory(page)) => {
                page[inside..inside + bytes.len()].copy_from_slice(bytes);
                Ok(())
            }
            Some(Page::Temporary(at)) => self.scratch.file()?.write_at(*at + inside as u64, bytes),
            None => {
                let mut page = Box::new([0; PAGE_BYTES]);
                if bytes.len() < PAGE_BYTES {
                    let below = self.below.as_ref();
                    read_below(below, changes.below_len, number * PAGE, &mut page[..])?;
                }
                page[inside..inside + bytes.len()].copy_from_slice(bytes);
                changes.pages.insert(number, self.scratch.keep(page)?);
                Ok(())
            }
        }
    }
}

/// Fills `buf` from the file below, and with zeros where the file below has no bytes.
fn read_below(below: Option<&SharedFile>, below_len: u64, at: u64, buf: &mut [u8]) -> Result<()> {
    let has = usize::try_from(below_len.saturating_sub(at)).unwrap_or(usize::MAX).min(buf.len());
    let mut got = 0;
    if let (Some(below), true) = (below, has > 0) {
        got = below.read_at(at, &mut buf[..has])?;
    }
    buf[got..].fill(0);
    Ok(())
}

/// Splits a range by page into pieces: page number, offset in the page, offset in the range,
/// length.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done >= len {
            return None;
        }
        let at = offset + done as u64;
        let inside = (at % PAGE) as usize;
        let take = (PAGE_BYTES - inside).min(len - done);
        done += take;
        Some((at / PAGE, inside, done - take, take))
    })
}
