//! Statistics and backups of a database that another process has open.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use frondb::{Db, Options, TreeOptions};
use frondb_testkit::TempDir;

use crate::program::{frondb, is_root, run_as_nobody};

fn open(dir: &Path, attachable: bool) -> Db {
    Db::open(dir, Options::new().memory_bytes(16 << 20).attachable(attachable)).unwrap()
}

#[test]
fn an_open_database_is_looked_into_and_backed_up() {
    let temp = TempDir::new("cli-attached");
    let dir = temp.path().join("db");
    let db = open(&dir, true);
    let tree = db.open_or_create_tree("words", TreeOptions::new()).unwrap();
    tree.put("frond", "leaf").unwrap();
    let stats = frondb("stats", &dir, &["--json"]).ok();
    let json = &stats.json()[0];
    assert_eq!(json["database"]["commits"], 1);
    let trees: Vec<_> = json["trees"].as_object().unwrap().keys().collect();
    assert_eq!(trees, ["words"]);
    let own: Vec<_> = db.stats().named_values().into_iter().map(|(name, _)| name).collect();
    assert!(own.iter().all(|name| json["database"][name].is_u64()), "{json}");
    let page = frondb("stats", &dir, &[]).ok();
    assert!(page.text().contains("commits") && page.text().contains("\ntree words\n"));
    let page = frondb("stats", &dir, &["--prometheus"]).ok();
    assert!(page.text().contains("frondb_commits_total 1\n"), "{}", page.text());

    let (full, more) = (temp.path().join("full"), temp.path().join("more"));
    let made = frondb("backup", &dir, &[full.to_str().unwrap(), "--json"]).ok();
    assert_eq!(made.json()[0]["incremental"], false);
    tree.put("fern", "leaf").unwrap();
    let since = ["--since", full.to_str().unwrap(), "--json"];
    let made = frondb("backup", &dir, &[&[more.to_str().unwrap()], &since[..]].concat()).ok();
    assert_eq!(made.json()[0]["incremental"], true);
    frondb("backup", &dir, &[more.to_str().unwrap()]).fails(3, "more");
    let copy = temp.path().join("copy");
    let options = Options::new();
    Db::restore(&[&full, &more], &copy, &options, &mut |_, _| true).unwrap();
    assert_eq!(frondb("scan", &copy, &["words", "--count"]).ok().text(), "2\n");
    // Everything else still needs the database for itself.
    frondb("scan", &dir, &["words"]).fails(4, "in use by pid");
    db.close().unwrap();
    assert!(!dir.join("SOCKET").exists());
    frondb("stats", &dir, &[]).ok();
}

#[test]
fn an_owner_that_does_not_answer_is_named() {
    let temp = TempDir::new("cli-silent");
    let db = open(temp.path(), false);
    for command in [&["stats"][..], &["stats", "--prometheus"]] {
        let ran = frondb(command[0], temp.path(), &command[1..]);
        ran.fails(4, "in use by pid").fails(4, "Options::attachable");
    }
    let to = temp.path().with_extension("backup");
    frondb("backup", temp.path(), &[to.to_str().unwrap()]).fails(4, "Options::attachable");
    assert!(!to.exists() && !temp.path().join("SOCKET").exists());
    db.close().unwrap();
}

/// Beside processes that opened the database read-only, `stats` opens the database itself: no
/// process needs to answer it over a socket.
#[test]
fn statistics_are_read_beside_readers() {
    let temp = TempDir::new("cli-readers");
    open(temp.path(), false).close().unwrap();
    let reader = Db::open(temp.path(), Options::new().read_only(true)).unwrap();
    frondb("stats", temp.path(), &[]).ok();
    assert!(frondb("stats", temp.path(), &["--prometheus"]).ok().text().contains("frondb_"));
    reader.close().unwrap();
}

/// Runs commands as another user, whose requests the permissions of the files allow or deny. Only
/// root can do that; run by other users, the test does nothing.
#[test]
fn another_user_may_ask_as_far_as_the_files_allow() {
    if !is_root() {
        return;
    }
    let temp = TempDir::new("cli-other-user");
    let ask = |dir: &Path, args: &[&str]| {
        let (command, args) = args.split_first().unwrap();
        let mut all = vec![OsStr::new(*command), dir.as_os_str()];
        all.extend(args.iter().map(OsStr::new));
        run_as_nobody(temp.path(), &all)
    };
    let of_all = Options::new().memory_bytes(16 << 20).attachable(true).file_mode(0o666);
    let (open_dir, private) = (temp.path().join("open"), temp.path().join("private"));
    let dbs = [Db::open(&open_dir, of_all.dir_mode(0o777)).unwrap(), open(&private, true)];
    ask(&open_dir, &["stats"]).ok();
    let to = temp.path().join("to");
    let refused = ask(&open_dir, &["backup", to.to_str().unwrap()]);
    refused.fails(7, "another user than").fails(7, "as this user or as root");
    assert!(!to.exists());
    ask(&private, &["stats"]).fails(7, "private belongs to root");
    frondb("backup", &open_dir, &[to.to_str().unwrap()]).ok();
    dbs.iter().for_each(|db| db.close().unwrap());
}

/// The test runs itself again as a child process, and kills the child while it has the database
/// open.
#[test]
fn a_socket_of_a_killed_owner_is_no_obstacle() {
    const DIR: &str = "FRONDB_TEST_OWNER";
    if let Some(dir) = std::env::var_os(DIR) {
        let _db = open(Path::new(&dir), true);
        std::io::stdout().write_all(b"open\n").unwrap();
        loop {
            std::thread::park();
        }
    }
    let temp = TempDir::new("cli-killed-owner");
    let test = "attached::a_socket_of_a_killed_owner_is_no_obstacle";
    let mut owner: Child = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(DIR, temp.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufReader::new(owner.stdout.take().unwrap());
    assert!(std::io::BufRead::lines(lines).any(|line| line.unwrap().ends_with("open")));
    frondb("stats", temp.path(), &[]).ok();
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert!(temp.path().join("SOCKET").exists());
    // The socket that is left is no part of the database.
    let saved = temp.path().with_extension("saved");
    frondb("salvage", temp.path(), &[saved.to_str().unwrap()]).ok();
    std::fs::remove_dir_all(&saved).unwrap();
    frondb("stats", temp.path(), &[]).ok();
    let db = open(temp.path(), true);
    frondb("stats", temp.path(), &[]).ok();
    db.close().unwrap();
    assert!(!temp.path().join("SOCKET").exists());
}
