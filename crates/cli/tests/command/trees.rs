//! Trees are created, listed, renamed and dropped, and have statistics.

use frondb_testkit::TempDir;

use crate::program::frondb;

#[test]
fn trees_come_and_go() {
    let temp = TempDir::new("cli-trees");
    let dir = temp.path();
    let made = frondb("create", dir, &["a", "b", "--codec", "zstd:3", "--json"]).ok();
    assert_eq!(made.json()[0]["created"], true);
    let again = frondb("create", dir, &["c", "--secondary", "--codec", "aggressive"]).ok();
    assert!(again.text().starts_with("opened "), "{}", again.text());
    assert_eq!(frondb("trees", dir, &[]).ok().text(), "a\nb\nc\n");

    frondb("rename", dir, &["b", "z"]).ok();
    frondb("drop", dir, &["a"]).ok();
    let names = frondb("trees", dir, &["--json"]).ok().json();
    assert_eq!(
        names.iter().map(|row| row["tree"].as_str().unwrap()).collect::<Vec<_>>(),
        ["c", "z"]
    );

    frondb("drop", dir, &["a"]).fails(1, "a");
    frondb("create", dir, &["c"]).fails(3, "c");
    frondb("create", dir, &["new", "c"]).fails(3, "c");
    frondb("create", dir, &["new", "other", "new"]).fails(2, "twice");
    assert_eq!(frondb("trees", dir, &[]).ok().text(), "c\nz\n", "all or none");
    frondb("rename", dir, &["c", "z"]).fails(3, "z");
    frondb("create", dir, &["d", "--codec", "zstd:77"]).fails(2, "77");
}

#[test]
fn names_are_printed_without_control_characters() {
    let temp = TempDir::new("cli-names");
    let dir = temp.path();
    let name = "a\nb\u{1b}[2J\u{9b}2J";
    frondb("create", dir, &[name]).ok();
    assert_eq!(frondb("trees", dir, &[]).ok().text(), "a\\nb\\x1b[2J\\xc2\\x9b2J\n");
    assert_eq!(frondb("trees", dir, &["--json"]).ok().json()[0]["tree"], name);
    assert!(frondb("stats", dir, &[]).ok().text().contains("\ntree a\\nb\\x1b[2J\\xc2\\x9b2J\n"));
    let optimized = frondb("optimize", dir, &[]).ok();
    assert!(optimized.text().starts_with("a\\nb\\x1b[2J\\xc2\\x9b2J: "), "{}", optimized.text());
}

#[test]
fn a_tree_gets_another_codec() {
    let temp = TempDir::new("cli-alter");
    let dir = temp.path();
    frondb("create", dir, &["t", "--codec", "lz4"]).ok();
    frondb("put", dir, &["t", "k", "v"]).ok();
    let altered = frondb("alter", dir, &["t", "--codec", "aggressive", "--json"]).ok().json();
    assert_eq!(
        (&altered[0]["codec"], &altered[0]["was"]),
        (&"zstd-dictionary:19".into(), &"lz4".into())
    );
    let again = frondb("alter", dir, &["t", "--codec", "zstd:1"]).ok();
    assert!(again.text().contains("in place of zstd-dictionary:19"), "{}", again.text());
    let same = frondb("alter", dir, &["t", "--codec", "zstd:1"]).ok();
    assert!(same.text().contains("as before"), "{}", same.text());
    assert_eq!(frondb("get", dir, &["t", "k"]).ok().text(), "v\n");
    let resized = frondb("alter", dir, &["t", "--option", "block_bytes=64K"]).ok();
    assert!(resized.text().contains("other options"), "{}", resized.text());
    let same = frondb("alter", dir, &["t", "--option", "block_bytes=65536"]).ok();
    assert!(same.text().contains("as before"), "{}", same.text());
    frondb("alter", dir, &["t", "--option", "fanout=4"]).fails(2, "fixed when a tree is created");
    frondb("alter", dir, &["t", "--option", "fan=4"]).fails(2, "codec, block_bytes, ");
    let runs = frondb("alter", dir, &["t", "--option", "run_codec=none"]).ok();
    assert!(runs.text().contains("other options"), "{}", runs.text());
    frondb("alter", dir, &["t", "--option", "block_bytes=1"]).fails(2, "256 to 4194304");
    frondb("alter", dir, &["t", "--option", "block_bytes"]).fails(2, "=");
    frondb("alter", dir, &["t"]).fails(2, "--codec <CODEC>|--option <NAME=VALUE>");
    let wrong = frondb("alter", dir, &["t", "--codec", "zstd:25"]);
    assert!(!wrong.err.contains("Invalid:"), "{}", wrong.err);
    wrong.fails(2, "'zstd:25' for '--codec <CODEC>': ");
    frondb("alter", dir, &["t", "--codec", "zip"]).fails(2, "zip");
    frondb("alter", dir, &["u", "--codec", "lz4"]).fails(1, "u");
}

#[test]
fn statistics_are_there_by_name() {
    let temp = TempDir::new("cli-stats");
    let dir = temp.path();
    frondb("create", dir, &["t"]).ok();
    frondb("put", dir, &["t", "k", "v"]).ok();
    let stats = &frondb("stats", dir, &["--json"]).ok().json()[0];
    assert_eq!(stats["database"]["trees"], 1);
    assert_eq!(stats["database"]["memory_total"], 16 << 20);
    assert!(stats["trees"]["t"]["height"].is_u64(), "{stats}");
    assert_eq!(stats["database"]["latency_flush_count"], stats["database"]["flushes"]);
    let metrics = frondb("stats", dir, &["--prometheus"]).ok();
    assert!(metrics.text().contains("\n# TYPE frondb_latency_seconds histogram\n"));
    let page = frondb("stats", dir, &[]).ok();
    assert!(page.text().contains("tree t\n"), "{}", page.text());
    assert!(page.text().contains("16777216 (16.0 MiB)"), "{}", page.text());
}

