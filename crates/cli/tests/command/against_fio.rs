//! A measured device against fio (Debian's package `fio`), with the same requests: a cross-check, run
//! by hand on a quiet machine. `FRONDB_DEVICE_DIR` names a directory on another disk:
//!
//! `cargo test --release -p frondb-cli --test command fio -- --ignored --nocapture`

use std::path::{Path, PathBuf};
use std::process::Command;

use frondb_testkit::TempDir;
use serde_json::Value;

use crate::program::frondb;

/// Largest difference between the two programs.
const DIFFERENCE_MAX: f64 = 0.2;
/// Requests above this size are left out: their few requests make fio's figures uncertain.
const BYTES_MAX: u64 = 1 << 20;
const FILE: &str = "2GiB";
const SECONDS: u32 = 2;

/// Reads a second by fio.
fn fio(file: &Path, bytes: u64, threads: u64) -> f64 {
    let out = Command::new("fio")
        .args(["--name=reads", "--rw=randread", "--direct=1", "--ioengine=psync", "--thread"])
        .args(["--time_based", "--group_reporting", "--output-format=json", "--size=2g"])
        .arg(format!("--runtime={SECONDS}"))
        .arg(format!("--bs={bytes}"))
        .arg(format!("--numjobs={threads}"))
        .arg(format!("--filename={}", file.display()))
        .output()
        .unwrap();
    let json: Value = serde_json::from_slice(&out.stdout).unwrap();
    json["jobs"][0]["read"]["iops"].as_f64().unwrap()
}

#[test]
#[ignore = "needs fio and a disk that nothing else uses; two minutes"]
fn reads_are_as_fast_as_fio_says() {
    let temp = TempDir::new("cli-device-fio");
    let dir =
        std::env::var_os("FRONDB_DEVICE_DIR").map_or_else(|| temp.path().to_owned(), PathBuf::from);
    let args = ["--seconds", "60", "--size", FILE, "--json"];
    let found = frondb("device", &dir, &args).ok().json();
    assert_eq!(found[0]["caching"], "bypassed");
    let file = dir.join("fio.tmp");
    let mut worst = 0.0_f64;
    for point in found[0]["points"].as_array().unwrap() {
        let (bytes, threads) = (&point["bytes"], &point["threads"]);
        let (bytes, threads) = (bytes.as_u64().unwrap(), threads.as_u64().unwrap());
        if bytes > BYTES_MAX {
            continue;
        }
        let ours = point["requests_per_second"].as_f64().unwrap();
        let fio = fio(&file, bytes, threads);
        let difference = ours / fio - 1.0;
        println!(
            "{threads:>2} threads {bytes:>8} bytes: {ours:>9.0} fio {fio:>9.0} {difference:+.2}"
        );
        worst = worst.max(difference.abs());
    }
    let _ = std::fs::remove_file(&file);
    assert!(worst <= DIFFERENCE_MAX, "a difference of {worst:.2}");
}
