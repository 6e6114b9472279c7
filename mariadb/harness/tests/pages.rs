//! The statements on the pages of the documentation: each `sql` block is executed as it is printed,
//! in a database for its page. The commands that dump a server are executed, too.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use frondb_mariadb_harness::{Options, Server};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages")
}

/// Paths from the root, and texts, of all pages in the contents.
fn pages() -> Vec<(String, String)> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let contents = fs::read_to_string(docs.join("README.md")).unwrap();
    let links = contents.split("](").skip(1).filter_map(|link| link.split(')').next());
    let page = |link: &str| Some((link.to_owned(), fs::read_to_string(docs.join(link)).ok()?));
    links.filter_map(page).collect()
}

fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let start = format!("```{language}\n");
    page.split(start.as_str()).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// The statements of a block, without comments.
fn statements(block: &str) -> Vec<String> {
    let lines = block.lines().map(|line| line.split("--").next().unwrap_or_default());
    let text = lines.collect::<Vec<_>>().join("\n");
    let statements = text.split(';').map(str::trim).filter(|statement| !statement.is_empty());
    statements.map(str::to_owned).collect()
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn the_statements_of_all_pages_work() {
    let _ = fs::remove_dir_all(folder());
    let options = Options::new().plugin_from_environment().set_all([
        "server-id=2",
        "log-bin=binlog",
        "frondb-memory=64M",
        "innodb-buffer-pool-size=16M",
    ]);
    let server = Server::start_fresh(&folder().join("server"), options).unwrap();
    fs::create_dir_all(folder().join("backups")).unwrap();
    let backups = format!("'{}/backups", folder().display());
    let mut executed = 0;
    for (number, (page, text)) in pages().into_iter().enumerate() {
        let found = blocks(&text, "sql");
        if found.is_empty() {
            continue;
        }
        let mut client = server.connect().unwrap();
        client.run([format!("CREATE DATABASE page{number}"), format!("USE page{number}")]).unwrap();
        // The connection that a page kills.
        let victim = server.connect().unwrap();
        for statement in found.into_iter().flat_map(statements) {
            let statement = statement.replace("'/backups", &backups);
            let statement = statement.replace("<blocking_thread_id>", &victim.id().to_string());
            // No name of a host is looked up.
            let statement = statement.replace("'primary'", "'127.0.0.1'");
            client.run([&statement]).unwrap_or_else(|error| panic!("{page}: {error}"));
            executed += 1;
        }
    }
    assert!(executed >= 20, "the pages have more than {executed} statements");
    let mut client = server.connect().unwrap();
    // These undo what the pages say about replication; the next commands dump all of the server.
    client.run(["STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = OFF"]).unwrap();
    the_dumps_work(&server);
}

/// Runs the commands of mariadb/docs/backups.md that dump a server.
fn the_dumps_work(server: &Server) {
    let (_, page) =
        pages().into_iter().find(|(page, _)| page.ends_with("mariadb/docs/backups.md")).unwrap();
    let script = blocks(&page, "sh").into_iter().find(|block| block.contains("mariadb-dump"));
    let mut script = script.unwrap().replace("=/backups", "=../backups");
    let has_mydumper = Path::new("/usr/bin/mydumper").exists();
    if !has_mydumper {
        // Debian 13 has none.
        let lines = script.lines().filter(|line| !line.starts_with("mydumper"));
        script = lines.collect::<Vec<_>>().join("\n");
    }
    let [bin, here] = ["bin", "here"].map(|name| folder().join(name));
    for folder in [&bin, &here] {
        fs::create_dir_all(folder).unwrap();
    }
    let socket = server.socket();
    for (name, first) in [("mariadb-dump", "--no-defaults"), ("mydumper", "")] {
        let program = bin.join(name);
        let real = format!("/usr/bin/{name} {first} --user=root --socket={}", socket.display());
        fs::write(&program, format!("#!/bin/sh\nexec {real} \"$@\"\n")).unwrap();
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    let done = shell.args(["-eu", "-c", &script]).env("PATH", path).current_dir(&here).output();
    let done = done.unwrap();
    assert!(done.status.success(), "{script}: {done:?}");
    let dump = fs::read_to_string(here.join("all.sql")).unwrap();
    assert!(dump.contains("ENGINE=FronDB"));
    assert!(!has_mydumper || folder().join("backups/dump/metadata").is_file());
}
