//! A device whose writes go to memory and a temporary file; the device below it is read and never
//! changed.
//!
//! ```text
//!   write --> pages in memory      read --> pages in memory, else the file below
//!        `--> beyond a mebibyte: a temporary file without a name
//! ```
//!
//! Used to open a database without changing it: recovery cuts tails and writes its files as always,
//! and all changes disappear when the device is dropped. A written page is stored whole; a file
//! that grows takes no memory until it is written to.
//!
//! A lock is a shared lock of the device below, or none where that has no lock file. Thread-safe;
//! one lock for the names and one per file, which is held while the file below is read.

use std::collections::BTreeMap;
use std::fmt;

use frondb_core::limits::PAGE_BYTES;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::sync::{Arc, Mutex};
use frondb_core::{Error, ErrorKind, Result};

use crate::device::{Device, DeviceLock, File, OpenOptions, SharedDevice, SharedFile};
use crate::name;

const PAGE: u64 = PAGE_BYTES as u64;

/// Number of written pages that stay in memory; further pages go to a temporary file, if the device
/// below provides one.
const MEMORY_PAGES: u64 = 256;

/// A directory over the one below, with the changes beside it.
#[derive(Debug)]
pub struct CopyOnWriteDevice {
    below: Option<SharedDevice>,
    path: String,
    names: Mutex<Names>,
    scratch: Arc<PageStore>,
}

#[derive(Debug, Default)]
struct Names {
    /// Files that were opened, made, renamed or (`None`) removed.
    files: BTreeMap<String, Option<Arc<Content>>>,
    /// Directories, each a device of its own.
    dirs: BTreeMap<String, Arc<CopyOnWriteDevice>>,
}

/// The content of a file.
#[derive(Debug)]
struct Content {
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

/// A written page.
#[derive(Debug)]
enum Page {
    Memory(Box<[u8; PAGE_BYTES]>),
    /// In the temporary file, at this offset.
    Temporary(u64),
}

/// Stores pages, the first ones in memory and the rest in the temporary file.
#[derive(Debug, Default)]
struct PageStore {
    /// The device that provides the temporary file.
    below: Option<SharedDevice>,
    /// Number of pages in memory.
    in_memory: AtomicU64,
    file: Mutex<TemporaryFile>,
}

#[derive(Debug, Default)]
struct TemporaryFile {
    /// `None` until it is needed; `Some(None)` if the device provides none.
    file: Option<Option<SharedFile>>,
    end: u64,
}

impl PageStore {
    /// Stores a new page.
    fn keep(&self, page: Box<[u8; PAGE_BYTES]>) -> Result<Page> {
        if self.in_memory.fetch_add(1, Ordering::Relaxed) < MEMORY_PAGES {
            return Ok(Page::Memory(page));
        }
        let mut temporary = self.file.lock();
        if temporary.file.is_none() {
            temporary.file = Some(self.below.as_ref().map_or(Ok(None), |below| below.scratch())?);
        }
        let Some(Some(file)) = &temporary.file else { return Ok(Page::Memory(page)) };
        let at = temporary.end;
        file.write_at(at, &page[..])?;
        temporary.end += PAGE;
        Ok(Page::Temporary(at))
    }

    fn file(&self) -> Result<SharedFile> {
        let missing = || Error::internal("a page refers to a temporary file that was not created");
        self.file.lock().file.clone().flatten().ok_or_else(missing)
    }
}

/// An open file.
#[derive(Debug)]
struct CopyOnWriteFile {
    name: String,
    content: Arc<Content>,
}

impl CopyOnWriteDevice {
    /// A device over `below`, which is never changed.
    #[must_use]
    pub fn new(below: SharedDevice) -> Self {
        let path = below.describe();
        let scratch =
            PageStore { below: Some(SharedDevice::clone(&below)), ..PageStore::default() };
        Self { below: Some(below), path, names: Mutex::default(), scratch: Arc::new(scratch) }
    }

    /// The directory and the rest of a name that begins with a directory.
    fn route<'a>(&self, name: &'a str) -> Result<Option<(Arc<Self>, &'a str)>> {
        let Some((dir, rest)) = name.split_once('/') else { return Ok(None) };
        Ok(Some((self.dir(dir)?, rest)))
    }

    fn dir(&self, name: &str) -> Result<Arc<Self>> {
        if let Some(dir) = self.names.lock().dirs.get(name) {
            return Ok(Arc::clone(dir));
        }
        let below = match &self.below {
            // Opening the subdevice would create a missing directory below.
            Some(below) if below.exists(name)? => Some(below.subdevice(name)?),
            _ => return Err(Error::new(ErrorKind::NotFound, format!("no directory {name:?}"))),
        };
        Ok(self.add_dir(name, below))
    }

    fn add_dir(&self, name: &str, below: Option<SharedDevice>) -> Arc<Self> {
        let path = format!("{}/{name}", self.path);
        let scratch = Arc::clone(&self.scratch);
        let dir = Arc::new(Self { below, path, names: Mutex::default(), scratch });
        let mut names = self.names.lock();
        Arc::clone(names.dirs.entry(name.to_owned()).or_insert(dir))
    }

    fn not_found(&self, action: &str, name: &str) -> Error {
        let message = format!("cannot {action} {}/{name}: there is no such file", self.path);
        Error::new(ErrorKind::NotFound, message)
    }

