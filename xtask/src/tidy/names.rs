//! Checks that there is one noun for each concept: names of functions, types, modules and constants
//! must use the glossary's noun, not a synonym.
//!
//! The synonyms come from the last table of docs/glossary.md, so the page and the check cannot
//! differ. The words in the column "also called" of the other tables are allowed.

use crate::Result;
use crate::workspace::{SourceFile, read, root};

use super::code_of_line;

/// A word to avoid, and the noun to use.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Synonym {
    /// The word to avoid, split at spaces and in lower case.
    words: Vec<String>,
    /// The noun to use.
    noun: String,
}

/// Reads the synonyms of docs/glossary.md: rows `| **noun** | word, word |`.
pub(super) fn synonyms() -> Result<Vec<Synonym>> {
    let found = parse(&read(&root().join("docs/glossary.md"))?);
    if found.is_empty() {
        return Err("docs/glossary.md: no row names a word to avoid".into());
    }
    Ok(found)
}

fn parse(page: &str) -> Vec<Synonym> {
    let mut found = Vec::new();
    for line in page.lines() {
        let cells: Vec<&str> = line.trim().split('|').map(str::trim).collect();
        let ["", noun, never, ""] = cells[..] else { continue };
        let Some(noun) = noun.strip_prefix("**").and_then(|noun| noun.strip_suffix("**")) else {
            continue;
        };
        for words in never.split(',').map(str::trim).filter(|words| !words.is_empty()) {
            let words = words.split_whitespace().map(str::to_lowercase).collect();
            found.push(Synonym { words, noun: noun.to_owned() });
        }
    }
    found
}

/// Finds names in a file that contain a synonym. Adapters of other engines may use the words of
/// those engines.
pub(super) fn check(file: &SourceFile, synonyms: &[Synonym]) -> Vec<String> {
    if file.path.starts_with("crates/bench-peers/") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        // Text in quotes cannot declare a name.
        let code: String = code_of_line(line).split('"').step_by(2).collect();
        for name in declared(&code) {
            let words = words_of(name);
            for synonym in synonyms {
                if words.windows(synonym.words.len()).any(|window| window == synonym.words) {
                    findings.push(format!(
                        "{}:{}: `{name}`: the noun is {} (docs/glossary.md)",
                        file.path,
                        number + 1,
                        synonym.noun
                    ));
                }
            }
        }
    }
    findings
}

/// Returns the names that a line declares.
fn declared(code: &str) -> Vec<&str> {
    const KEYWORDS: [&str; 7] = ["fn", "struct", "enum", "trait", "type", "mod", "const"];
    let mut names = Vec::new();
    let mut words =
        code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty());
    while let Some(word) = words.next() {
        if KEYWORDS.contains(&word) {
            names.extend(words.next());
        }
    }
    names
}

/// Splits a name into words, in lower case and singular: `freeExtents`, `FreeExtents` and
/// `free_extents` give the same words.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut previous_lower = false;
    for c in name.chars() {
        if c == '_' || (c.is_uppercase() && previous_lower) {
            words.push(String::new());
        }
        previous_lower = c.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| c != '_') {
            word.extend(c.to_lowercase());
        }
    }
    for word in &mut words {
        if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
            word.pop();
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "| noun | meaning | also called |\n|---|---|---|\n\
                        | **run** | sorted | file, heap |\n\n\
                        | noun | not |\n|---|---|\n\
                        | **run** | sstable, sorted table |\n";

    #[test]
    fn the_table_is_read() {
        let synonyms = parse(PAGE);
        assert_eq!(synonyms.len(), 2);
        assert_eq!(synonyms[1].words, ["sorted", "table"]);
        assert_eq!(synonyms[1].noun, "run");
    }

    #[test]
    fn declared_names_with_a_synonym_are_found_in_any_case() {
        let text = "struct SstableReader;\nfn open_sstables() {}\nconst SORTED_TABLE: u8 = 0;\n\
                    fn open_run() { let sstable = 1; }\n// fn sstable\n";
        let file = SourceFile { path: "crates/run/src/a.rs".into(), text: text.into() };
        let findings = check(&file, &parse(PAGE));
        assert_eq!(findings.len(), 3, "{findings:?}");
        assert!(findings[0].contains(":1: `SstableReader`: the noun is run"));
    }
}
