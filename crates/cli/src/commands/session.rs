//! An open database for the duration of one command.

use std::io::Write;
use std::path::{Path, PathBuf};

use frondb::{
    Attachment, Batch, CursorOptions, Db, Durability, Error, ErrorKind, Options, Tree, TreeOptions,
};
use serde_json::json;

use crate::args::{Common, KeyRange, TreeArgs};
use crate::failure::Failure;

/// An open database. A command that does not fail ends with [`close`](Self::close).
pub(super) struct Session<'a> {
    pub(super) db: Db,
    common: &'a Common,
}

impl<'a> Session<'a> {
    /// Opens an existing database.
    pub(super) fn open(common: &'a Common, dir: &Path) -> Result<Self, Failure> {
        Self::start(common, dir, false, common.read_only)
    }

    /// Opens the database, or creates it.
    pub(super) fn open_or_create(common: &'a Common, dir: &Path) -> Result<Self, Failure> {
        Self::start(common, dir, true, common.read_only)
    }

    fn start(
        common: &'a Common,
        dir: &Path,
        create: bool,
        read_only: bool,
    ) -> Result<Self, Failure> {
        let mut options =
            Options::new().memory_bytes(common.memory).file_mode(common.file_mode).create(create);
        // A command such as a load may run long: make this process answer `stats` and `backup`.
        options = options.read_only(read_only).attachable(true);
        if let Some(log_dir) = &common.log_dir {
            options = options.log_dir(log_dir);
        }
        if dir.exists() && !dir.is_dir() {
            return Err(Failure::usage(format!("{} is a file, not a directory", dir.display())));
        }
        let db = Db::open(dir, options).map_err(|error| match error.kind() {
            ErrorKind::NotFound if !create => no_database(dir, error),
            _ => of_database(dir, error),
        })?;
        let session = Self { db, common };
        session.note_recovery();
        Ok(session)
    }

    /// Prints a note about a torn tail that recovery cut off. A torn tail is normal after a crash,
    /// but a user should know about one after a power loss.
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
        note(self.common, text);
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

    /// Decodes a key of the command line.
    pub(super) fn key(&self, text: &str) -> Result<Vec<u8>, Failure> {
        self.common.keys.decode(text)
    }

    /// Decodes a range of the command line.
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

/// Prints a note on standard error, unless `--quiet` is set.
pub(super) fn note(common: &Common, text: &str) {
    let mut err = std::io::stderr().lock();
    // Ignore errors: standard error may be closed.
    let _ = match (common.quiet, common.json) {
        (true, _) => Ok(()),
        (false, true) => writeln!(err, "{}", json!({ "note": text })),
        (false, false) => writeln!(err, "note: {text}"),
    };
}

/// The source of a command's data: the database itself, or the process that has it open.
pub(super) enum Source<'a> {
    Session(Session<'a>),
    Owner(Attachment),
}

impl<'a> Source<'a> {
    /// Opens an existing database. If another process has it open and answers, uses that process
    /// instead.
    pub(super) fn open(common: &'a Common, dir: &Path) -> Result<Self, Failure> {
        match Session::open(common, dir) {
            Err(failure) if failure.kind == ErrorKind::Busy.name() => match Db::attach(dir) {
                Ok(owner) => Ok(Self::Owner(owner)),
                Err(error) if error.kind() == ErrorKind::NotFound => Err(failure.with_hint(
                    "that process does not answer other programs (now): one that opens the database with \
                     Options::attachable (C: the option attachable) does, and MariaDB does, while it has \
                     the database open",
                )),
                Err(error) => Err(of_database(dir, error)),
            },
            other => other.map(Self::Session),
        }
    }

    /// Opens as [`open`](Self::open) does. If other processes have the database open read-only,
    /// opens it read-only too, because such processes do not answer requests.
    pub(super) fn open_to_read(common: &'a Common, dir: &Path) -> Result<Self, Failure> {
        Self::open(common, dir).or_else(|failure| {
            let beside = || Session::start(common, dir, false, true).ok();
            let is_busy = failure.kind == ErrorKind::Busy.name() && !common.read_only;
            is_busy.then(beside).flatten().map(Self::Session).ok_or(failure)
        })
    }
}

/// Makes a failure from the error of a call that opens or creates the directory `dir`. If a
/// permission is denied, the hint names the path that denies it (`dir`, a parent of it or a file in
/// it) and the owner of that path.
pub(super) fn of_database(dir: &Path, error: Error) -> Failure {
    Failure::from(error).about(dir)
}

/// Makes a failure from the error of a request to the process that has the database open.
pub(super) fn of_owner(error: Error) -> Failure {
    match error.kind() {
        ErrorKind::Closed => {
            let message = "the process that had the database open has closed it";
            Failure::busy(message).with_hint("run the command again")
        }
        _ => error.into(),
    }
}

/// Makes a failure for a directory without a database. If the directory is missing or empty, the
/// hint is to create a database there; if it has other files, the hint says so, or names a
/// directory in it that has a database.
fn no_database(dir: &Path, error: Error) -> Failure {
    let failure = Failure::from(error);
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).take(1000).collect();
    paths.sort();
    if paths.is_empty() {
        return failure.with_hint(format!("`frondb create {}` creates a database", dir.display()));
    }
    match paths.iter().find(|path| path.is_dir() && Db::recorded_wear(path).is_ok()) {
        Some(below) => failure.with_hint(format!("there is a database in {}", below.display())),
        None => {
            failure.with_hint("the directory has other files: give the directory of the database")
        }
    }
}

/// Keys from `lo` (inclusive) to `hi` (exclusive; `None`: to the end).
pub(super) struct Bounds {
    pub(super) lo: Vec<u8>,
    pub(super) hi: Option<Vec<u8>>,
}

impl Bounds {
    /// Makes cursor options for these bounds.
    pub(super) fn cursor(&self) -> CursorOptions {
        let options = CursorOptions::new();
        match &self.hi {
            Some(hi) => options.range(&self.lo[..]..&hi[..]),
            None => options.range(&self.lo[..]..),
        }
    }
}

/// Makes the options of a new tree.
pub(super) fn tree_options(args: &TreeArgs) -> frondb::Result<TreeOptions> {
    let options = if args.secondary { TreeOptions::secondary() } else { TreeOptions::new() };
    args.named.set(with_codec(options, args.codec))
}

/// Sets the codec, and the size of blocks that suits it. Without a codec the options stay as they
/// are.
pub(super) fn with_codec(options: TreeOptions, codec: Option<frondb::Codec>) -> TreeOptions {
    match codec {
        Some(codec) => options.codec_with_blocks(codec),
        None => options,
    }
}
