//! Tests of the command `device`. The times depend on the machine, so these tests check the form of
//! the output and what is computed from given inputs; `crates/device-model` tests the numbers.

use std::path::Path;
use std::process::{Command, Stdio};

use frondb_testkit::TempDir;
use serde_json::Value;

use crate::program::{frondb, frondb_with};

/// A short measurement with a small file.
const SHORT: [&str; 6] = ["--seconds", "0.3", "--size", "16MiB", "--threads", "1,2"];

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SHORT.iter().chain(more).copied().collect()
}

fn smart(name: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/testdata/smart");
    dir.join(name).to_str().unwrap().to_owned()
}

#[test]
fn a_directory_is_measured_and_left_as_it_was() {
    let temp = TempDir::new("cli-device");
    let ran = frondb("device", temp.path(), &with(&["--json", "--write"])).ok().json();
    let found = &ran[0];
    for operation in ["reads", "writes"] {
        let lines = found[operation]["lines"].as_array().unwrap();
        let threads: Vec<&Value> = lines.iter().map(|line| &line["threads"]).collect();
        assert_eq!(threads, [1, 2], "{operation}");
    }
    let points = found["points"].as_array().unwrap();
    assert_eq!(points.len(), 2 * 2 * 11);
    for point in points {
        assert!(point["requests"].as_u64() > Some(0), "{point}");
        assert!(point["requests_per_second"].as_f64() > Some(0.0), "{point}");
        assert!(point["seconds_p50"].as_f64() <= point["seconds_p99"].as_f64(), "{point}");
    }
    assert_eq!(found["file_bytes"], 16 << 20);
    assert!(found["syncs"].as_u64() > Some(0));
    assert!(found["sequential_write_bytes_per_second"].as_f64() > Some(0.0));
    assert_eq!(names(temp.path()), Vec::<String>::new());
}

#[test]
fn a_measurement_that_is_killed_leaves_no_file() {
    let temp = TempDir::new("cli-device-killed");
    let mut child = Command::new(env!("CARGO_BIN_EXE_frondb"))
        .arg("device")
        .arg(temp.path())
        .args(["--seconds", "600", "--size", "16MiB"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Wait until the measurement has its file open and has removed the name.
    let open = format!("/proc/{}/fd", child.id());
    let measures = || {
        let links = std::fs::read_dir(&open).unwrap().flatten();
        let mut targets = links.filter_map(|link| std::fs::read_link(link.path()).ok());
        targets.any(|target| target.to_string_lossy().ends_with(".tmp (deleted)"))
    };
    while !measures() {
        assert!(child.try_wait().unwrap().is_none(), "the command has ended");
        std::thread::yield_now();
    }
    assert_eq!(names(temp.path()), Vec::<String>::new());
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success());
    assert_eq!(names(temp.path()), Vec::<String>::new());
}

#[test]
fn the_tables_are_text_and_the_chart_is_svg_or_a_page() {
    let temp = TempDir::new("cli-device-chart");
    let file = |name: &str| temp.path().join(name).to_str().unwrap().to_owned();
    let (svg, html) = (file("chart.svg"), file("chart.html"));
    let args = ["--chart", &svg, "--datasheet", "16,250"];
    let ran = frondb("device", temp.path(), &with(&args)).ok();
    for part in ["a file of 16 MiB", "T = S + B/W", "threads", "4 KiB write and sync"] {
        assert!(ran.text().contains(part), "{part} is not in: {}", ran.text());
    }
    let chart = std::fs::read_to_string(&svg).unwrap();
    assert!(chart.starts_with("<svg"), "{chart}");
    for part in ["datasheet", "half-power point", "1 thread", "2 threads", "4 MiB"] {
        assert!(chart.contains(part), "{part} is not in the chart");
    }
    frondb("device", temp.path(), &with(&["--chart", &html, "--write", "--quiet"])).ok();
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.matches("<svg").count() == 2, "{page}");
    for part in ["<table>", "random writes", "points", "requests/s"] {
        assert!(page.contains(part), "{part} is not on the page");
    }
}

