//! Targets of a dump: regular files are replaced, pipes and devices are written to, and directories
//! are refused.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use frondb_testkit::TempDir;

use crate::program::frondb;

const DUMPED: &str = "a\t1\nb\t2\n";

/// Creates a database with two entries in `t`.
fn database(temp: &TempDir) -> PathBuf {
    let dir = temp.path().join("db");
    frondb("create", &dir, &["t"]).ok();
    frondb("put", &dir, &["t", "a", "1"]).ok();
    frondb("put", &dir, &["t", "b", "2"]).ok();
    dir
}

fn dump_to(path: &Path) -> [&str; 5] {
    ["t", path.to_str().unwrap(), "--format", "tsv", "--no-header"]
}

#[test]
fn a_fifo_stays_a_fifo_and_its_reader_gets_the_dump() {
    let temp = TempDir::new("cli-fifo");
    let dir = database(&temp);
    let fifo = temp.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || fs::read_to_string(fifo).unwrap()
    });
    frondb("dump", &dir, &dump_to(&fifo)).ok();
    assert!(fs::symlink_metadata(&fifo).unwrap().file_type().is_fifo());
    assert_eq!(reader.join().unwrap(), DUMPED);
}

/// `/dev/stdout` is a link to a pipe here, and a pipe has no path.
#[test]
fn a_pipe_behind_a_link_of_the_system_is_written_into() {
    let temp = TempDir::new("cli-pipe");
    let dir = database(&temp);
    let said = frondb("dump", &dir, &dump_to(Path::new("/dev/stdout"))).ok();
    assert!(said.text().starts_with(DUMPED), "{}", said.text());
}

#[test]
fn a_device_is_written_into() {
    let temp = TempDir::new("cli-device");
    let dir = database(&temp);
    // Through links, so that a failure of this test replaces a link and not the machine's device.
    let (null, full) = (temp.path().join("null"), temp.path().join("full"));
    symlink("/dev/null", &null).unwrap();
    symlink("/dev/full", &full).unwrap();
    frondb("dump", &dir, &dump_to(&null)).ok();
    frondb("dump", &dir, &dump_to(&full)).fails(5, "No space left");
    for link in [null, full] {
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::metadata(&link).unwrap().file_type().is_char_device());
    }
}

#[test]
fn a_full_standard_output_is_named() {
    let temp = TempDir::new("cli-full");
    let dir = database(&temp);
    for args in [&["scan"][..], &["scan", "--json"], &["dump", "--format", "csv"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ran = Command::new(env!("CARGO_BIN_EXE_frondb"))
            .arg(args[0])
            .arg(&dir)
            .arg("t")
            .args(&args[1..])
            .stdout(full)
            .output()
            .unwrap();
        let text = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(5), "{text}");
        assert!(text.contains("standard output: No space left"), "{text}");
    }
}

#[test]
fn a_link_stays_and_the_file_at_its_end_is_replaced() {
    let temp = TempDir::new("cli-link");
    let dir = database(&temp);
    let other = temp.path().join("other");
    fs::create_dir(&other).unwrap();
    for before in [true, false] {
        let (link, file) = (temp.path().join("link"), other.join("file"));
        if before {
            symlink("other/file", &link).unwrap();
            fs::write(&file, "what was there before and is longer than the dump").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        } else {
            fs::remove_file(&file).unwrap();
        }
        frondb("dump", &dir, &dump_to(&link)).ok();
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("other/file"));
        assert_eq!(fs::read_to_string(&file).unwrap(), DUMPED);
        if before {
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::read_dir(&other).unwrap().count(), 1, "nothing partial is left");
    }
}

#[test]
fn a_stray_partial_file_leads_nowhere() {
    let temp = TempDir::new("cli-partial");
    let dir = database(&temp);
    let (file, victim) = (temp.path().join("file"), temp.path().join("victim"));
    fs::write(&victim, "kept").unwrap();
    symlink(&victim, temp.path().join("file.partial")).unwrap();
    frondb("dump", &dir, &dump_to(&file)).ok();
    assert_eq!(fs::read_to_string(&file).unwrap(), DUMPED);
    assert!(fs::symlink_metadata(&file).unwrap().is_file());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
}

#[test]
fn a_directory_is_refused() {
    let temp = TempDir::new("cli-directory");
    let dir = database(&temp);
    let target = temp.path().join("target");
    fs::create_dir(&target).unwrap();
    frondb("dump", &dir, &dump_to(&target)).fails(2, "directory");
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
}

/// New files are private to the user or have the requested mode, whatever the umask is.
#[test]
fn files_have_the_mode_that_is_asked_for() {
    let temp = TempDir::new("cli-modes");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    for (umask, args, file, directory) in [
        ("000", "", 0o600, 0o700),
        ("000", "--file-mode 0660", 0o660, 0o770),
        ("077", "--file-mode 644", 0o644, 0o755),
    ] {
        let top = temp.path().join(format!("{umask}{file:o}"));
        fs::create_dir(&top).unwrap();
        let script = format!(
            "umask {umask}
            $0 create db t --log-dir log {args} && $0 put db t k v --log-dir log {args} &&
            $0 dump db t t.csv --log-dir log {args} && $0 load db u t.csv --log-dir log {args}"
        );
        let program = env!("CARGO_BIN_EXE_frondb");
        let ran = Command::new("sh").args(["-ec", &script, program]).current_dir(&top).output();
        let ran = ran.unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        assert_eq!(mode(&top.join("t.csv")), file);
        for dir in ["db", "log"].map(|name| top.join(name)) {
            assert_eq!(mode(&dir), directory);
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let wanted = if path.is_dir() { directory } else { file };
                assert_eq!(mode(&path), wanted, "{}", path.display());
            }
        }
    }
    let missing = temp.path().join("missing");
    frondb("create", &missing, &["--file-mode", "0700"]).fails(2, "0666");
    assert!(!missing.exists());
}
