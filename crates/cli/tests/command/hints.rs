//! Hints name the cause: who owns a file, which directory was meant, and other things that the
//! message does not say.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use frondb_testkit::TempDir;

use crate::program::{frondb, is_root, run, run_as_nobody};

#[test]
fn a_directory_that_is_no_database_is_not_to_become_one() {
    let temp = TempDir::new("cli-hints");
    let dir = temp.path();
    frondb("trees", &dir.join("missing"), &[]).fails(1, "frondb create");
    frondb("trees", dir, &[]).fails(1, "frondb create");
    std::fs::write(dir.join("letter.txt"), "Dear").unwrap();
    let ran = frondb("trees", dir, &[]).fails(1, "the directory has other files");
    assert!(!ran.err.contains("frondb create"), "{}", ran.err);
    frondb("create", &dir.join("data"), &[]).ok();
    let ran = frondb("trees", dir, &[]).fails(1, "there is a database in");
    assert!(ran.err.contains("/data\n") && !ran.err.contains("frondb create"), "{}", ran.err);
}

/// As root, runs the command as another user; otherwise removes the user's own permission.
#[test]
fn a_denied_permission_says_whose() {
    let temp = TempDir::new("cli-denied");
    let dir = temp.path().join("db");
    frondb("create", &dir, &["t"]).ok();
    let mode = if is_root() { 0o700 } else { 0 };
    std::fs::set_permissions(&dir, Permissions::from_mode(mode)).unwrap();
    let ran = denied(temp.path(), &["trees".as_ref(), dir.as_ref()]);
    std::fs::set_permissions(&dir, Permissions::from_mode(0o700)).unwrap();
    let owner = if is_root() { "belongs to root (uid 0) with mode 0700" } else { "with mode 0000" };
    assert!(ran.contains(&format!("{} ", dir.display())) && ran.contains(owner), "{ran}");
    assert!(ran.contains("this command runs as") && !ran.contains("system's log"), "{ran}");

    // The same for files to read and for directories to write to.
    let (file, full) = (temp.path().join("a.csv"), temp.path().join("full"));
    std::fs::write(&file, "k,v\n").unwrap();
    std::fs::create_dir(&full).unwrap();
    frondb("backup", &dir, &[temp.path().join("backup").to_str().unwrap()]).ok();
    for path in [&dir, &temp.path().join("backup")] {
        open_to_all(path);
    }
    std::fs::set_permissions(&file, Permissions::from_mode(if is_root() { 0o600 } else { 0 }))
        .unwrap();
    std::fs::set_permissions(&full, Permissions::from_mode(0o555)).unwrap();
    let (below, backup) = (full.join("new"), temp.path().join("backup"));
    let says = |args: &[&Path], whose: &Path| {
        let ran = denied(temp.path(), args);
        let hint = format!("{} belongs to ", whose.display());
        assert!(ran.contains(&hint), "{args:?}: {ran}");
    };
    says(&["load".as_ref(), &dir, "t".as_ref(), &file], &file);
    says(&["dump".as_ref(), &dir, "t".as_ref(), &full.join("t.csv")], &full);
    says(&["backup".as_ref(), &dir, &below], &full);
    says(&["restore".as_ref(), &backup, &below], &full);
    says(&["salvage".as_ref(), &dir, &below], &full);
    std::fs::set_permissions(&full, Permissions::from_mode(0o755)).unwrap();
}

/// The hint names a file of the database that cannot be read, even if other files cannot be
/// written. If all files can be read, the hint is --read-only.
#[test]
fn a_denied_permission_names_the_file_or_read_only() {
    let temp = TempDir::new("cli-denied-file");
    let dir = temp.path().join("db");
    frondb("create", &dir, &["t"]).ok();
    let chmod = |path: &Path, mode| {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    };
    // As root, the command runs as another user, for whom the last three bits of a mode count.
    let (readable, unreadable) = if is_root() { (0o644, 0o600) } else { (0o444, 0o200) };
    open_to_all(&dir);
    for path in [dir.clone(), dir.join("wal")] {
        let files = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.is_file()).for_each(|path| chmod(&path, readable));
        chmod(&path, if is_root() { 0o755 } else { 0o555 });
    }
    let args = ["trees".as_ref(), dir.as_ref()];
    let ran = denied(temp.path(), &args);
    assert!(ran.contains("with --read-only, a command that only reads"), "{ran}");
    let read_only = ["trees".as_ref(), dir.as_ref(), OsStr::new("--read-only")];
    if is_root() { run_as_nobody(temp.path(), &read_only) } else { run(read_only, b"") }.ok();

    for name in ["SUPER", "wal"] {
        let path = dir.join(name);
        chmod(&path, if path.is_dir() { unreadable & 0o700 } else { unreadable });
        let ran = denied(temp.path(), &args);
        assert!(ran.contains(&format!("{} belongs to", path.display())), "{ran}");
        assert!(!ran.contains("--read-only"), "{ran}");
        chmod(&path, if path.is_dir() { 0o755 } else { readable });
    }
    chmod(&dir, 0o755);
}

fn open_to_all(path: &Path) {
    let is_dir = path.is_dir();
    std::fs::set_permissions(path, Permissions::from_mode(if is_dir { 0o777 } else { 0o666 }))
        .unwrap();
    for entry in std::fs::read_dir(path).into_iter().flatten() {
        open_to_all(&entry.unwrap().path());
    }
}

/// Runs a command that fails because a permission is denied; returns its message.
fn denied(temp: &Path, args: &[&Path]) -> String {
    let args: Vec<&OsStr> = args.iter().map(|arg| arg.as_os_str()).collect();
    let ran = if is_root() { run_as_nobody(temp, &args) } else { run(args, b"") };
    ran.fails(7, "").err
}

#[test]
fn help_says_what_json_has() {
    let run = |command: &str| {
        let args = [Path::new("help").as_os_str(), Path::new(command).as_os_str()];
        run(args, b"").ok().text().to_owned()
    };
    assert!(run("stats").contains("With --json: `database`"));
    assert!(run("verify-backup").contains("`faults`"));
}
