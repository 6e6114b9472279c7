//! Checks one Rust file: its head, length and characters, marks of unfinished work, and the amount
//! of code in files that should only list modules.

use crate::workspace::SourceFile;

/// Maximum number of lines of a file. Aim at 200: a file has one role.
const LINES_MAX: usize = 1000;

/// Maximum number of lines of a function body in lib.rs or mod.rs, which hold a head, modules and
/// re-exports.
const ROOT_BODY_LINES_MAX: usize = 10;

/// Marks of unfinished work. They are written in halves, or this check would find its own file.
const UNFINISHED: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Returns all findings of this module for one file.
pub(super) fn check(file: &SourceFile) -> Vec<String> {
    let path = &file.path;
    let mut findings = Vec::new();
    if !file.text.starts_with("//!") && !file.text.starts_with("#!") {
        findings.push(format!("{path}:1: does not begin with a `//!` head"));
    }
    let lines = file.text.lines().count();
    if lines > LINES_MAX {
        findings.push(format!("{path}: {lines} lines, more than {LINES_MAX}: split it by role"));
    }
    if !file.text.ends_with('\n') || file.text.ends_with("\n\n") {
        findings.push(format!("{path}: must end with exactly one line break"));
    }
    for (number, line) in file.text.lines().enumerate() {
        findings.extend(check_line(line).map(|what| format!("{path}:{}: {what}", number + 1)));
    }
    findings.extend(check_root_bodies(file));
    findings
}

fn check_line(line: &str) -> Option<String> {
    if !line.is_ascii() {
        return Some("not ASCII: write it as an escape or in words".into());
    }
    if line.contains('\t') {
        return Some("a tab".into());
    }
    if line.ends_with(' ') {
        return Some("blanks at the end".into());
    }
    let word = UNFINISHED.iter().find(|word| has_word(line, word))?;
    Some(format!("{word}: finish it, or write an issue"))
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part == word)
}

/// Finds long function bodies in lib.rs and mod.rs, outside tests.
fn check_root_bodies(file: &SourceFile) -> Vec<String> {
    if !file.path.ends_with("/lib.rs") && !file.path.ends_with("/mod.rs") {
        return Vec::new();
    }
    if file.path.contains("/tests/") || file.path.starts_with("xtask/") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut body: Option<(usize, String)> = None;
    for (number, line) in shipped_lines(&file.text) {
        let indent = &line[..line.len() - line.trim_start().len()];
        match &body {
            None if has_word(code_of_line(line), "fn") && line.ends_with('{') => {
                body = Some((number, format!("{indent}}}")));
            }
            Some((start, end)) if line.starts_with(end.as_str()) => {
                if number - start > ROOT_BODY_LINES_MAX + 1 {
                    findings.push(format!(
                        "{}:{start}: a function of {} lines; lib.rs and mod.rs only list modules",
                        file.path,
                        number - start + 1
                    ));
                }
                body = None;
            }
            _ => {}
        }
    }
    findings
}

/// Returns the lines that ship, with their numbers: the lines before the file's test module.
pub(super) fn shipped_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_test = |line: &str| {
        let line = line.trim();
        line.starts_with("#[cfg(") && has_word(line, "test") && !line.contains("not(test)")
    };
    // A test attribute on a single item ends the search too, since such items are last in a file.
    text.lines().enumerate().map(|(i, line)| (i + 1, line)).take_while(move |(_, l)| !is_test(l))
}

/// Returns a line without its comment. Recognises string literals, except those that span lines.
pub(crate) fn code_of_line(line: &str) -> &str {
    let bytes = line.as_bytes();
    let mut in_string = false;
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b'\\' if in_string => i += 1,
            b'"' if !(i > 0 && bytes[i - 1] == b'\'') => in_string = !in_string,
            b'/' if !in_string && bytes.get(i + 1) == Some(&b'/') => return &line[..i],
            _ => {}
        }
        i += 1;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        check(&SourceFile { path: path.to_owned(), text: text.to_owned() })
    }

    #[test]
    fn a_plain_file_passes() {
        assert!(findings("a.rs", "//! Head.\n\nfn f() {}\n").is_empty());
    }

    #[test]
    fn each_rule_finds_its_breach() {
        let long = format!("//! Head.\n{}", "\n// x".repeat(1000));
        let unfinished = format!("//! Head.\n// {}: later\n", UNFINISHED[1]);
        for (text, expected) in [
            ("fn f() {}\n", "not begin with a `//!` head"),
            (long.as_str(), "split it by role"),
            ("//! Head.", "exactly one line break"),
            ("//! Head.\n// \u{3b5}\n", "not ASCII"),
            ("//! Head.\n\tfn f() {}\n", "a tab"),
            ("//! Head. \n", "blanks at the end"),
            (unfinished.as_str(), "finish it"),
        ] {
            let found = findings("a.rs", text);
            assert!(found.iter().any(|f| f.contains(expected)), "{expected}: {found:?}");
        }
    }

    #[test]
    fn long_bodies_are_found_in_root_files_only() {
        let text = format!("//! Head.\n\nfn f() {{\n{}}}\n", "    g();\n".repeat(11));
        assert_eq!(findings("crates/a/src/lib.rs", &text).len(), 1);
        assert!(findings("crates/a/src/a.rs", &text).is_empty());
        let in_tests = text.replace("fn f", "#[cfg(test)]\nfn f");
        assert!(findings("crates/a/src/lib.rs", &in_tests).is_empty());
    }

    #[test]
    fn comments_are_cut_and_strings_are_not() {
        assert_eq!(code_of_line("a(); // b"), "a(); ");
        assert_eq!(code_of_line(r#"a("//"); // b"#), r#"a("//"); "#);
        assert_eq!(code_of_line(r#"a('"'); // b"#), r#"a('"'); "#);
        assert_eq!(code_of_line(r#"a("\"//"); // b"#), r#"a("\"//"); "#);
    }
}
