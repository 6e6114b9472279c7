//! Compares the measurement of a device with fio (Debian's package `fio`), which makes the same
//! requests: a cross-check, run by hand on a quiet machine. `FRONDB_DEVICE_DIR` names a directory
//! on another disk:
//!
//! `cargo test --release -p frondb-cli --test command fio -- --ignored --nocapture`

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use frondb_testkit::TempDir;
use serde_json::Value;

use crate::program::frondb;

/// Largest difference between the two programs.
const DIFFERENCE_MAX: f64 = 0.2;
/// Larger requests are left out: fio makes too few of them in its time for exact figures.
const BYTES_MAX: u64 = 1 << 20;
/// The programs run in turns, because the speed of a virtual disk changes from minute to minute.
/// The test compares the medians of the turns.
const TURNS: usize = 3;
const SECONDS: &str = "15";
const FIO_MILLIS: u32 = 500;

/// Size of the requests and number of threads.
type Kind = (u64, u64);

/// Reads per second, and the median time of a read in seconds, which is the same on a busy machine.
#[derive(Clone, Copy)]
struct Reads {
    rate: f64,
    time: f64,
}

/// Measures the reads with `frondb device`.
fn ours(dir: &Path) -> BTreeMap<Kind, Reads> {
    let args = ["--seconds", SECONDS, "--size", "2GiB", "--json"];
    let found = frondb("device", dir, &args).ok().json();
    assert_eq!(found[0]["caching"], "bypassed");
    let points = found[0]["points"].as_array().unwrap().iter().map(|point| {
        let number = |name: &str| point[name].as_u64().unwrap();
        let rate = point["requests_per_second"].as_f64().unwrap();
        let time = point["seconds_p50"].as_f64().unwrap();
        ((number("bytes"), number("threads")), Reads { rate, time })
    });
    points.filter(|((bytes, _), _)| *bytes <= BYTES_MAX).collect()
}

fn fio(file: &Path, (bytes, threads): Kind) -> Reads {
    let out = Command::new("fio")
        .args(["--name=reads", "--rw=randread", "--direct=1", "--ioengine=psync", "--thread"])
        .args(["--time_based", "--group_reporting", "--output-format=json", "--size=2g"])
        .arg(format!("--runtime={FIO_MILLIS}ms"))
        .arg(format!("--bs={bytes}"))
        .arg(format!("--numjobs={threads}"))
        .arg(format!("--filename={}", file.display()))
        .output()
        .unwrap();
    let json: Value = serde_json::from_slice(&out.stdout).unwrap();
    let reads = &json["jobs"][0]["read"];
    let nanos = reads["clat_ns"]["percentile"]["50.000000"].as_f64().unwrap();
    Reads { rate: reads["iops"].as_f64().unwrap(), time: nanos / 1e9 }
}

/// Returns the medians of the turns.
fn median(turns: &[Reads]) -> Reads {
    let middle = |value: fn(&Reads) -> f64| {
        let mut values: Vec<f64> = turns.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Reads { rate: middle(|reads| reads.rate), time: middle(|reads| reads.time) }
}

#[test]
#[ignore = "needs fio and a disk that nothing else uses; two minutes"]
fn reads_are_as_fast_as_fio_says() {
    let temp = TempDir::new("cli-device-fio");
    let dir =
        std::env::var_os("FRONDB_DEVICE_DIR").map_or_else(|| temp.path().to_owned(), PathBuf::from);
    let file = dir.join("fio.tmp");
    let mut turns: BTreeMap<Kind, (Vec<Reads>, Vec<Reads>)> = BTreeMap::new();
    for _ in 0..TURNS {
        for (kind, reads) in ours(&dir) {
            let (ours, theirs) = turns.entry(kind).or_default();
            ours.push(reads);
            theirs.push(fio(&file, kind));
        }
    }
    let _ = std::fs::remove_file(&file);
    let mut worst = 0.0_f64;
    for ((bytes, threads), (ours, theirs)) in turns {
        let (ours, fio) = (median(&ours), median(&theirs));
        let more = ours.time / fio.time - 1.0;
        println!(
            "{bytes:>8} bytes {threads:>2} threads: {:>8.1} us, fio {:>8.1} us, {more:+.2}; \
             reads/s {:>8.0}, fio {:>8.0}, {:+.2}",
            ours.time * 1e6,
            fio.time * 1e6,
            ours.rate,
            fio.rate,
            ours.rate / fio.rate - 1.0
        );
        worst = worst.max(more.abs());
    }
    assert!(worst <= DIFFERENCE_MAX, "a difference of {worst:.2}");
}