    /// The file of this name, if it exists.
    fn find(&self, name: &str) -> Result<Option<Arc<Content>>> {
        if let Some(known) = self.names.lock().files.get(name) {
            return Ok(known.clone());
        }
        let Some(below) = &self.below else { return Ok(None) };
        let file = match below.open(name, OpenOptions::READ) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let len = file.len()?;
        let changes = Changes { len, below_len: len, pages: BTreeMap::new() };
        let scratch = Arc::clone(&self.scratch);
        let content =
            Arc::new(Content { below: Some(file), changes: Mutex::new(changes), scratch });
        let mut names = self.names.lock();
        Ok(names.files.entry(name.to_owned()).or_insert(Some(content)).clone())
    }
}

impl Device for CopyOnWriteDevice {
    fn open(&self, name: &str, options: OpenOptions) -> Result<SharedFile> {
        name::check(name)?;
        if let Some((dir, rest)) = self.route(name)? {
            return dir.open(rest, options);
        }
        let content = match self.find(name)? {
            Some(_) if options.create_new => {
                let message = format!("cannot create {}/{name}: it exists already", self.path);
                return Err(Error::new(ErrorKind::Exists, message));
            }
            Some(content) => content,
            None if options.create || options.create_new => {
                let changes = Changes { len: 0, below_len: 0, pages: BTreeMap::new() };
                let scratch = Arc::clone(&self.scratch);
                let content =
                    Arc::new(Content { below: None, changes: Mutex::new(changes), scratch });
                self.names.lock().files.insert(name.to_owned(), Some(Arc::clone(&content)));
                content
            }
            None => return Err(self.not_found("open", name)),
        };
        Ok(Arc::new(CopyOnWriteFile { name: name.to_owned(), content }))
    }

    fn exists(&self, name: &str) -> Result<bool> {
        name::check(name)?;
        if let Some((dir, rest)) = name.split_once('/') {
            return match self.dir(dir) {
                Ok(dir) => dir.exists(rest),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
                Err(error) => Err(error),
            };
        }
        let names = self.names.lock();
        if let Some(known) = names.files.get(name) {
            return Ok(known.is_some());
        }
        let is_dir = names.dirs.contains_key(name);
        drop(names);
        Ok(is_dir || self.below.as_ref().is_some_and(|below| below.exists(name).unwrap_or(true)))
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        if let Some((first, rest)) = dir.split_once('/') {
            return self.dir(first)?.list(rest);
        }
        if !dir.is_empty() {
            return self.dir(dir)?.list("");
        }
        let mut found = match &self.below {
            Some(below) => below.list("")?,
            None => Vec::new(),
        };
        let names = self.names.lock();
        found.retain(|name| !matches!(names.files.get(name), Some(None)));
        found.extend(names.files.iter().filter(|(_, file)| file.is_some()).map(|(n, _)| n.clone()));
        found.extend(names.dirs.keys().cloned());
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    fn remove(&self, name: &str) -> Result<()> {
        name::check(name)?;
        if let Some((dir, rest)) = self.route(name)? {
            return dir.remove(rest);
        }
        self.find(name)?.ok_or_else(|| self.not_found("remove", name))?;
        self.names.lock().files.insert(name.to_owned(), None);
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        name::check(from)?;
        name::check(to)?;
        match (self.route(from)?, self.route(to)?) {
            (None, None) => {}
            (Some((a, from)), Some((b, to))) if Arc::ptr_eq(&a, &b) => return a.rename(from, to),
            _ => {
                return Err(Error::invalid(
                    "a copy-on-write device cannot rename a file into another directory",
                ));
            }
        }
        let content = self.find(from)?.ok_or_else(|| self.not_found("rename", from))?;
        let mut names = self.names.lock();
        names.files.insert(from.to_owned(), None);
        names.files.insert(to.to_owned(), Some(content));
        Ok(())
    }

    fn create_dir(&self, name: &str) -> Result<()> {
        self.subdevice(name).map(drop)
    }

    fn sync_dir(&self, _: &str) -> Result<()> {
        Ok(())
    }

    fn lock(&self, name: &str) -> Result<DeviceLock> {
        let shared = match &self.below {
            Some(below) => below.lock_shared(name)?,
            None => None,
        };
        Ok(shared.unwrap_or_else(|| DeviceLock::new(name, ())))
    }

    fn lock_shared(&self, name: &str) -> Result<Option<DeviceLock>> {
        self.lock(name).map(Some)
    }

    fn free_bytes(&self) -> Result<u64> {
        Ok(u64::MAX >> 1)
    }

    fn describe(&self) -> String {
        self.path.clone()
    }

    fn subdevice(&self, dir: &str) -> Result<SharedDevice> {
        name::check(dir)?;
        if let Some((first, rest)) = dir.split_once('/') {
            return self.dir(first)?.subdevice(rest);
        }
        match self.dir(dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(self.add_dir(dir, None)),
            found => Ok(found?),
        }
    }
}

impl Content {
    /// Writes within a page, which is copied from below before its first write.
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

/// Fills `buf` from the file below, and with zeros where that has no bytes.
fn read_below(below: Option<&SharedFile>, below_len: u64, at: u64, buf: &mut [u8]) -> Result<()> {
    let has = usize::try_from(below_len.saturating_sub(at)).unwrap_or(usize::MAX).min(buf.len());
    let mut got = 0;
    if let (Some(below), true) = (below, has > 0) {
        got = below.read_at(at, &mut buf[..has])?;
    }
    buf[got..].fill(0);
    Ok(())
}

/// The pieces of a range by page: page number, offset in the page, offset in the range, length.
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

impl fmt::Display for CopyOnWriteDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}
