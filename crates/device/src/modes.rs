//! Permission bits of the files and directories that a device creates.
//!
//! The bits are set exactly as given, whatever the umask of the process, because an embedded engine
//! runs in processes of all kinds. Rows must not become readable because one process has an open
//! umask, or unreadable to a group that shares them because another process has a strict one.

use frondb_core::{Error, Result};

/// Permission bits of new files and directories. Existing ones keep theirs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Modes {
    file: u32,
    dir: u32,
}

impl Default for Modes {
    fn default() -> Self {
        Self::PRIVATE
    }
}

impl Modes {
    /// Access for the owner alone.
    pub const PRIVATE: Self = Self { file: 0o600, dir: 0o700 };

    /// Creates modes that give files the bits `file`, and directories the bits `dir`. If `dir` is
    /// `None`, directories have the bits of a file and an `x` for each `r`, so that every reader of
    /// a file can reach it.
    ///
    /// # Errors
    /// `Invalid` unless the owner has `rw` of a file and `rwx` of a directory, and for bits other
    /// than `rw` of a file and `rwx` of a directory.
    pub fn new(file: u32, dir: Option<u32>) -> Result<Self> {
        let dir = dir.unwrap_or(file | (file & 0o444) >> 2);
        check("file", file, 0o600, 0o666)?;
        check("dir", dir, 0o700, 0o777)?;
        Ok(Self { file, dir })
    }

    /// Returns the bits of a new file.
    #[must_use]
    pub const fn file(self) -> u32 {
        self.file
    }

    /// Returns the bits of a new directory.
    #[must_use]
    pub const fn dir(self) -> u32 {
        self.dir
    }
}

fn check(name: &str, mode: u32, least: u32, most: u32) -> Result<()> {
    if mode & least == least && mode & !most == 0 {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{name}_mode is {mode:04o}; it must include {least:04o} and no bit outside {most:04o}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_of_files_can_enter_their_directory() {
        let dir = |file| Modes::new(file, None).unwrap().dir();
        assert_eq!(dir(0o600), 0o700);
        assert_eq!(dir(0o640), 0o750);
        assert_eq!(dir(0o660), 0o770);
        assert_eq!(dir(0o666), 0o777);
        assert_eq!(Modes::new(0o660, Some(0o700)).unwrap().dir(), 0o700);
        assert_eq!(Modes::new(0o600, None).unwrap(), Modes::PRIVATE);
    }

    #[test]
    fn modes_that_lock_the_owner_out_are_refused() {
        for (file, dir) in [
            (0, None),
            (0o400, None),
            (0o060, None),
            (0o700, None),
            (0o4600, None),
            (0o600, Some(0o600)),
            (0o600, Some(0o1700)),
        ] {
            let error = Modes::new(file, dir).unwrap_err();
            assert!(error.message().contains("_mode is "), "{error}");
        }
    }
}
