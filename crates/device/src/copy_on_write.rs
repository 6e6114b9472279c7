//! A device whose writes go to memory and a temporary file; the device below it is read and never
//! changed.
//!
//! ```text
//!   write --> pages in memory      read --> pages in memory, else the file below
//!        `--> beyond a mebibyte: a temporary file without a name
//! ```
//!
//! Used to open a database without changing it: recovery truncates torn log tails and writes its
//! files as always, and all changes disappear when the device is dropped. A written page is stored
//! whole; a file that grows takes no memory until it is written to.
//!
//! [`Device::lock`] takes a shared lock of the device below, or no lock if that device has no such
//! lock file. Thread-safe: one lock guards the names, and each file has a lock of its own, which is
//! held while a range with written pages is read. A range without written pages is read from the
//! file below without the lock.

mod file;
mod pages;

use std::collections::BTreeMap;
use std::fmt;

use frondb_core::sync::{Arc, Mutex};
use frondb_core::{Error, ErrorKind, Result};

use crate::device::{Device, DeviceLock, OpenOptions, SharedDevice, SharedFile};
use crate::name;
use file::{Content, CopyOnWriteFile};
use pages::PageStore;

/// A directory of the device below, overlaid with the changes.
#[derive(Debug)]
pub struct CopyOnWriteDevice {
    below: Option<SharedDevice>,
    path: String,
    names: Mutex<Names>,
    scratch: Arc<PageStore>,
}

#[derive(Debug, Default)]
struct Names {
    /// Files that were opened, created or renamed; `None` for a name that was removed or renamed.
    files: BTreeMap<String, Option<Arc<Content>>>,
    /// Directories, each a device of its own.
    dirs: BTreeMap<String, Arc<CopyOnWriteDevice>>,
}

impl CopyOnWriteDevice {
    /// Creates a device over `below`, which is never changed.
    #[must_use]
    pub fn new(below: SharedDevice) -> Self {
        let path = below.describe();
        let scratch = Arc::new(PageStore::over(&below));
        Self { below: Some(below), path, names: Mutex::default(), scratch }
    }

    /// Splits a name that begins with a directory into this directory and the rest of the name.
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

    /// Returns the file of this name, if it exists.
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
        let content = Arc::new(Content::new(Some(file), len, Arc::clone(&self.scratch)));
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
        // Adds the file to `names` if the device below has the file. Another thread may create the
        // file before the lock is taken.
        self.find(name)?;
        let mut names = self.names.lock();
        let content = match names.files.get(name).cloned().flatten() {
            Some(_) if options.create_new => {
                let message = format!("cannot create {}/{name}: it exists already", self.path);
                return Err(Error::new(ErrorKind::Exists, message));
            }
            Some(content) => content,
            None if options.create || options.create_new => {
                let content = Arc::new(Content::new(None, 0, Arc::clone(&self.scratch)));
                names.files.insert(name.to_owned(), Some(Arc::clone(&content)));
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
        match &self.below {
            Some(below) if !is_dir => below.exists(name),
            _ => Ok(is_dir),
        }
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

impl fmt::Display for CopyOnWriteDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}
