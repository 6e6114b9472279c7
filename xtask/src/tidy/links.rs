//! Checks the links in Markdown documents: the file must exist, and it must have the heading if the
//! link names one. The check does not try addresses on the network, so that its result depends on
//! the checkout alone.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::markdown::{Link, links_of, normal};
use crate::workspace::{SourceFile, markdown_files};

/// Finds the dead links of all documents.
pub(super) fn check() -> Result<Vec<String>> {
    let files = markdown_files()?;
    let root = crate::workspace::root();
    let mut findings = Vec::new();
    for file in &files {
        for Link { target, place, .. } in links_of(&file.text) {
            let line = file.text[..place.start].lines().count().max(1);
            let dead = check_link(root, &files, file, target);
            findings.extend(dead.map(|e| format!("{}:{line}: {e}", file.path)));
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
    let known = headings(&file.text).iter().any(|h| h == heading);
    (!known).then(|| format!("`{target}`: {} has no such heading", file.path))
}

/// Returns the anchors of a document's headings: in lower case, with hyphens for blanks, and
/// without other marks. A repeated heading has a number.
fn headings(text: &str) -> Vec<String> {
    let mut anchors = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        in_code ^= line.trim_start().starts_with("```");
        let Some(title) = line.strip_prefix('#').filter(|_| !in_code) else { continue };
        let title = title.trim_start_matches('#').trim();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let numbered = |n: usize| format!("{anchor}-{n}");
        let repeated = (1..).map(numbered).find(|it| !anchors.contains(it)).unwrap_or_default();
        anchors.push(if anchors.contains(&anchor) { repeated } else { anchor });
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_become_anchors() {
        let text = "# One, two\n## `make run`: it\n```\n# no\n```\n## One, two\n";
        assert_eq!(headings(text), ["one-two", "make-run-it", "one-two-1"]);
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
