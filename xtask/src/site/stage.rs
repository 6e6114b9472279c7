//! Copies the pages of the book, and the files to which they link, into a folder for mdBook.
//!
//! A page keeps its path, so links between pages need no change. These links change:
//!
//! | link | becomes |
//! |---|---|
//! | `[name.md](name.md)` | the title of the page, by which the contents call it |
//! | to a source file, which browsers would download | a copy with the suffix `.txt`, which they show |
//! | to a folder, or the contents, which are not pages of the site | plain text |

use std::fs;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::markdown::{Link, links_of, normal};
use crate::tidy::{CONTENTS, Listed, pages_of_contents};
use crate::workspace::{read, root};

/// The files of docs/site, and where mdBook looks for them.
const SETTINGS: [(&str, &str); 3] =
    [("book.toml", "book.toml"), ("site.css", "site.css"), ("favicon.svg", "theme/favicon.svg")];
/// Files that browsers show or run.
const SHOWN: [&str; 2] = ["svg", "json"];

/// Writes the book into the folder `book`.
pub(super) fn stage(book: &Path) -> Result {
    let source = book.join("src");
    let (contents, pages) = pages_of_contents()?;
    write(&source.join("SUMMARY.md"), &contents)?;
    for Listed { path: page, .. } in &pages {
        let text = read(&root().join(page))?;
        let (text, files) = staged(page, &text, &pages, |path| root().join(path).is_dir());
        write(&source.join(page), &text)?;
        for (from, to) in files {
            copy(&root().join(from), &source.join(to))?;
        }
    }
    for (name, to) in SETTINGS {
        copy(&root().join("docs/site").join(name), &book.join(to))?;
    }
    Ok(())
}

/// Returns the text of a page for the site, and the files to copy, with their paths in the book.
fn staged(
    page: &Path,
    text: &str,
    pages: &[Listed],
    is_folder: impl Fn(&Path) -> bool,
) -> (String, Vec<(PathBuf, PathBuf)>) {
    let (mut out, mut at, mut files) = (String::new(), 0, Vec::new());
    for Link { label, target, place } in links_of(text) {
        if target.contains(':') || target.starts_with('#') {
            continue;
        }
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let path = normal(&page.parent().unwrap_or(Path::new("")).join(file));
        let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        out.push_str(&text[at..place.start]);
        at = place.end;
        if is_folder(&path) || path == Path::new(CONTENTS) {
            out.push_str(label);
        } else if extension == "md" {
            let titled = pages.iter().find(|page| label.ends_with(".md") && page.path == path);
            let label = titled.map_or(label, |page| page.title.as_str());
            // mdBook makes index.html of a README.md.
            let folder = file.strip_suffix("README.md");
            let file = folder.map_or(file.to_owned(), |folder| format!("{folder}index.html"));
            let anchor = if anchor.is_empty() { String::new() } else { format!("#{anchor}") };
            out.push_str(&format!("[{label}]({file}{anchor})"));
        } else if SHOWN.contains(&extension.as_str()) {
            files.push((path.clone(), path));
            out.push_str(&text[place]);
        } else {
            let shown = PathBuf::from(format!("{}.txt", path.display()));
            files.push((path, shown));
            out.push_str(&format!("[{label}]({file}.txt)"));
        }
    }
    out.push_str(&text[at..]);
    (out, files)
}

pub(super) fn failed(doing: &str, path: &Path, error: std::io::Error) -> String {
    format!("cannot {doing} {}: {error}", path.display())
}

fn write(path: &Path, text: &str) -> Result {
    create_folder_of(path)?;
    fs::write(path, text).map_err(|e| failed("write", path, e))
}

fn copy(from: &Path, to: &Path) -> Result {
    create_folder_of(to)?;
    fs::copy(from, to).map(drop).map_err(|e| failed("copy", from, e))
}

fn create_folder_of(path: &Path) -> Result {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|e| failed("create", folder, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_sources_and_folders_change() {
        let text = "[a](../b.md#c) [d](e.rs) [f](g) ![h](i.svg) [j](../README.md#k) [n.md](n.md)\n";
        let n = Listed { path: "docs/n.md".into(), title: "N".to_owned() };
        let page = Path::new("docs/page.md");
        let (text, files) = staged(page, text, &[n], |path| path == Path::new("docs/g"));
        assert_eq!(
            text,
            "[a](../b.md#c) [d](e.rs.txt) f ![h](i.svg) [j](../index.html#k) [N](n.md)\n"
        );
        let pair = |from: &str, to: &str| (PathBuf::from(from), PathBuf::from(to));
        assert_eq!(files, [pair("docs/e.rs", "docs/e.rs.txt"), pair("docs/i.svg", "docs/i.svg")]);
    }
}
