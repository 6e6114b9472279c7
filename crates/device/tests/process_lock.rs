//! The lock of a directory across processes: it is refused while its owner lives, and free once the
//! owner was killed.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking; the child reports by its output"
)]

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use frondb_core::ErrorKind;
use frondb_device::{Device, PosixDevice};

/// The environment variable with the directory that the child locks; set in the child only.
const DIR: &str = "FRONDB_TEST_LOCK_DIR";

/// Holds the lock until the parent kills this process, or ends and so closes the pipe.
fn hold_lock(dir: &OsStr) {
    let _lock = PosixDevice::open(dir).unwrap().lock("LOCK").unwrap();
    println!("\nlocked");
    let _ = std::io::stdin().read(&mut [0]);
}

/// The child process is this test again, in a process with the variable [`DIR`].
#[test]
fn a_lock_ends_with_its_process() {
    if let Some(dir) = std::env::var_os(DIR) {
        return hold_lock(&dir);
    }
    let name = format!("frondb-process-lock-{}", std::process::id());
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let device = PosixDevice::create(&dir).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_lock_ends_with_its_process", "--nocapture"])
        .env(DIR, &dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "locked"), "the child ended without the lock");

    let error = device.lock("LOCK").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert_eq!(error.message(), format!("{} is in use by pid {}", dir.display(), child.id()));

    child.kill().unwrap();
    child.wait().unwrap();
    drop(device.lock("LOCK").unwrap());
    std::fs::remove_dir_all(&dir).unwrap();
}
