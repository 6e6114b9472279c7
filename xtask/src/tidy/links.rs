//! Checks the links in Markdown documents: the file must exist, and it must have the heading if the
//! link names one. The check does not try addresses on the network, so that its result depends on
//! the checkout alone.

use std::path::{Component, Path, PathBuf};

use crate::Result;
use crate::workspace::{SourceFile, markdown_files};

/// Finds the dead links of all documents.
pub(super) fn check() -> Result<Vec<String>> {
    let files = markdown_files()?;
    let root = crate::workspace::root();
    let mut findings = Vec::new();
    for file in &files {
        for (number, target) in links(&file.text) {
            let place = format!("{}:{number}", file.path);
            findings
                .extend(check_link(root, &files, file, &target).map(|e| format!("{place}: {e}")));
        }
    }
    Ok(findings)
}

fn check_link(
    root: &Path,
    files: &[SourceFile],
    from: &SourceFile,
    target: &str,
) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let folder = Path::new(&from.path).parent().unwrap_or(Path::new(""));
    let path = if path.is_empty() { PathBuf::from(&from.path) } else { normal(&folder.join(path)) };
    if !root.join(&path).exists() {
        return Some(format!("no such file: `{target}`"));
    }
    if heading.is_empty() {
        return None;
    }
    let file = files.iter().find(|file| Path::new(&file.path) == path)?;
    let known = headings(&file.text).any(|h| h == heading);
    (!known).then(|| format!("`{target}`: {} has no such heading", file.path))
}

/// Resolves `.` and `..` in a relative path.
fn normal(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                result.pop();
            }
            Component::CurDir => {}
            other => result.push(other),
        }
    }
    result
}

/// Returns the lines outside code fences, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().enumerate().filter_map(move |(i, line)| {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            return None;
        }
        (!in_code).then_some((i + 1, line))
    })
}

/// Returns the targets of `[text](target)`, with their line numbers. Code spans are not links.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let spoken: String = line.split('`').step_by(2).collect::<Vec<_>>().join("_");
        let mut rest = spoken.as_str();
        while let Some(at) = rest.find("](") {
            rest = &rest[at + 2..];
            if let Some(end) = rest.find(')') {
                found.push((number, rest[..end].to_owned()));
            }
        }
    }
    found
}

/// Returns the anchors of a document's headings: in lower case, with hyphens for blanks, and
/// without other marks.
fn headings(text: &str) -> impl Iterator<Item = String> {
    prose(text).filter_map(|(_, line)| {
        let title = line.strip_prefix('#')?.trim_start_matches('#').trim();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        Some(kept.collect::<String>().to_lowercase().replace(' ', "-"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_code_only() {
        let text = "[a](b.md) and `[c](d)`\n```\n[e](f)\n```\n[g](#h), [i](j)\n";
        let targets: Vec<String> = links(text).into_iter().map(|(_, target)| target).collect();
        assert_eq!(targets, ["b.md", "#h", "j"]);
    }

    #[test]
    fn headings_become_anchors() {
        let text = "# One, two\n## `make run`: it\n```\n# no\n```\n";
        assert_eq!(headings(text).collect::<Vec<_>>(), ["one-two", "make-run-it"]);
    }

    #[test]
    fn a_dead_file_and_a_dead_heading_are_found() {
        let root = crate::workspace::root();
        let from = SourceFile { path: "README.md".into(), text: "# Here\n".into() };
        let files = [SourceFile { path: "README.md".into(), text: "# Here\n".into() }];
        let dead = |target: &str| check_link(root, &files, &from, target).is_some();
        assert!(dead("no-such-file.md"));
        assert!(dead("#there"));
        assert!(!dead("#here"));
        assert!(!dead("xtask/../Cargo.toml"));
        assert!(!dead("https://example.invalid/x"));
    }
}
