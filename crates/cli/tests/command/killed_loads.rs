//! A load that is interrupted while it reads leaves no tree, whatever interrupts it, unless it has
//! committed batches.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use frondb_testkit::TempDir;

use crate::program::frondb;

/// More than the pipe and the program's own buffer hold (64 and 256 KiB): once all of it is
/// written, the program has opened the database and is loading entries.
const BYTES: usize = 2 << 20;

/// Starts a load that has read rows and waits for more.
fn load_under_way(dir: &Path, args: &[&str]) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_frondb"))
        .args(["--memory", "16MiB", "load"])
        .arg(dir)
        .args(["new", "-", "--format", "csv", "--header", "--quiet"])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut table = String::from("k,v\n");
    for i in 0.. {
        if table.len() > BYTES {
            break;
        }
        table += &format!("{:08},{}\n", i * 7919 % 1_000_000, "x".repeat(100));
    }
    child.stdin.as_mut().unwrap().write_all(table.as_bytes()).unwrap();
    child
}

/// Sends SIGTERM, not SIGINT: a shell that runs the tests in the background makes their children
/// ignore SIGINT.
fn terminate(child: &mut Child) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
}

fn kill(child: &mut Child) {
    child.kill().unwrap();
}

#[test]
fn a_load_that_is_killed_leaves_no_tree() {
    let (bulk, batches) = (&[][..], &["--batch", "100000"][..]);
    for args in [bulk, batches] {
        for stop in [kill, terminate] {
            let temp = TempDir::new("cli-killed-load");
            let dir = temp.path();
            frondb("create", dir, &["old"]).ok();
            let mut child = load_under_way(dir, args);
            stop(&mut child);
            assert!(!child.wait().unwrap().success());
            assert_eq!(frondb("trees", dir, &[]).ok().text(), "old\n", "{args:?}");
            frondb("verify", dir, &[]).ok();
            // The name is still free.
            frondb("create", dir, &["new"]).ok();
        }
    }
}

/// Committed batches stay, with their tree.
#[test]
fn a_killed_load_keeps_its_batches() {
    let temp = TempDir::new("cli-killed-batches");
    let dir = temp.path();
    frondb("create", dir, &[]).ok();
    let mut child = load_under_way(dir, &["--batch", "10"]);
    kill(&mut child);
    child.wait().unwrap();
    let rows: u64 = frondb("scan", dir, &["new", "--count"]).ok().text().trim().parse().unwrap();
    assert!(rows > 0 && rows.is_multiple_of(10), "{rows}");
}
