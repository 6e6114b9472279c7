//! A directory for one test, removed at its end.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A new, empty directory. Its drop removes the directory with its content.
///
/// The directory is in `FRONDB_TEST_DIR` if that is set (to run on another disk or file system),
/// otherwise in the system's directory for temporary files.
#[derive(Debug)]
pub struct TempDir {
    path: PathBuf,
}

impl TempDir {
    /// Creates a directory whose name contains `label`, so that the remains of a killed test can be
    /// identified.
    ///
    /// # Panics
    /// If the directory cannot be created.
    #[must_use]
    pub fn new(label: &str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let base =
            std::env::var_os("FRONDB_TEST_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let path = base.join(format!("frondb-{label}-{}-{number}", std::process::id()));
        // A killed process with the same id may have left a directory.
        let _ = std::fs::remove_dir_all(&path);
        if let Err(error) = std::fs::create_dir_all(&path) {
            panic!("cannot make {}: {error}", path.display());
        }
        Self { path }
    }

    /// Returns the path of the directory, which exists until this value is dropped.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AsRef<Path> for TempDir {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // The system cleans up files that cannot be removed; they must not fail a test.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_empty_and_is_removed() {
        let (a, b) = (TempDir::new("t"), TempDir::new("t"));
        assert_ne!(a.path(), b.path());
        std::fs::write(a.path().join("f"), b"x").unwrap();
        assert_eq!(std::fs::read_dir(&b).unwrap().count(), 0);
        let path = a.path().to_owned();
        drop(a);
        assert!(!path.exists());
    }
}
