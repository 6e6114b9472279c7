//! An open database for the duration of one command.

use std::io::Write;
use std::path::Path;

use frondb::{Batch, CursorOptions, Db, Durability, ErrorKind, Options, Tree, TreeOptions};
use serde_json::json;

use crate::args::{Common, KeyRange, TreeArgs};
use crate::failure::Failure;

/// An open database. A command ends with [`close`](Self::close), unless it fails.
pub(super) struct Session<'a> {
    pub(super) db: Db,
    common: &'a Common,
}

impl<'a> Session<'a> {
    /// Opens an existing database.
    pub(super) fn open(common: &'a Common, dir: &Path) -> Result<Self, Failure> {
        Self::start(common, dir, false)
    }

    /// Opens the database, or creates it.
    pub(super) fn open_or_create(common: &'a Common, dir: &Path) -> Result<Self, Failure> {
        Self::start(common, dir, true)
    }

    fn start(common: &'a Common, dir: &Path, create: bool) -> Result<Self, Failure> {
        let mut options =
            Options::new().memory_bytes(common.memory).file_mode(common.file_mode).create(create);
        options = options.read_only(common.read_only);
        if let Some(log_dir) = &common.log_dir {
            options = options.log_dir(log_dir);
        }
        if dir.exists() && !dir.is_dir() {
            return Err(Failure::usage(format!("{} is a file, not a directory", dir.display())));
        }
        let db = Db::open(dir, options).map_err(|error| match error.kind() {
            ErrorKind::NotFound if !create => Failure::from(error)
                .with_hint(format!("`frondb create {}` creates a database", dir.display())),
            _ => error.into(),
        })?;
        let session = Self { db, common };
        session.note_recovery();
        Ok(session)
    }

    /// Notes a torn tail that recovery cut off: normal after a crash, but good to know after a
    /// power loss.
    fn note_recovery(&self) {
        let recovery = self.db.recovery();
        let tails = [("log", &recovery.log_tail), ("manifest", &recovery.manifest_tail)];
        for (name, tail) in tails {
            if let Some(tail) = tail {
                self.note(&format!("recovery cut off the torn end of the {name}: {tail}"));
            }
        }
    }

    /// Prints a note on standard error.
    pub(super) fn note(&self, text: &str) {
        let mut err = std::io::stderr().lock();
        // Ignored: standard error may be closed.
        let _ = match (self.common.quiet, self.common.json) {
            (true, _) => Ok(()),
            (false, true) => writeln!(err, "{}", json!({ "note": text })),
            (false, false) => writeln!(err, "note: {text}"),
        };
    }

    /// Opens an existing tree.
    pub(super) fn tree(&self, name: &str) -> Result<Tree, Failure> {
        self.db.open_tree(name).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Failure::from(error).with_hint("`frondb trees` lists the trees"),
            _ => error.into(),
        })
    }

    /// Closes the database and reports errors of its last writes.
    pub(super) fn close(self) -> Result<(), Failure> {
        Ok(self.db.close()?)
    }

    /// The bytes of a key on the command line.
    pub(super) fn key(&self, text: &str) -> Result<Vec<u8>, Failure> {
        self.common.keys.decode(text)
    }

    /// The bounds of a range on the command line.
    pub(super) fn bounds(&self, range: &KeyRange) -> Result<Bounds, Failure> {
        let bound = |text: &Option<String>| text.as_deref().map(|t| self.key(t)).transpose();
        if let Some(prefix) = bound(&range.prefix)? {
            return Ok(Bounds { hi: frondb::tuple::prefix_end(&prefix), lo: prefix });
        }
        Ok(Bounds { lo: bound(&range.from)?.unwrap_or_default(), hi: bound(&range.to)? })
    }

    /// Commits a batch durably.
    pub(super) fn commit(&self, batch: &Batch) -> Result<(), Failure> {
        Ok(self.db.write(batch, Durability::Sync)?)
    }
}

/// Keys from `lo` (inclusive) to `hi` (exclusive).
pub(super) struct Bounds {
    pub(super) lo: Vec<u8>,
    pub(super) hi: Option<Vec<u8>>,
}

impl Bounds {
    /// Cursor options for these bounds.
    pub(super) fn cursor(&self) -> CursorOptions {
        let options = CursorOptions::new();
        match &self.hi {
            Some(hi) => options.range(&self.lo[..]..&hi[..]),
            None => options.range(&self.lo[..]..),
        }
    }
}

/// Options of a new tree.
pub(super) fn tree_options(args: &TreeArgs) -> TreeOptions {
    let options = if args.secondary { TreeOptions::secondary() } else { TreeOptions::new() };
    args.codec.map_or(options.clone(), |codec| options.codec_with_blocks(codec))
}
