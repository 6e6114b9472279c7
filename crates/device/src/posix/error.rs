//! Errors of the operating system as errors of the engine.

use frondb_core::{Error, ErrorKind};
use rustix::io::Errno;

/// The error for a failed `action` on `file`.
pub(super) fn os_error(action: &str, file: &str, errno: Errno) -> Error {
    let error = Error::io(action, file, &errno.into());
    if errno == Errno::EXIST { error.with_kind(ErrorKind::Exists) } else { error }
}
