//! The examples in Rust of all pages: they are copied from the comments of the library, where they
//! are compiled and run as tests. The lines that rustdoc hides are left out.

use crate::Result;
use crate::markdown::{Fence, fences_of};
use crate::workspace::{read, root};

/// Pages with the sources of their blocks of Rust: a file, and the number of the example in it.
const PAGES: [(&str, &[(&str, usize)]); 6] = [
    ("README.md", &[("crates/frondb/src/lib.rs", 0)]),
    (
        "docs/rust.md",
        &[
            ("crates/frondb/src/tree.rs", 4),
            ("crates/frondb/src/transaction.rs", 0),
            ("crates/frondb/src/tree.rs", 3),
            ("crates/frondb/src/async_calls.rs", 0),
            ("crates/frondb/src/async_calls.rs", 1),
        ],
    ),
    ("docs/guides/secondary-indexes.md", &[("crates/core/src/tuple.rs", 0)]),
    (
        "docs/guides/deletes.md",
        &[("crates/frondb/src/lib.rs", 2), ("crates/frondb/src/transaction.rs", 2)],
    ),
    (
        "docs/guides/serde.md",
        &[
            ("crates/frondb/src/serde_examples.rs", 0),
            ("crates/frondb/src/serde_examples.rs", 1),
            ("crates/frondb/src/serde_examples.rs", 2),
            ("crates/frondb/src/serde_examples.rs", 3),
        ],
    ),
    ("docs/guides/bulk-load.md", &[("crates/frondb/src/bulk.rs", 0)]),
];

/// Returns path and text of each page with its examples.
pub(super) fn pages() -> Result<Vec<(&'static str, String)>> {
    let source = |path: &str| read(&root().join(path));
    let mut pages = Vec::new();
    for (page, sources) in PAGES {
        let mut examples = Vec::new();
        for (file, number) in sources {
            let found = examples_of(&source(file)?).into_iter().nth(*number);
            examples.push(found.ok_or_else(|| format!("{file} has no example {number}"))?);
        }
        let text = with_examples(&source(page)?, &examples);
        pages.push((page, text.map_err(|e| format!("{page}: {e}"))?));
    }
    Ok(pages)
}

/// Whether the Rust on a page comes from tested examples.
pub(crate) fn has_examples(page: &str) -> bool {
    PAGES.iter().any(|(path, _)| *path == page)
}

/// Returns the examples in the comments of a source file, without the lines that rustdoc hides.
fn examples_of(source: &str) -> Vec<String> {
    let comments = source
        .lines()
        .map(str::trim_start)
        .filter_map(|line| line.strip_prefix("//!").or_else(|| line.strip_prefix("///")));
    let comments: String =
        comments.flat_map(|line| [line.strip_prefix(' ').unwrap_or(line), "\n"]).collect();
    let is_example = |fence: &Fence| fence.language.is_empty();
    let visible = |fence: Fence| {
        let lines = fence.text.lines().filter(|line| *line != "#" && !line.starts_with("# "));
        let lines: Vec<&str> = lines.collect();
        format!("{}\n", lines.join("\n").trim_matches('\n'))
    };
    fences_of(&comments).into_iter().filter(is_example).map(visible).collect()
}

/// Returns `page` with its blocks of Rust replaced by the examples, one after the other.
fn with_examples(page: &str, examples: &[String]) -> Result<String> {
    let blocks: Vec<Fence> =
        fences_of(page).into_iter().filter(|fence| fence.language == "rust").collect();
    if blocks.len() != examples.len() {
        let count = blocks.len();
        return Err(format!("has {count} blocks of Rust, and {} examples", examples.len()));
    }
    let (mut out, mut at) = (String::new(), 0);
    for (block, example) in blocks.into_iter().zip(examples) {
        out.push_str(&page[at..block.place.start]);
        out.push_str(example);
        at = block.place.end;
    }
    out.push_str(&page[at..]);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_are_the_librarys_without_hidden_lines() {
        let source = "//! Head.\n//!\n//! ```\n//! use x;\n//!\n//! # fn main() {\n//! y()\n//! # }\n//! ```\n\
                      //! ```text\n//! x\n//! ```\nuse z;\n    /// ```\n    /// #[z]\n    /// ```\n    fn z() {}\n";
        let examples = examples_of(source);
        assert_eq!(examples, ["use x;\n\ny()\n", "#[z]\n"]);
        let page = "Look:\n```rust\nold\n```\nThat was it.\n```rust\n```\n";
        let expected = "Look:\n```rust\nuse x;\n\ny()\n```\nThat was it.\n```rust\n#[z]\n```\n";
        assert_eq!(with_examples(page, &examples), Ok(expected.to_owned()));
        assert!(with_examples(page, &examples[1..]).is_err());
    }
}
