//! Checks that every place in the code that ARCHITECTURE.md or a page of docs/design names exists.
//! `tree/get.rs: get` stands for the function `get` of `crates/tree/src/get.rs`, and
//! `handler/write.cc` for `mariadb/src/handler/write.cc`. A method is written with its type, as in
//! `wal/log.rs: Wal::append`. A method after a place in the same row of a table must be in the same
//! file.
//!
//! The check looks for a definition by its text; it does not parse the code.

use crate::Result;
use crate::workspace::{SourceFile, files_below, markdown_files, root};

/// Finds places that do not exist, with the page and line that names them.
pub(super) fn check(rust: &[SourceFile]) -> Result<Vec<String>> {
    let mut other = files_below(&root().join("mariadb/src"), "cc")?;
    for folder in ["mariadb/src", "crates"] {
        other.extend(files_below(&root().join(folder), "h")?);
    }
    let code: Vec<&SourceFile> = rust.iter().chain(&other).collect();
    let pages = markdown_files()?;
    let named = |page: &&SourceFile| {
        page.path == "ARCHITECTURE.md" || page.path.starts_with("docs/design/")
    };
    Ok(pages.iter().filter(named).flat_map(|page| missing(page, &code)).collect())
}

fn missing(page: &SourceFile, code: &[&SourceFile]) -> Vec<String> {
    let mut findings = Vec::new();
    for (i, line) in page.text.lines().enumerate() {
        let mut last = None;
        // Of a line split at backquotes, every second part is a code span.
        for span in line.split('`').skip(1).step_by(2) {
            let (path, name) = match span.split_once(": ") {
                Some((path, name)) => (path, Some(name)),
                None => (span, None),
            };
            let place = format!("{}:{}: `{span}`", page.path, i + 1);
            if is_path(path) {
                last = find(path, name, code);
                match (last, name) {
                    (None, _) => findings.push(format!("{place}: no such file")),
                    (Some(file), Some(name)) if !defines(file, name) => {
                        findings.push(format!("{place}: {} does not define it", file.path));
                    }
                    _ => {}
                }
            } else if let Some(file) = last.filter(|_| is_method(span) && line.starts_with('|'))
                && !defines(file, span)
            {
                findings.push(format!("{place}: {} does not define it", file.path));
            }
        }
    }
    findings
}

/// Returns whether a code span is the path of a source file, with its crate or folder. A name
/// alone, such as `format.rs`, stands for a file in any crate and is not checked.
fn is_path(span: &str) -> bool {
    let name = span.rsplit_once('.').is_some_and(|(_, end)| ["rs", "cc", "h"].contains(&end));
    name && span.contains('/') && span.chars().all(|c| c.is_alphanumeric() || "/_-.".contains(c))
}

fn is_method(span: &str) -> bool {
    span.split_once("::").is_some_and(|(of, name)| is_name(of) && is_name(name))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Returns the file of a place. A place without a name in the file, as in a list of tests, may give
/// only the end of the file's path.
fn find<'a>(path: &str, name: Option<&str>, code: &[&'a SourceFile]) -> Option<&'a SourceFile> {
    let in_crate = path.split_once('/').map(|(of, rest)| format!("crates/{of}/src/{rest}"));
    let in_folder = ["", "crates/", "mariadb/src/"].map(|folder| format!("{folder}{path}"));
    let end = format!("/{path}");
    let is_it = |file: &&&SourceFile| {
        let found = &file.path;
        in_folder.contains(found)
            || in_crate.as_ref() == Some(found)
            || (name.is_none() && found.ends_with(&end))
    };
    code.iter().find(is_it).copied()
}

/// Returns whether the file defines `name`, which is a function, a method with its type, a type, a
/// constant or a macro.
fn defines(file: &SourceFile, name: &str) -> bool {
    let text = file.text.as_str();
    let name = name.trim_end_matches('!');
    if !file.path.ends_with(".rs") {
        return match name.split_once("::") {
            Some((of, method)) => {
                text.contains(&format!("{name}("))
                    || (has(text, &["class", "struct"], of) && text.contains(&format!("{method}(")))
            }
            None => text.match_indices(name).any(|(at, _)| is_word(text, at, name)),
        };
    }
    match name.split_once("::") {
        Some((of, method)) => {
            let holds = |line: &str| line.contains("impl") || line.contains("trait ");
            let is_of = |line: &str| line.match_indices(of).any(|(at, _)| is_word(line, at, of));
            has(text, &["fn"], method) && text.lines().any(|line| holds(line) && is_of(line))
        }
        None => {
            let kinds =
                ["fn", "struct", "enum", "trait", "const", "static", "type", "macro_rules!"];
            has(text, &kinds, name)
        }
    }
}

/// Returns whether one of the keywords precedes `name`.
fn has(text: &str, keywords: &[&str], name: &str) -> bool {
    keywords.iter().any(|keyword| {
        let wanted = format!("{keyword} {name}");
        text.match_indices(&wanted).any(|(at, _)| is_word(text, at, &wanted))
    })
}

/// Returns whether the word at `at` is not a part of a longer name.
fn is_word(text: &str, at: usize, word: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let before = text.get(..at).and_then(|before| before.chars().next_back());
    let after = text.get(at + word.len()..).and_then(|after| after.chars().next());
    !before.is_some_and(part_of_name) && !after.is_some_and(part_of_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_not_there_is_found() {
        let file = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        let code = [
            file(
                "crates/tree/src/get.rs",
                "impl Tree {\n    pub fn get(&self) {}\n}\nfn walk() {}\n",
            ),
            file("mariadb/src/handler/write.cc", "int ha_frondb::write_row(const uchar *) {\n"),
        ];
        let code: Vec<&SourceFile> = code.iter().collect();
        let of = |text: &str| missing(&file("ARCHITECTURE.md", text), &code).len();
        assert_eq!(
            of("| `tree/get.rs: Tree::get`, `walk` | `handler/write.cc: ha_frondb::write_row`"),
            0
        );
        assert_eq!(
            of("`tree/get.rs: walk`, `crates/tree/src/get.rs`, `format.rs` of each crate"),
            0
        );
        assert_eq!(of("`tree/put.rs`, `tree/get.rs: wal`, `tree/get.rs: Wal::get`"), 3);
        assert_eq!(of("| `tree/get.rs`, `Tree::put` |"), 1);
        assert_eq!(of("`handler/write.cc: ha_frondb::update_row`"), 1);
        assert_eq!(of("`src/get.rs`"), 0, "the end of a path");
        assert_eq!(of("`src/get.rs: walk`"), 1, "but not of a place");
    }
}
