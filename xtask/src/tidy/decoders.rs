//! Checks that every decoder has a fuzz target: each crate with a `format.rs` has entries in
//! `src/fuzz.rs`, each entry is in fuzz/targets.toml, fuzz/fuzz_targets/ and fuzz/Cargo.toml, and
//! each target there has an entry.
//!
//! ```text
//!   crates/wal/src/fuzz.rs          fuzz/targets.toml       fuzz/fuzz_targets/wal_segment.rs
//!   pub fn segment(data: &[u8])     [wal_segment]           frondb_wal::fuzz::segment(data)
//!                                   entry = "frondb_wal::fuzz::segment"
//! ```

use std::collections::BTreeMap;

use toml::{Table, Value};

use crate::fuzz::{Target, targets};
use crate::workspace::{read_toml, root};
use crate::{Result, fuzz_entries, workspace};

/// Finds decoders without a target, and targets without a decoder. `cargo xtask fuzz-targets`
/// writes the files from the entries, which removes most findings.
pub(super) fn check() -> Result<Vec<String>> {
    let (entries, mut findings) = fuzz_entries::collect()?;
    let targets = targets()?;
    findings.extend(compare(&entries, &targets));
    let manifest = read_toml(&root().join("fuzz/Cargo.toml"))?;
    for target in &targets {
        let path = format!("fuzz/fuzz_targets/{}.rs", target.name);
        let text = workspace::read(&root().join(&path)).unwrap_or_default();
        if !text.contains(&target.entry) {
            findings.push(format!("{path}: does not call {}", target.entry));
        }
        if !has_binary(&manifest, target) {
            findings
                .push(format!("fuzz/Cargo.toml: no [[bin]] with name and path of {}", target.name));
        }
    }
    Ok(findings)
}

fn compare(entries: &BTreeMap<String, String>, targets: &[Target]) -> Vec<String> {
    let mut findings = Vec::new();
    for (name, entry) in entries {
        let row = targets.iter().find(|target| target.name == *name);
        if row.is_none_or(|target| target.entry != *entry) {
            findings.push(format!("fuzz/targets.toml: needs [{name}] with entry = \"{entry}\""));
        }
    }
    for target in targets.iter().filter(|target| !entries.contains_key(&target.name)) {
        findings.push(format!("fuzz/targets.toml: [{}]: {} is gone", target.name, target.entry));
    }
    findings
}

fn has_binary(manifest: &Table, target: &Target) -> bool {
    let binaries = manifest.get("bin").and_then(Value::as_array);
    let path = format!("fuzz_targets/{}.rs", target.name);
    binaries.into_iter().flatten().any(|binary| {
        let text = |key: &str| binary.get(key).and_then(Value::as_str);
        text("name") == Some(&target.name) && text("path") == Some(&path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_missing_and_left_over_rows_are_found() {
        let entries = BTreeMap::from([("a_x".to_owned(), "frondb_a::fuzz::x".to_owned())]);
        let row = |name: &str, entry: &str| Target {
            name: name.to_owned(),
            entry: entry.to_owned(),
            max_len: 1,
        };
        assert!(compare(&entries, &[row("a_x", "frondb_a::fuzz::x")]).is_empty());
        assert_eq!(compare(&entries, &[row("b_y", "frondb_b::fuzz::y")]).len(), 2);
    }
}