#[test]
fn wear_is_shown_without_opening() {
    let temp = TempDir::new("cli-wear");
    let dir = temp.path();
    frondb("create", dir, &["t"]).ok();
    frondb("put", dir, &["t", "k", "v"]).ok();
    let before: Vec<u8> = std::fs::read(dir.join("SUPER")).unwrap();
    let wear = &frondb("stats", dir, &["--wear", "--json"]).ok().json()[0];
    let total = &wear["total"];
    let bytes = |value: &serde_json::Value| value["bytes"].as_u64().unwrap();
    let causes = total["causes"].as_object().unwrap();
    assert_eq!(causes.values().map(bytes).sum::<u64>(), bytes(&total["all"]));
    assert!(bytes(&causes["flush"]) >= 4096 && bytes(&causes["manifest"]) >= 8192, "{wear}");
    assert_eq!(bytes(&causes["merge"]), 0);
    assert!(total["user_bytes"].as_u64().unwrap() > 0 && total["lifetimes"].is_null(), "{wear}");
    let amplification = total["amplification"].as_f64().unwrap();
    let user = total["user_bytes"].as_f64().unwrap();
    assert!((amplification * user - total["all"]["bytes"].as_f64().unwrap()).abs() < 1.0);

    let with_drive = &frondb("stats", dir, &["--wear", "--tbw", "600", "--json"]).ok().json()[0];
    assert_eq!(with_drive["total"]["lifetimes"][3]["drive_amplification"], 4.0);
    let page = frondb("stats", dir, &["--wear", "--tbw", "1.5"]).ok();
    assert!(page.text().contains("since the start"), "{}", page.text());
    assert!(page.text().contains("days that a new drive with 1.5 TBW lasts"), "{}", page.text());
    assert_eq!(std::fs::read(dir.join("SUPER")).unwrap(), before, "nothing was written");

    // The next command adds to the totals.
    let user_bytes = || {
        let wear = &frondb("stats", dir, &["--wear", "--json"]).ok().json()[0];
        wear["total"]["user_bytes"].as_u64().unwrap()
    };
    let first = user_bytes();
    frondb("put", dir, &["t", "k2", "v2"]).ok();
    assert!(user_bytes() > first);

    frondb("stats", dir, &["--tbw", "600"]).fails(2, "--wear");
    frondb("stats", dir, &["--wear", "--tbw", "0"]).fails(2, "above 0");
    frondb("stats", dir, &["--wear", "--prometheus"]).fails(2, "cannot be used with");
    frondb("stats", &dir.join("none"), &["--wear"]).fails(1, "no FronDB database");
}

#[test]
fn trees_are_optimized() {
    let temp = TempDir::new("cli-optimize");
    let dir = temp.path();
    frondb("create", dir, &["a", "b"]).ok();
    frondb("put", dir, &["a", "k", "v"]).ok();
    let text = frondb("optimize", dir, &[]).ok();
    let lines: Vec<&str> = text.text().lines().collect();
    assert!(
        lines[0].starts_with("a: ") && lines[0].contains(" of 1 leaves rewritten, "),
        "{lines:?}"
    );
    assert!(lines[1].starts_with("b: 0 of 1 leaves rewritten, 0 -> 0 bytes"), "{lines:?}");

    frondb("put", dir, &["a", "k", "w"]).ok();
    let json = &frondb("optimize", dir, &["a", "--fraction", "0.5", "--json"]).ok().json()[0];
    let report = &json["trees"]["a"];
    assert_eq!(
        (&report["leaves"], &report["held"], &report["failed"]),
        (&1.into(), &0.into(), &0.into())
    );
    assert!(json["trees"]["b"].is_null(), "{json}");
    assert_eq!(frondb("get", dir, &["a", "k"]).ok().text(), "w\n");
    assert_eq!(frondb("optimize", dir, &["--quiet", "--leaves-per-second", "3"]).ok().text(), "");

    frondb("optimize", dir, &["--leaves-per-second", "0"]).ok();
    frondb("optimize", dir, &["missing"]).fails(1, "missing");
    frondb("optimize", dir, &["--fraction", "0"]).fails(2, "above 0");
    frondb("optimize", dir, &["--read-only"]).fails(2, "read-only");
}

/// Prepared transactions of a coordinator that died are listed, and committed or rolled back by
/// hand.
#[test]
fn prepared_transactions_are_decided() {
    use frondb::{Db, Options, TransactionOptions, TreeOptions};
    let temp = TempDir::new("cli-prepared");
    let dir = temp.path();
    let db = Db::open(dir, Options::new().memory_bytes(16 << 20)).unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    for name in ["yes", "no\u{1}"] {
        let transaction = db.begin(TransactionOptions::new()).unwrap();
        transaction.put(&tree, name.as_bytes(), b"v").unwrap();
        transaction.prepare(name.as_bytes()).unwrap();
    }
    db.close().unwrap();
    assert_eq!(frondb("prepared", dir, &[]).ok().text(), "no\\x01\nyes\n");
    let decided = frondb("prepared", dir, &["--commit", "yes", "--json"]).ok();
    assert_eq!(decided.json()[0]["committed"], true);
    frondb("prepared", dir, &["--commit", "yes"]).fails(1, "yes");
    frondb("prepared", dir, &["--rollback", "no\\x01"]).ok();
    frondb("prepared", dir, &["--rollback", "a", "--commit", "b"]).fails(2, "cannot be used with");
    assert_eq!(frondb("prepared", dir, &["--json"]).ok().text(), "");
    assert_eq!(frondb("scan", dir, &["t"]).ok().text(), "yes\tv\n");
}
