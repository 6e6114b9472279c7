//! Markdown as far as the checks of pages need it: links, blocks of code, and relative paths.

use std::ops::Range;
use std::path::{Component, Path, PathBuf};

/// A link `[label](target)` of a page.
pub(crate) struct Link<'a> {
    pub(crate) label: &'a str,
    pub(crate) target: &'a str,
    /// Where the link stands in the text, from `[` to `)`.
    pub(crate) place: Range<usize>,
}

/// Returns the links of a page. Code is not searched.
pub(crate) fn links_of(text: &str) -> Vec<Link<'_>> {
    let prose = without_code(text);
    let mut found = Vec::new();
    for (at, _) in prose.match_indices("](") {
        let start = prose[..at].rfind('[');
        let end = prose[at..].find(')').map(|length| at + length);
        if let (Some(start), Some(end)) = (start, end) {
            let (label, target) = (&text[start + 1..at], &text[at + 2..end]);
            found.push(Link { label, target, place: start..end + 1 });
        }
    }
    found
}

/// Returns the text with each byte of code replaced by an underscore. A code span ends at the end of
/// its paragraph at the latest.
fn without_code(text: &str) -> String {
    let (mut in_fence, mut in_span) = (false, false);
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        in_fence ^= is_fence;
        if in_fence || is_fence {
            out.extend(std::iter::repeat_n('_', line.len()));
            continue;
        }
        in_span &= !line.trim().is_empty();
        for c in line.chars() {
            in_span ^= c == '`';
            if in_span || c == '`' {
                out.extend(std::iter::repeat_n('_', c.len_utf8()));
            } else {
                out.push(c);
            }
        }
    }
    out
}

/// A block of code.
pub(crate) struct Fence<'a> {
    pub(crate) language: &'a str,
    pub(crate) text: &'a str,
    /// Where the text stands in the page.
    pub(crate) place: Range<usize>,
}

/// Returns the blocks of code of a page.
pub(crate) fn fences_of(page: &str) -> Vec<Fence<'_>> {
    let (mut found, mut open, mut at) = (Vec::new(), None, 0);
    for line in page.split_inclusive('\n') {
        if let Some(language) = line.trim().strip_prefix("```") {
            open = match open {
                None => Some((language, at + line.len())),
                Some((language, start)) => {
                    let place = start..at;
                    found.push(Fence { language, text: &page[place.clone()], place });
                    None
                }
            };
        }
        at += line.len();
    }
    found
}

/// Resolves `.` and `..` in a relative path.
pub(crate) fn normal(path: &Path) -> PathBuf {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_code_only() {
        let text =
            "[a](b.md) and `[c](d)`, `x\n[x](y)` z\n```\n[e](f)\n```\n[g](#h), [`i`\nj](k)\n";
        let links: Vec<(&str, &str)> =
            links_of(text).into_iter().map(|link| (link.label, link.target)).collect();
        assert_eq!(links, [("a", "b.md"), ("g", "#h"), ("`i`\nj", "k")]);
    }

    #[test]
    fn blocks_of_code_have_a_language_and_a_text() {
        let page = "a\n```sh\nmake x\n```\n- b\n  ```\n  c\n  ```\n";
        let found: Vec<(&str, &str)> =
            fences_of(page).into_iter().map(|fence| (fence.language, fence.text)).collect();
        assert_eq!(found, [("sh", "make x\n"), ("", "  c\n")]);
    }
}
