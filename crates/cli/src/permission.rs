//! The hint for a permission that is denied.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Returns the hint for a file or directory that this process may not open or create. The hint
/// names the path that denies access, its owner, and the user of this process: the first path on
/// the way to `dir`, or in `dir`, that cannot be read; otherwise the first file in `dir` that
/// cannot be written. If there is none, the hint assumes that `dir` or its nearest existing parent
/// denies writing. `None` if the metadata of the path cannot be read.
pub(crate) fn hint(dir: &Path) -> Option<String> {
    let dir = std::path::absolute(dir).ok()?;
    let mut paths: Vec<PathBuf> = dir.ancestors().map(Path::to_owned).collect();
    paths.reverse();
    let inside = contents(&dir);
    paths.extend(inside.iter().flat_map(|path| contents(path)).chain(inside.clone()));
    let unreadable = paths.iter().find(|path| is_denied(path, OpenOptions::new().read(true)));
    // A database that can be read, but not written, can be opened read-only.
    let is_readable = unreadable.is_none() && dir.join("SUPER").is_file();
    let write = |path: &&PathBuf| path.is_file() && is_denied(path, OpenOptions::new().write(true));
    let denied = unreadable.or_else(|| paths.iter().find(write)).unwrap_or(&dir);
    // The metadata of files in a directory that cannot be entered cannot be read: take the nearest
    // parent whose metadata can be read.
    let found = denied.ancestors().find_map(|path| Some((path, std::fs::metadata(path).ok()?)));
    let (path, metadata) = found?;
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o7777);
    let me = std::fs::metadata("/proc/self").map(|me| me.uid()).ok();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut text = sentence(path, (owner, mode), me, &passwd);
    if is_readable {
        text.push_str("; with --read-only, a command that only reads needs no permission to write");
    }
    Some(text)
}

/// Returns the files and directories in `dir`, in the order of their names.
fn contents(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.is_file() || path.is_dir());
    paths.sort();
    paths
}

fn is_denied(path: &Path, options: &OpenOptions) -> bool {
    let opened = options.open(path);
    opened.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
        // A directory that cannot be listed may still be entered.
        && (path.is_file() || std::fs::metadata(path.join(".")).is_err())
}

fn sentence(path: &Path, (owner, mode): (u32, u32), me: Option<u32>, passwd: &str) -> String {
    let name = |uid: u32| match user(passwd, uid) {
        Some(name) => format!("{name} (uid {uid})"),
        None => format!("uid {uid}"),
    };
    let me = me.map_or_else(|| "another user".to_owned(), name);
    let run_as = user(passwd, owner)
        .map_or_else(String::new, |name| format!(", for example with `sudo -u {name}`"));
    format!(
        "{} belongs to {} with mode {mode:04o}, and this command runs as {me}: run it as that user{run_as}, or give \
         this one the permission",
        path.display(),
        name(owner)
    )
}

/// Returns the name of a user in the text of /etc/passwd.
fn user(passwd: &str, uid: u32) -> Option<&str> {
    let uid = uid.to_string();
    let mut lines = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>());
    lines
        .find(|fields| fields.get(2) == Some(&uid.as_str()))
        .and_then(|fields| fields.first().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_names_path_owner_and_user() {
        let passwd = "root:x:0:0::/root:/bin/sh\nmysql:x:110:114::/nonexistent:/bin/false\n";
        let text = sentence(Path::new("/var/db"), (110, 0o700), Some(1000), passwd);
        assert_eq!(
            text,
            "/var/db belongs to mysql (uid 110) with mode 0700, and this command runs as uid 1000: run it as \
             that user, for example with `sudo -u mysql`, or give this one the permission"
        );
        assert!(sentence(Path::new("x"), (7, 0), None, passwd).contains("uid 7 with mode 0000"));
        let missing = hint(&std::env::temp_dir().join("frondb-missing/below")).unwrap();
        assert!(missing.starts_with(&format!("{} belongs", std::env::temp_dir().display())));
    }
}
