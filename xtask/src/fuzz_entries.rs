//! The entries of the fuzzers: in each crate with a format, the public functions of `src/fuzz.rs`
//! that take bytes. `cargo xtask fuzz-targets` writes the list of fuzz targets from the entries,
//! and tidy compares the list with them.

use std::collections::BTreeMap;

use crate::Result;
use crate::workspace::{Member, SourceFile, members};

/// Returns the entries of all crates as target name -> path of the function, and the findings:
/// crates whose format has no entry, and entries that no test calls.
pub(crate) fn collect() -> Result<(BTreeMap<String, String>, Vec<String>)> {
    let mut findings = Vec::new();
    let mut entries = BTreeMap::new();
    for member in members()? {
        findings.extend(check_member(&member, &mut entries)?);
    }
    Ok((entries, findings))
}

/// Collects the entries of a crate as target name -> path of the function. Returns the findings.
fn check_member(member: &Member, entries: &mut BTreeMap<String, String>) -> Result<Vec<String>> {
    let files = member.rust_files()?;
    let at_end = |end: &str| files.iter().find(|file| file.path.ends_with(end));
    let found = at_end("src/fuzz.rs").map(|file| entries_of(&file.text)).unwrap_or_default();
    let crate_name = member.package.replace('-', "_");
    for entry in &found {
        entries.insert(
            format!("{}_{entry}", member.folder.replace('-', "_")),
            format!("{crate_name}::fuzz::{entry}"),
        );
    }
    let mut findings = untested(&found, &files);
    if let Some(format) = at_end("/format.rs").filter(|_| found.is_empty()) {
        findings.push(format!("{}: a format without entries in src/fuzz.rs", format.path));
    }
    Ok(findings)
}

/// Finds entries that no test calls. Each entry needs a seeded smoke test, which runs without a
/// fuzzer.
fn untested(entries: &[&str], files: &[SourceFile]) -> Vec<String> {
    let tests: String = files
        .iter()
        .filter(|file| file.text.contains("fuzz") || file.path.ends_with("fuzz.rs"))
        .filter_map(|file| match file.path.contains("tests") {
            true => Some(file.text.as_str()),
            false => file.text.split_once("mod tests {").map(|(_, tests)| tests),
        })
        .collect();
    let called = |entry: &&&str| {
        tests.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == **entry)
    };
    let missing = entries.iter().filter(|entry| !called(entry));
    missing.map(|entry| format!("fuzz entry {entry}: no test runs it")).collect()
}

/// Returns the names of the public functions in the text of a fuzz.rs that take one `&[u8]`.
fn entries_of(text: &str) -> Vec<&str> {
    text.lines()
        .filter_map(|line| {
            let (name, arguments) = line.strip_prefix("pub fn ")?.split_once('(')?;
            (arguments.matches(':').count() == 1 && arguments.contains(": &[u8])")).then_some(name)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_public_functions_of_bytes() {
        let text = "pub fn block(data: &[u8]) {\nfn helper(data: &[u8]) {}\npub fn two(a: u8, b: &[u8]) {}\n";
        assert_eq!(entries_of(text), ["block"]);
    }

    #[test]
    fn an_entry_without_a_smoke_test_is_found() {
        let file = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        let files = [
            file("a/src/fuzz.rs", "pub fn x() {}\nmod tests {\n smoke(1, &[], x);\n}"),
            file("a/tests/smoke.rs", "use a::fuzz; fn y_test() { fuzz::y(b\"\"); }"),
        ];
        assert_eq!(untested(&["x", "y"], &files), Vec::<String>::new());
        assert_eq!(untested(&["x", "z"], &files), ["fuzz entry z: no test runs it"]);
    }
}
