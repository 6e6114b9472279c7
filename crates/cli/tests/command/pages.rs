//! The commands on the pages of the documentation: each `sh` block with a command `frondb` is run as
//! it is printed, by a shell, in a folder that stands for the root of the machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use frondb::{BackupOptions, Db, Options, TreeOptions};
use frondb_testkit::TempDir;

/// Programs that the shell finds first. A measurement is short, and what needs another user or a
/// drive of its own is replaced.
fn programs(folder: &Path) {
    let frondb = env!("CARGO_BIN_EXE_frondb");
    let smart =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/testdata/smart/sata-smartctl.json");
    let short = "--seconds 0.3 --size 16MiB --threads 1,2";
    let texts = [
        (
            "frondb",
            format!(
                "case $1 in device) exec {frondb} \"$@\" {short};; esac\nexec {frondb} --memory 16MiB \"$@\""
            ),
        ),
        ("smartctl", format!("cat {}", smart.display())),
        ("chown", "test $# = 3".to_owned()),
    ];
    fs::create_dir_all(folder).unwrap();
    for (name, text) in texts {
        let program = folder.join(name);
        fs::write(&program, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Makes what the pages presume: the database `DIR`, its backup unless the page makes one, tables to
/// load, the data directory of a server.
fn presumed(root: &Path, block: &str) {
    for folder in ["var/lib/mysql", "backups", "here"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    for table in ["users.csv", "events.csv"] {
        fs::write(root.join("here").join(table), "id,name\nA1,Ada\nB2,Bob\n").unwrap();
    }
    let options = Options::new().memory_bytes(16 << 20);
    let db = Db::open(root.join("here/DIR"), options).unwrap();
    db.create_tree("users", TreeOptions::new()).unwrap().put(b"1", b"Ada").unwrap();
    if !block.contains("frondb backup") {
        let mut backup =
            db.begin_backup(root.join("backups/sunday"), &BackupOptions::new()).unwrap();
        backup.fix().unwrap();
        backup.attach("definitions/shop/users.frm", b"definition").unwrap();
        backup.copy(&mut |_, _| true).unwrap();
    }
    db.close().unwrap();
}

/// The `sh` blocks with a command `frondb` of all pages in the contents, with the page of each.
fn blocks() -> Vec<(String, String)> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let contents = fs::read_to_string(docs.join("README.md")).unwrap();
    let pages = contents.split("](").skip(1).filter_map(|link| link.split(')').next());
    let mut blocks = Vec::new();
    for page in pages {
        let Ok(text) = fs::read_to_string(docs.join(page)) else { continue };
        let found = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
        let runs = |block: &&str| block.lines().any(|line| line.contains("frondb "));
        let own = |block: &&str| !block.contains("mariadb -e") && !block.contains("cargo ");
        let found = found.filter(runs).filter(own);
        blocks.extend(found.map(|block| (page.to_owned(), block.to_owned())));
    }
    blocks
}

#[test]
fn the_commands_of_all_pages_work() {
    let blocks = blocks();
    assert!(blocks.len() >= 5, "the pages have more commands than {blocks:?}");
    for (page, block) in blocks {
        let temp = TempDir::new("cli-pages");
        let root = temp.path();
        presumed(root, &block);
        let bin: PathBuf = root.join("bin");
        programs(&bin);
        let absolute = block.replace(" /", &format!(" {}/", root.display()));
        let script = absolute.replace(" --seconds 120", "");
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-eu", "-c", &script]).env("PATH", path).current_dir(root.join("here"));
        let done = shell.output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{page}: {block}\n{said}");
    }
}
