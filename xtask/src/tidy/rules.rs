//! Checks that a test names every rule of docs/design/rules.md: "rule 7" or "rules 8 and 9" in a
//! comment of a file or script in `tests/`, of the simulator, or of a test module. The check finds
//! rules without any test; it does not prove that the test would fail if the rule were broken.

use std::collections::BTreeSet;

use crate::Result;
use crate::workspace::{SourceFile, members, read, root, scripts_of};

const PAGE: &str = "docs/design/rules.md";

/// Rule 26 reserves kinds of records that no code uses: there is nothing to test.
const UNTESTED: [u32; 1] = [26];

/// Finds rules that no test names, and rule numbers in tests that do not exist.
pub(super) fn check(files: &[SourceFile]) -> Result<Vec<String>> {
    let mut scripts = Vec::new();
    for member in members()? {
        scripts.extend(scripts_of(&member)?);
    }
    let rules = numbered(&read(&root().join(PAGE))?);
    Ok(compare(&rules, files.iter().chain(&scripts)))
}

fn compare<'a>(
    rules: &BTreeSet<u32>,
    files: impl IntoIterator<Item = &'a SourceFile>,
) -> Vec<String> {
    let mut findings = Vec::new();
    let mut named = BTreeSet::new();
    for file in files.into_iter().filter(|file| file.path.starts_with("crates/")) {
        for (number, line) in test_lines(file) {
            for rule in named_by(line) {
                if !rules.contains(&rule) {
                    findings.push(format!("{}:{number}: there is no rule {rule}", file.path));
                }
                named.insert(rule);
            }
        }
    }
    let missing = rules.iter().filter(|rule| !named.contains(rule) && !UNTESTED.contains(rule));
    findings.extend(missing.map(|rule| format!("{PAGE}: no test names rule {rule}")));
    findings
}

/// Returns the rule numbers of the page.
fn numbered(page: &str) -> BTreeSet<u32> {
    page.lines().filter_map(|line| line.split_once(". ")?.0.parse().ok()).collect()
}

/// Returns the lines of a file that belong to tests, with their numbers.
fn test_lines(file: &SourceFile) -> impl Iterator<Item = (usize, &str)> {
    let whole = file.path.contains("/tests/") || file.path.starts_with("crates/simulator/");
    let is_start = |line: &&str| line.trim_start().starts_with("#[cfg(") && line.contains("test");
    // The comment of a test module is in the lines before it.
    let comment = |line: &str| line.trim_start().starts_with("//");
    let lines: Vec<&str> = file.text.lines().collect();
    let module = lines.iter().position(is_start).map(|at| {
        lines[..at].iter().rposition(|line| !comment(line)).map_or(0, |before| before + 1)
    });
    let first = if whole { Some(0) } else { module };
    let numbered = file.text.lines().enumerate().map(|(i, line)| (i + 1, line));
    numbered.skip(first.unwrap_or(usize::MAX))
}

/// Returns the rules that a line's comment names: "rule 7", "rules 8 and 9", "rules 6 to 11".
fn named_by(line: &str) -> Vec<u32> {
    let in_script = || line.strip_prefix('#').filter(|rest| rest.starts_with(' '));
    let comment = line.split_once("//").map(|(_, comment)| comment).or_else(in_script);
    let Some(comment) = comment else { return Vec::new() };
    let words: Vec<&str> = comment.split_whitespace().collect();
    let number = |word: &str| {
        let digits = word.trim_matches(|c: char| !c.is_alphanumeric());
        digits.parse::<u32>().ok()
    };
    let mut rules = Vec::new();
    for (i, word) in words.iter().enumerate() {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        if word != "rule" && word != "rules" {
            continue;
        }
        let mut rest = words[i + 1..].iter().copied();
        let mut through = false;
        while let Some(word) = rest.next() {
            match number(word) {
                Some(last) if through => {
                    rules.extend(rules.last().map_or(last, |first| first + 1)..=last);
                }
                Some(rule) => rules.push(rule),
                None => break,
            }
            through = false;
            match rest.clone().next() {
                Some("to") => through = rest.next().is_some(),
                Some("and") => drop(rest.next()),
                _ => {}
            }
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_named_in_words() {
        assert_eq!(named_by("//! Rule 9: a torn tail"), [9]);
        assert_eq!(named_by("// holds rules 8 and 9, and (rule 13)."), [8, 9, 13]);
        assert_eq!(named_by("/// Rules 6 to 8."), [6, 7, 8]);
        assert_eq!(named_by("/// Rules 1, 2 and 5: all"), [1, 2, 5]);
        assert_eq!(named_by("# A script of rule 4."), [4]);
        assert!(named_by("let rule = 7; // a rule of thumb, 7 times").is_empty());
    }

    #[test]
    fn a_rule_without_a_test_and_a_test_without_a_rule_are_found() {
        let rules = numbered("1. **Views.** A\n2. **B.** C\n26. D\ntext 3. E\n");
        assert_eq!(rules, BTreeSet::from([1, 2, 26]));
        let file = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        let files = [
            file("crates/a/tests/a.rs", "//! Rule 1, rule 99.\n"),
            file("crates/a/src/a.rs", "//! Rule 2 is kept here.\n"),
        ];
        assert_eq!(
            compare(&rules, &files),
            [
                "crates/a/tests/a.rs:1: there is no rule 99",
                "docs/design/rules.md: no test names rule 2"
            ]
        );
        let in_module = file("crates/a/src/b.rs", "//! Head.\n#[cfg(test)]\n// Rule 2.\n");
        assert_eq!(compare(&rules, &[in_module]).len(), 1, "rule 1 only");
    }
}
