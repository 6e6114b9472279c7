//! A plugin that was built for another server reports this in one sentence with both versions. The
//! server runs without it, and with the right plugin the tables can be read again.
//!
//! The wrong plugins are changed copies of the right one. In the first copy, each number that is
//! the server's version is replaced by the version of the next patch release. In the second, the
//! virtual table that is compared with the server's class `handler` has one entry less. In the
//! third, another release replaces the server's release, so that the plugin's headers count as not
//! compared with this server.
//! xtask/src/mariadb/layout/tests.rs tests wrong headers themselves.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use frondb_mariadb_harness::{Client, Options, Server};

/// Shift of a server version to the version of an interface, as in the server's headers.
const INTERFACE_SHIFT: u32 = 8;
/// The server's error for a statement that names an engine the server does not have.
const ER_UNKNOWN_STORAGE_ENGINE: u16 = 1286;

/// The fields of the 64-bit ELF format that are needed to find a symbol.
mod elf {
    pub(super) const SECTIONS: usize = 0x28;
    pub(super) const SECTION_BYTES: usize = 64;
    pub(super) const SECTION_COUNT: usize = 0x3C;
    pub(super) const DYNAMIC_SYMBOLS: u64 = 11;
    pub(super) const SYMBOL_BYTES: usize = 24;
}

/// Reads a little-endian number of `bytes` bytes.
fn number(file: &[u8], at: usize, bytes: usize) -> u64 {
    file[at..at + bytes].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// The offset of the size field of a dynamic symbol.
fn size_of_symbol(file: &[u8], name: &str) -> usize {
    let section =
        |index: u64| number(file, elf::SECTIONS, 8) as usize + index as usize * elf::SECTION_BYTES;
    let offset_of = |section: usize| number(file, section + 0x18, 8) as usize;
    let symbols = (0..number(file, elf::SECTION_COUNT, 2))
        .map(section)
        .find(|section| number(file, section + 4, 4) == elf::DYNAMIC_SYMBOLS)
        .expect("the plugin has no dynamic symbols");
    let names = offset_of(section(number(file, symbols + 0x28, 4)));
    let (first, bytes) = (offset_of(symbols), number(file, symbols + 0x20, 8) as usize);
    let is_it = |symbol: &usize| {
        let rest = &file[names + number(file, *symbol, 4) as usize..];
        rest.starts_with(name.as_bytes()) && rest[name.len()] == 0
    };
    let mut all = (first..first + bytes).step_by(elf::SYMBOL_BYTES);
    all.find(is_it).unwrap_or_else(|| panic!("the plugin does not show {name}")) + 16
}

/// Replaces every aligned four-byte number `old` by `new`.
fn replace(file: &mut [u8], old: u32, new: u32) {
    let mut found = 0;
    for place in file.chunks_exact_mut(4).filter(|place| **place == old.to_le_bytes()) {
        place.copy_from_slice(&new.to_le_bytes());
        found += 1;
    }
    assert!(found > 0, "the plugin does not hold {old}");
}

/// The version of the interface of storage engines: for 10.11.19 it is 101119, shifted.
fn interface_version(client: &mut Client) -> u32 {
    let reply = client.query("SELECT substring_index(version(), '-', 1)").unwrap();
    let text = String::from_utf8(reply.rows[0][0].clone().unwrap()).unwrap();
    let version = text.split('.').fold(0, |sum, part| sum * 100 + part.parse::<u32>().unwrap());
    version << INTERFACE_SHIFT
}

/// Writes a copy of the plugin that `change` has changed.
fn wrong_plugin(folder: &Path, name: &str, change: impl FnOnce(&mut [u8])) -> PathBuf {
    let right = std::env::var_os("FRONDB_PLUGIN").expect("use make test-mariadb");
    let mut bytes = fs::read(right).unwrap();
    change(&mut bytes);
    let folder = folder.join(name);
    fs::create_dir(&folder).unwrap();
    let path = folder.join("ha_frondb.so");
    fs::write(&path, bytes).unwrap();
    path
}

/// Starts the server with a wrong plugin. Checks that the sentence is in the log and everything
/// else works. Returns the log.
fn is_refused(server: &mut Server, plugin: PathBuf, sentence: &str) -> String {
    let before = server.log().unwrap().len();
    server.restart_with(Options::new().plugin(plugin)).unwrap();
    let mut client = server.connect_to("test").unwrap();
    let log = server.log().unwrap().split_off(before);
    assert_eq!(log.matches(sentence).count(), 1, "{sentence}\n{log}");
    let engines = "SELECT count(*) FROM information_schema.engines WHERE engine = 'FronDB'";
    assert_eq!(client.number(engines).unwrap(), 0);
    let refused = client.query("SELECT * FROM ours").unwrap_err();
    assert_eq!(refused.code(), Some(ER_UNKNOWN_STORAGE_ENGINE), "{refused}");
    client.run(["INSERT INTO theirs VALUES (1)"]).unwrap();
    log
}

fn client_version(server: &mut Server) -> String {
    server.connect().unwrap().value("SELECT version()").unwrap()
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn a_plugin_for_another_server_says_so_and_the_server_runs() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wrong");
    let right = Options::new().plugin_from_environment();
    let mut server = Server::start_fresh(&folder, right.clone()).unwrap();
    let mut client = server.connect_to("test").unwrap();
    client
        .run([
            "CREATE TABLE ours (a INT PRIMARY KEY) ENGINE=FronDB",
            "INSERT INTO ours VALUES (7)",
            "CREATE TABLE theirs (a INT) ENGINE=InnoDB",
        ])
        .unwrap();
    let version = interface_version(&mut client);

    let later = wrong_plugin(&folder, "later", |file| {
        replace(file, version, version + (1 << INTERFACE_SHIFT));
    });
    let sentence =
        "API version for STORAGE ENGINE plugin FronDB not supported by this version of the server";
    is_refused(&mut server, later, sentence);

    let mut entries = 0;
    let smaller = wrong_plugin(&folder, "smaller", |file| {
        let at = size_of_symbol(file, "_ZTVN4fron8AbiProbeE");
        entries = number(file, at, 8) / 8;
        file[at..at + 8].copy_from_slice(&((entries - 1) * 8).to_le_bytes());
    });
    let sentence = format!(
        "the class `handler` has {entries} entries in the server and {} in the headers",
        entries - 1
    );
    let log = is_refused(&mut server, smaller, &sentence);
    let text = client_version(&mut server);
    let both = format!("and the server is {text}: ");
    assert!(log.contains("the headers are of MariaDB 1") && log.contains(&both), "{log}");

    // In the plugin, the server's version is text, and may also be a number; change both.
    let short = text.split('-').next().unwrap().as_bytes();
    let last = short.len() - 1;
    let other = [&short[..last], &[if short[last] == b'0' { b'1' } else { b'0' }]].concat();
    let unknown = wrong_plugin(&folder, "unknown", |file| {
        for at in 0..file.len() - short.len() {
            if file[at..].starts_with(short) {
                file[at..at + short.len()].copy_from_slice(&other);
            }
        }
    });
    is_refused(&mut server, unknown, "their classes were not compared");

    // The `version` option changes only the server's name for itself, not its classes.
    server.restart_with(right.set("version=9.8.7-ours")).unwrap();
    assert_eq!(client_version(&mut server), "9.8.7-ours");
    let mut client = server.connect_to("test").unwrap();
    assert_eq!(client.number("SELECT a FROM ours").unwrap(), 7);
    assert_eq!(client.number("SELECT count(*) FROM theirs").unwrap(), 3);
    server.stop().unwrap();
}
