//! Checks docs/README.md, the contents of the documentation: every page stands in it once. It is
//! also the list from which `cargo xtask site` builds the site, so a page without a line there would
//! be on no site.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::markdown::{Link, links_of, normal};
use crate::workspace::{SourceFile, markdown_files, read, root};

pub(crate) const CONTENTS: &str = "docs/README.md";
/// Old decisions, which no page needs, and what npm and PyPI show.
const LEFT_OUT: [&str; 3] = ["docs/decisions/", "crates/node/", "crates/python/"];

/// Finds pages that are missing in the contents, or are there twice.
pub(super) fn check() -> Result<Vec<String>> {
    let (_, listed) = pages_of_contents()?;
    Ok(compare(&markdown_files()?, &listed))
}

fn compare(pages: &[SourceFile], listed: &[Listed]) -> Vec<String> {
    let is_left_out = |path: &str| LEFT_OUT.iter().any(|folder| path.starts_with(folder));
    let wanted = pages.iter().filter(|it| it.path != CONTENTS && !is_left_out(&it.path));
    let times = |page: &SourceFile| listed.iter().filter(|it| it.path == *page.path).count();
    let wrong = wanted.filter(|page| times(page) != 1);
    wrong.map(|page| format!("{}: is {} times in {CONTENTS}", page.path, times(page))).collect()
}

/// A line of the contents.
pub(crate) struct Listed {
    /// The path from the root.
    pub(crate) path: PathBuf,
    pub(crate) title: String,
}

/// Returns the contents with paths from the root, and its lines.
pub(crate) fn pages_of_contents() -> Result<(String, Vec<Listed>)> {
    Ok(with_paths(&read(&root().join(CONTENTS))?))
}

fn with_paths(contents: &str) -> (String, Vec<Listed>) {
    let folder = Path::new(CONTENTS).parent().unwrap_or(Path::new(""));
    let (mut out, mut at, mut pages) = (String::new(), 0, Vec::new());
    for Link { label, target, place } in links_of(contents) {
        let path = normal(&folder.join(target));
        out.push_str(&contents[at..place.start]);
        out.push_str(&format!("[{label}]({})", path.display()));
        at = place.end;
        pages.push(Listed { path, title: label.to_owned() });
    }
    out.push_str(&contents[at..]);
    (out, pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_missing_in_the_contents_are_found() {
        let (summary, listed) =
            with_paths("# C\n- [A](../a.md)\n  - [B](x/b.md)\n- [A](../a.md)\n");
        assert_eq!(summary, "# C\n- [A](a.md)\n  - [B](docs/x/b.md)\n- [A](a.md)\n");
        let page = |path: &str| SourceFile { path: path.into(), text: String::new() };
        let pages = ["a.md", "docs/README.md", "docs/c.md", "docs/decisions/d.md", "docs/x/b.md"];
        let found = compare(&pages.map(page), &listed);
        assert_eq!(
            found,
            ["a.md: is 2 times in docs/README.md", "docs/c.md: is 0 times in docs/README.md"]
        );
    }
}
