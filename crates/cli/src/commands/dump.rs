//! `dump`: writes a tree, or a range of it, to a file.
//!
//! The cursor shows one fixed state, so a dump has the data of one moment. The dump writes the file
//! as `NAME.partial` and renames it when it is complete and synced. Only regular files are
//! replaced: a dump to a device or FIFO writes to it directly, and a dump to a symbolic link
//! replaces the target of the link, not the link.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use frondb::Tree;
use serde_json::json;

use super::session::{Bounds, Session};
use crate::args::{Common, Dump};
use crate::failure::Failure;
use crate::output::{Output, StandardOutput};
use crate::progress::Progress;
use crate::records::{Format, TextOptions, writer};

/// Writes a dump.
pub(crate) fn dump(common: &Common, args: &Dump) -> Result<(), Failure> {
    let form = args.form.of_dump(common, &args.file)?;
    let session = Session::open(common, &args.tree.dir)?;
    let tree = session.tree(&args.tree.tree)?;
    let bounds = session.bounds(&args.range)?;
    let entries = if args.file == Path::new("-") {
        write_entries(common, &form, &tree, &bounds, StandardOutput::new())?
    } else {
        write_file(common, &args.file, &form, &tree, &bounds)
            .map_err(|failure| failure.about(&args.file).context(args.file.display()))?
    };
    session.close()?;
    if args.file == Path::new("-") {
        return Ok(());
    }
    let mut out = Output::new(common);
    let result = json!({ "file": args.file.display().to_string(), "entries": entries });
    out.done(&result, |_| format!("dumped {entries} entries to {}", args.file.display()))?;
    out.finish()
}

/// A format with the layout of its tables.
type Form = (Format, TextOptions);

fn write_file(
    common: &Common,
    file: &Path,
    form: &Form,
    tree: &Tree,
    bounds: &Bounds,
) -> Result<u64, Failure> {
    match target(file)? {
        Target::File { path, before } => {
            let partial = partial_of(&path);
            let file = create_anew(&partial)?;
            let written = (|| {
                // A replaced file keeps its mode. A new file gets the mode of --file-mode,
                // independent of the umask.
                let new = || Permissions::from_mode(common.file_mode);
                file.set_permissions(before.map_or_else(new, |before| before.permissions()))?;
                let entries = write_entries(common, form, tree, bounds, &file)?;
                file.sync_all()?;
                fs::rename(&partial, &path)?;
                Ok(entries)
            })();
            if written.is_err() {
                // Report the first failure. If this removal fails too, the next dump removes the
                // file.
                let _ = fs::remove_file(&partial);
            }
            written
        }
        Target::Other => {
            let file = OpenOptions::new().write(true).open(file)?;
            let entries = write_entries(common, form, tree, bounds, &file)?;
            match file.sync_all() {
                // Most devices and FIFOs cannot be synced.
                Err(error) if error.kind() == ErrorKind::InvalidInput => {}
                synced => synced?,
            }
            Ok(entries)
        }
    }
}

/// What the path of a dump refers to.
enum Target {
    /// A file to create or replace; `before` has the metadata of the file that is replaced.
    File { path: PathBuf, before: Option<Metadata> },
    /// A device or FIFO to write to.
    Other,
}

fn target(path: &Path) -> io::Result<Target> {
    // Check this before the path is canonicalized: the target of a link in /proc may have no path,
    // for example the pipe behind /dev/stdout or `>(..)`.
    if path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return Ok(Target::Other);
    }
    // Follow links; the new file is written next to their target.
    match fs::canonicalize(path) {
        Ok(path) => {
            let before = path.metadata()?;
            if before.is_dir() {
                return Err(io::Error::new(ErrorKind::IsADirectory, "the path is a directory"));
            }
            let before = before.is_file().then_some(before);
            Ok(before.map_or(Target::Other, |before| Target::File { path, before: Some(before) }))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // The path does not exist, or is a dangling link. Such a link stays, and the dump
            // creates its target.
            if let Ok(link) = fs::read_link(path) {
                let at = path.parent().unwrap_or_else(|| Path::new("")).join(link);
                return target(&at);
            }
            Ok(Target::File { path: path.to_owned(), before: None })
        }
        Err(error) => Err(error),
    }
}

fn partial_of(path: &Path) -> PathBuf {
    path.with_file_name({
        let mut name = OsString::from(path.file_name().unwrap_or_default());
        name.push(".partial");
        name
    })
}

/// Creates a new file, after removing the file that an interrupted dump left at its path. If that
/// path is a link, only the link is removed, not its target.
fn create_anew(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn write_entries(
    common: &Common,
    (format, text): &Form,
    tree: &Tree,
    bounds: &Bounds,
    out: impl Write,
) -> Result<u64, Failure> {
    let mut out = BufWriter::with_capacity(1 << 18, out);
    let mut records = writer(*format, text, &mut out)?;
    let total = tree.estimate(&bounds.lo, bounds.hi.as_deref())?.entries;
    let mut progress = Progress::entries(common, total);
    let mut cursor = tree.cursor_with(bounds.cursor())?;
    let mut entries = 0;
    while cursor.next()? {
        records.write(cursor.key(), cursor.value()?)?;
        entries += 1;
        progress.at(entries, entries);
    }
    records.finish()?;
    drop(records);
    out.flush()?;
    Ok(entries)
}
