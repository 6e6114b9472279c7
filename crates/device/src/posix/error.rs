//! Converts errors of the operating system (errno) into errors of the engine.

use frondb_core::{Error, ErrorKind};
use rustix::fs::FileType;
use rustix::io::Errno;

/// Returns the error for a failed `action` on `file`.
pub(super) fn os_error(action: &str, file: &str, errno: Errno) -> Error {
    let error = Error::io(action, file, &errno.into());
    if errno == Errno::EXIST { error.with_kind(ErrorKind::Exists) } else { error }
}

/// Returns the error if the name `file` belongs to something else than a regular file.
pub(super) fn not_regular(file: &str, kind: FileType) -> Error {
    let what = match kind {
        FileType::Directory => "a directory",
        FileType::Fifo => "a named pipe",
        FileType::BlockDevice | FileType::CharacterDevice => "a device",
        _ => "of another kind",
    };
    Error::invalid(format!("{file} is {what}, not a regular file"))
}