#[test]
fn lifetimes_follow_from_the_counters_of_wear() {
    let temp = TempDir::new("cli-device-wear");
    let endurance = |args: &[&str], input: &[u8]| -> Value {
        let args: Vec<&str> = with(args).into_iter().chain(["--json"]).collect();
        let ran = frondb_with("device", temp.path(), &args, input).ok().json();
        ran[0]["endurance"].clone()
    };
    // An endurance of 1 PB, at a terabyte a day.
    let rated = endurance(&["--tbw", "1000", "--bytes-per-day", "976562500KiB"], b"");
    assert_eq!(rated["left_bytes"], 1e15);
    let days: Vec<f64> = (0..4).map(|i| rated["lifetimes"][i]["days"].as_f64().unwrap()).collect();
    assert_eq!(days, [1000.0, 500.0, 1000.0 / 3.0, 250.0]);
    let rate = rated["background_rates"][0]["bytes_per_second"].as_f64().unwrap();
    assert!((rate - 1e15 / (5.0 * 365.25 * 86_400.0)).abs() < 1.0, "{rate}");

    // Without --bytes-per-day, the rate is that of the past, from the counters of the drive. The
    // counters come from a file or from standard input.
    let nvme = endurance(&["--smart", &smart("nvme-smartctl.json")], b"");
    let written = 241_873_204.0 * 512_000.0;
    assert_eq!(nvme["written_bytes"], written);
    let per_day = nvme["bytes_per_day"].as_f64().unwrap();
    assert!((per_day / (written / 9127.0 * 24.0) - 1.0).abs() < 1e-9, "{nvme}");
    let left = nvme["left_bytes"].as_f64().unwrap();
    assert!((left / (written * 0.94 / 0.06) - 1.0).abs() < 1e-9, "{nvme}");
    let text = std::fs::read(smart("nvme-cli.json")).unwrap();
    assert_eq!(endurance(&["--smart", "-"], &text)["used"], 0.11);
    // The endurance of the datasheet replaces the extrapolated one.
    let both = endurance(&["--smart", &smart("sata-smartctl.json"), "--tbw", "600"], b"");
    assert!((both["left_bytes"].as_f64().unwrap() / (600e12 * 0.97) - 1.0).abs() < 1e-9, "{both}");
}

#[test]
fn wrong_arguments_are_refused_before_anything_is_measured() {
    let temp = TempDir::new("cli-device-wrong");
    let fails = |args: &[&str], code, part: &str| {
        frondb("device", temp.path(), args).fails(code, part);
    };
    fails(&["--threads", "0"], 2, "0 threads");
    fails(&["--threads", "1,many"], 2, "many");
    fails(&["--seconds=-1"], 2, "seconds");
    fails(&["--seconds", "0"], 2, "0.1");
    fails(&["--size", "1MiB"], 2, "16777216");
    fails(&["--size", "1000TiB"], 5, "free space");
    fails(&["--chart", "chart.png"], 2, ".svg or .html");
    fails(&["--datasheet", "16"], 2, "16,250");
    fails(&["--compression", "0.5"], 2, "at least 1");
    fails(&["--bytes-per-day", "1GiB"], 2, "--smart or --tbw");
    fails(&["--read-only"], 2, "writes a file");
    fails(&["--smart", "missing.json"], 1, "missing.json");
    let text = temp.path().join("text.json");
    std::fs::write(&text, "{}").unwrap();
    fails(&["--smart", text.to_str().unwrap()], 10, "no counters of wear");
    frondb("device", &temp.path().join("missing"), &SHORT).fails(1, "missing");
    frondb("device", &text, &SHORT).fails(2, "not a directory");
    assert_eq!(names(temp.path()), ["text.json"]);
}
