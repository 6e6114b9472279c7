//! `make fuzz`: runs the targets of fuzz/targets.toml under libFuzzer (nightly, cargo-fuzz).
//!
//! [`crate::tidy`] checks that targets.toml agrees with the `fuzz` modules of the crates, with the
//! files in fuzz/fuzz_targets and with fuzz/Cargo.toml.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::step::Cmd;
use crate::workspace::{read, read_toml, root};
use crate::{Result, fuzz_entries, install, sanitize, variables};

const CARGO_FUZZ: &str = "0.13.2";
const SECONDS_DEFAULT: &str = "60";
/// Longest input of a target that has no row in the table yet, bytes.
const MAX_LEN_DEFAULT: i64 = 4096;
/// The line of fuzz/Cargo.toml above its generated part.
const WRITTEN_BELOW: &str = "# Written by `cargo xtask fuzz-targets`.\n";

/// One row of fuzz/targets.toml.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Name of the target: folder of the crate and name of the function, joined by an underscore.
    pub(crate) name: String,
    /// Path of the function that the target calls.
    pub(crate) entry: String,
    /// Longest input worth trying, in bytes.
    pub(crate) max_len: i64,
}

/// Reads the table, sorted by name.
pub(crate) fn targets() -> Result<Vec<Target>> {
    let table = read_toml(&root().join("fuzz/targets.toml"))?;
    let mut targets = table
        .into_iter()
        .map(|(name, row)| {
            let entry = row.get("entry").and_then(|v| v.as_str());
            let max_len = row.get("max_len").and_then(toml::Value::as_integer);
            match (entry, max_len) {
                (Some(entry), Some(max_len)) => {
                    Ok(Target { name, entry: entry.to_owned(), max_len })
                }
                _ => Err(format!("fuzz/targets.toml: {name} needs `entry` and `max_len`")),
            }
        })
        .collect::<Result<Vec<_>>>()?;
    targets.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(targets)
}

/// Checks that fuzz/, a workspace with its own lock file, can be built: the crates must have the
/// features that fuzz/Cargo.toml names, and the lock file must agree with the crates.
pub(crate) fn check() -> Result {
    let manifest = "metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml";
    Cmd::new("cargo", manifest).output().map(drop)
}

/// Fuzzes one target, or all targets in turn.
pub(crate) fn run(args: &[String]) -> Result {
    let given = variables(args, &["TARGET", "SECONDS"])?;
    let value = |wanted: &str| given.iter().find(|(name, _)| *name == wanted).map(|(_, v)| *v);
    let seconds = value("SECONDS").unwrap_or(SECONDS_DEFAULT);
    let mut selected = targets()?;
    if let Some(wanted) = value("TARGET") {
        let known: Vec<String> = selected.iter().map(|target| target.name.clone()).collect();
        selected.retain(|target| target.name == wanted);
        if selected.is_empty() {
            return Err(format!("no target {wanted}; the targets are {}", known.join(", ")));
        }
    }
    install::nightly()?;
    install::apt("a C++ compiler", "g++", || install::on_path("c++"))?;
    install::cargo_tool("fuzz", CARGO_FUZZ, "")?;
    for target in &selected {
        Cmd::new("cargo", &format!("+nightly fuzz run {}", target.name))
            .arg("--")
            .arg(&format!("-max_total_time={seconds}"))
            .arg(&format!("-max_len={}", target.max_len))
            .env("PATH", &install::path_with_tools())
            // libFuzzer's programs have the address sanitizer.
            .env("CFLAGS", sanitize::C_FLAGS)
            .run()?;
    }
    eprintln!("{} target(s) fuzzed for {seconds} s each, nothing found", selected.len());
    Ok(())
}

/// Writes fuzz/targets.toml, fuzz/Cargo.toml and fuzz/fuzz_targets/ from the crates' entries. Keeps
/// the input lengths that the table already has.
pub(crate) fn write_targets() -> Result {
    let (entries, _) = fuzz_entries::collect()?;
    let known = targets()?;
    let wanted: Vec<Target> = entries
        .into_iter()
        .map(|(name, entry)| {
            let max_len = known.iter().find(|target| target.name == name);
            let max_len = max_len.map_or(MAX_LEN_DEFAULT, |target| target.max_len);
            Target { name, entry, max_len }
        })
        .collect();
    let folder = root().join("fuzz");
    rewrite(&folder.join("targets.toml"), "", &table_text(&wanted))?;
    rewrite(&folder.join("Cargo.toml"), WRITTEN_BELOW, &manifest_text(&wanted))?;
    let sources = folder.join("fuzz_targets");
    for target in known.iter().filter(|old| wanted.iter().all(|new| new.name != old.name)) {
        // The file may be missing.
        let _ = fs::remove_file(sources.join(format!("{}.rs", target.name)));
    }
    for target in &wanted {
        write(&sources.join(format!("{}.rs", target.name)), &source_text(target))?;
    }
    Ok(())
}

/// Keeps a file's text up to and including `marker`, or its leading comment if `marker` is empty,
/// and replaces the rest.
fn rewrite(path: &Path, marker: &str, text: &str) -> Result {
    let old = read(path)?;
    let head = if marker.is_empty() {
        let comment = |line: &&str| line.starts_with('#');
        old.split_inclusive('\n').take_while(comment).collect::<String>()
    } else {
        let (head, _) = old.split_once(marker).unwrap_or((&old, ""));
        format!("{head}{marker}")
    };
    write(path, &format!("{head}{text}"))
}

fn write(path: &Path, text: &str) -> Result {
    fs::write(path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

fn table_text(targets: &[Target]) -> String {
    targets
        .iter()
        .map(|Target { name, entry, max_len }| {
            format!("\n[{name}]\nentry = \"{entry}\"\nmax_len = {max_len}\n")
        })
        .collect()
}

fn manifest_text(targets: &[Target]) -> String {
    let crates: BTreeSet<&str> =
        targets.iter().filter_map(|target| target.entry.split("::").next()).collect();
    let mut text = String::new();
    for name in crates {
        let package = name.replace('_', "-");
        let folder = package.strip_prefix("frondb-").unwrap_or(&package);
        text +=
            &format!("{package} = {{ path = \"../crates/{folder}\", features = [\"testing\"] }}\n");
    }
    for Target { name, .. } in targets {
        text += &format!(
            "\n[[bin]]\nname = \"{name}\"\npath = \"fuzz_targets/{name}.rs\"\n\
             test = false\ndoc = false\nbench = false\n"
        );
    }
    text
}

fn source_text(target: &Target) -> String {
    format!(
        "//! libFuzzer target: hands arbitrary bytes to `{0}`.\n#![no_main]\n\n\
         libfuzzer_sys::fuzz_target!(|data: &[u8]| {{\n    {0}(data);\n}});\n",
        target.entry
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_that_is_written_can_be_read() {
        let targets = [Target {
            name: "wal_segment".into(),
            entry: "frondb_wal::fuzz::segment".into(),
            max_len: 9,
        }];
        let table: toml::Table = table_text(&targets).parse().unwrap();
        assert_eq!(table["wal_segment"]["max_len"].as_integer(), Some(9));
        let manifest: toml::Table =
            format!("[dependencies]\n{}", manifest_text(&targets)).parse().unwrap();
        assert_eq!(manifest["dependencies"]["frondb-wal"]["path"].as_str(), Some("../crates/wal"));
        assert_eq!(manifest["bin"][0]["path"].as_str(), Some("fuzz_targets/wal_segment.rs"));
    }
}
