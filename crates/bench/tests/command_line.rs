//! Tests of the binary as a user runs it: parent, children, report files. They use no cgroup,
//! because a test must not require root.

#![allow(clippy::unwrap_used)] // A test fails by panicking.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

/// A directory that is removed at the end of the test. It is not below the system's temporary
/// directory: that may be a tmpfs, which the benchmark refuses.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("command-line-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    fn run(&self, args: &[&str]) -> Output {
        let program = env!("CARGO_BIN_EXE_frondb-bench");
        Command::new(program).args(args).current_dir(&self.0).output().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn bench_prints_a_table_and_writes_json_and_chart() {
    let scratch = Scratch::new("bench");
    let line = "bench --workload iibench --engines model --rows 3000 --memory 64MiB --rounds 2 \
                --read-scale 0.001 --no-cgroup --json out.json --chart out.svg";
    let output = scratch.run(&line.split_whitespace().collect::<Vec<_>>());
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{err}");
    assert!(out.contains("rows/s, acknowledged") && out.contains("medians of 2 rounds"), "{out}");
    let json = fs::read_to_string(scratch.0.join("out.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let objects = json.as_array().unwrap();
    assert_eq!(objects.len(), 1);
    assert_eq!(objects[0]["engine"], "model");
    assert_eq!(objects[0]["rows"], 3000);
    assert_eq!(objects[0]["rounds"], 2);
    assert!(objects[0]["point_ops_s"].as_f64().unwrap() > 0.0);
    assert!(objects[0]["first_key_ms"].is_null());
    assert!(fs::read_to_string(scratch.0.join("out.svg")).unwrap().starts_with("<svg"));
    let left = fs::read_dir(scratch.0.join("var/bench/frondb-bench-data")).unwrap().count();
    assert_eq!(left, 0, "data was left behind");
}

#[test]
fn each_variant_is_an_object_of_its_own() {
    let scratch = Scratch::new("variants");
    let line = "bench --workload durable --engines model --rows 500 --rounds 1 --no-cgroup \
                --json out.json";
    let output = scratch.run(&line.split_whitespace().collect::<Vec<_>>());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json = fs::read_to_string(scratch.0.join("out.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let variants: Vec<_> = json.as_array().unwrap().iter().map(|o| o["variant"].clone()).collect();
    assert_eq!(variants.len(), 6);
    assert_eq!(variants[0], "1 a commit, sync");
}

#[test]
fn a_codec_that_an_engine_lacks_is_skipped() {
    let scratch = Scratch::new("codec");
    let line =
        "bench --workload overwrite --engines model --rows 500 --codec aggressive --no-cgroup";
    let output = scratch.run(&line.split_whitespace().collect::<Vec<_>>());
    assert!(text(&output.stderr).contains("model has no codec aggressive: skipped"));
}

#[test]
fn compression_has_a_table_for_each_kind_with_all_codecs() {
    let scratch = Scratch::new("compression");
    let line = "bench --workload compression --engines model,frondb --kinds logs,json \
                --codecs standard,none,aggressive,toku-lzma --rows 2000 --memory 16MiB \
                --read-scale 0.001 --no-cgroup --json out.json";
    let output = scratch.run(&line.split_whitespace().collect::<Vec<_>>());
    let out = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for expected in [
        "compression: logs",
        "compression: json",
        "frondb aggressive",
        "model none",
        "lzma, 4 MiB blocks (TokuDB)",
        "logs: aggressive, size to tokudb toku-lzma",
    ] {
        assert!(out.contains(expected), "{expected}: {out}");
    }
    let json = fs::read_to_string(scratch.0.join("out.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let of = |key: &str| -> Vec<_> {
        json.as_array().unwrap().iter().take(6).map(|object| object[key].clone()).collect()
    };
    let engines = ["frondb", "model", "frondb", "frondb", "model", "tokudb"];
    let mut found = of("engine");
    found[..2].sort_by_key(|name| name.to_string());
    found[3..5].sort_by_key(|name| name.to_string());
    assert_eq!(found, engines);
    let codecs = ["standard", "standard", "aggressive", "none", "none", "toku-lzma"];
    assert_eq!(of("codec"), codecs);
    assert_eq!(of("variant")[5], "logs toku-lzma");
    assert!(of("fullscan_digest")[..5].windows(2).all(|pair| pair[0] == pair[1]));
    let figures = json.as_array().unwrap().iter().find_map(|object| object["figures"].as_array());
    assert!(figures.unwrap().iter().any(|figure| figure["name"] == "logs: aggressive, load"));
}

#[test]
fn reads_has_a_variant_for_each_ratio_and_its_cases_in_tables() {
    let scratch = Scratch::new("reads");
    let line = "bench --workload reads --engines model,frondb --rows 500 --ratios 8,1,8 \
                --threads 1,2 --memory 16MiB --read-scale 0.001 --no-cgroup --json out.json";
    let output = scratch.run(&line.split_whitespace().collect::<Vec<_>>());
    let out = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(out.contains("reads 8x: an operation") && out.contains("reads 8x: ms"), "{out}");
    assert!(out.contains("scan1000 zipfian, 2 threads"), "{out}");
    assert!(out.contains("point uniform, 1 thread at 8x, CPU"), "{out}");
    let json = fs::read_to_string(scratch.0.join("out.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let of = |key: &str| -> Vec<_> {
        json.as_array().unwrap().iter().map(|object| object[key].clone()).collect()
    };
    assert_eq!(of("variant"), ["1x", "1x", "8x", "8x"]);
    assert_eq!(of("rows"), [500, 500, 4_000, 4_000]);
    assert_eq!(of("answers_digest")[2], of("answers_digest")[3]);
    let figures = json[3]["figures"].as_array().unwrap();
    assert_eq!(figures[0]["floor"], 22.0);
    let case = &json[2]["reads"][7];
    assert_eq!((&case["read"], &case["threads"]), (&"multi_get100".into(), &2.into()));
    for key in ["ops_s", "cpu_us_per_op", "read_bytes_per_op", "ms_p999", "ms_max"] {
        assert!(case[key].is_number(), "{key}: {case}");
    }
}

#[test]
fn run_leaves_a_report() {
    let scratch = Scratch::new("run");
    let args = ["run", "--engines", "model,redb", "--rows", "20000", "--short-reads"];
    let output = scratch.run(&args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let out = text(&output.stdout);
    for word in ["Insert", "Latency", "Reads", "Disk and memory", "model", "redb"] {
        assert!(out.contains(word), "{out}");
    }
    let page = fs::read_to_string(scratch.0.join("report/index.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("rows acknowledged"));
    for name in ["rows.svg", "summary.txt", "figures.json"] {
        assert!(scratch.0.join("report").join(name).is_file(), "{name} is missing");
    }
}

#[test]
fn an_engine_that_a_workload_cannot_measure_is_refused() {
    let scratch = Scratch::new("other-engine");
    for workload in ["txn", "hot", "queue", "far", "backup", "memory", "merge"] {
        let line = format!(
            "bench --workload {workload} --engines frondb,model --print-orders --no-cgroup"
        );
        let output = scratch.run(&line.split_whitespace().collect::<Vec<_>>());
        let said = text(&output.stderr);
        let expected = format!("the workload {workload} measures only frondb, not model");
        assert!(!output.status.success() && said.contains(&expected), "{said}");
    }
}

#[test]
fn mistakes_are_named() {
    let scratch = Scratch::new("mistakes");
    let cases: [(&[&str], &str); 5] = [
        (&["bench", "--engines", "nosuch"], "there is no engine nosuch"),
        (&["bench", "--rows", "many"], "many"),
        (&["bench", "--codecs", "zstd:99"], "there is no codec zstd:99"),
        (
            &["bench", "--workload", "compression", "--engines", "model", "--codecs", "lzma:6"],
            "no engine that is named has a codec that is named",
        ),
        (&["child", "{}"], ""),
    ];
    for (args, expected) in cases {
        let output = scratch.run(args);
        let said = text(&output.stderr) + &text(&output.stdout);
        assert!(said.contains(expected), "{args:?}: {said}");
        // A child reports an error as JSON and exits with zero; the other commands fail.
        assert_eq!(output.status.success(), args[0] == "child", "{args:?}");
    }
}
