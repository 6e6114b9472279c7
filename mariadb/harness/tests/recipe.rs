//! The lines that mariadb/README.md gives for a user's own server work with the distribution's
//! configuration.
//!
//! The configuration is Debian's, copied from `/etc/mysql`. The test sets only the paths of files
//! and sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use frondb_mariadb_harness::{Options, Server};

/// The folder with the distribution's option files.
const CONFIGURATION: &str = "/etc/mysql";
/// The option file that the server reads first. It includes the others.
const FIRST: &str = "mariadb.cnf";
/// The folder into which the README puts the recipe.
const INCLUDED: &str = "mariadb.conf.d";

/// The lines of the recipe: the first code block below its heading.
fn recipe() -> String {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let text = fs::read_to_string(readme).unwrap();
    let (_, rest) = text.split_once("In a server of your own").expect("the README has no recipe");
    let block = rest.split("```").nth(1).expect("the recipe has no block");
    block.trim_start_matches("ini").trim_start().to_owned()
}

/// Copies the distribution's configuration and adds the recipe as a file; returns the path of the
/// first option file.
fn configuration(folder: &Path, recipe: &str) -> PathBuf {
    let _ = fs::remove_dir_all(folder);
    for included in ["conf.d", INCLUDED] {
        fs::create_dir_all(folder.join(included)).unwrap();
        for entry in fs::read_dir(Path::new(CONFIGURATION).join(included)).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, folder.join(included).join(path.file_name().unwrap())).unwrap();
        }
    }
    let first = fs::read_to_string(Path::new(CONFIGURATION).join(FIRST)).unwrap();
    let includes = format!("!includedir {CONFIGURATION}");
    assert!(first.contains(&includes), "{first}");
    let here = format!("!includedir {}", folder.display());
    fs::write(folder.join(FIRST), first.replace(&includes, &here)).unwrap();
    fs::write(folder.join(INCLUDED).join("70-frondb.cnf"), recipe).unwrap();
    folder.join(FIRST)
}

const CREATE: &str = "CREATE TABLE t (a INT PRIMARY KEY) ENGINE=FronDB";
const INSERT: &str = "INSERT INTO t VALUES (1), (2)";

/// Largest size of the installed plugin, bytes; it has no debug symbols.
const MOST: u64 = 8 << 20;

/// Installs the plugin below a folder, as the README says; returns the path of the installed file.
fn installed(folder: &Path) -> PathBuf {
    let _ = fs::remove_dir_all(folder);
    let named = |name| std::env::var_os(name).expect("use make test-mariadb");
    let built = PathBuf::from(named("FRONDB_PLUGIN"));
    let mut install = Command::new(named("FRONDB_XTASK"));
    install.arg("install-plugin");
    install.arg(format!("FROM={}", built.canonicalize().unwrap().display()));
    install.arg(format!("DESTDIR={}", folder.display()));
    let done = install.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    folder.join("usr/lib/mysql/plugin/ha_frondb.so")
}

/// Whether a file names a section with debug symbols.
fn has_symbols(file: &Path) -> bool {
    let bytes = fs::read(file).unwrap();
    let name = b"\0.debug_line\0";
    bytes.windows(name.len()).any(|window| window == name)
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn the_recipe_works_on_the_configuration_of_the_distribution() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recipe");
    let etc = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recipe-etc");
    let recipe = recipe();
    let plugin = installed(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("recipe-installed"));
    let symbols = plugin.with_file_name(".debug/ha_frondb.so.debug");
    assert!(!has_symbols(&plugin) && has_symbols(&symbols));
    let bytes = fs::metadata(&plugin).unwrap().len();
    assert!(bytes < MOST, "the installed plugin has {bytes} bytes");
    let options = |recipe: &str| {
        let defaults = configuration(&etc, recipe);
        Options::new().plugin_in_folder(&plugin).defaults_file(defaults)
    };

    let mut server = Server::start_fresh(&folder, options(&recipe)).unwrap();
    let mut client = server.connect_to("test").unwrap();
    // Debian's option files say 10 and the server's own default is 0, so the server has read the
    // files.
    assert_eq!(client.number("SELECT @@expire_logs_days = 10").unwrap(), 1);
    client.run([CREATE, INSERT]).unwrap();
    assert_eq!(client.number("SELECT count(*) FROM t").unwrap(), 2);
    server.stop().unwrap();

    // A server that nobody has configured for the plugin.
    let mut server = Server::start_fresh(&folder, options("")).unwrap();
    server.connect_to("test").unwrap().run(["INSTALL SONAME 'ha_frondb'", CREATE, INSERT]).unwrap();
    server.stop().unwrap();
    server.start().unwrap();
    assert_eq!(server.connect_to("test").unwrap().number("SELECT count(*) FROM t").unwrap(), 2);
    server.stop().unwrap();
}
