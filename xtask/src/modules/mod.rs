//! Cycles of modules: files of one crate, or of the plugin, that import each other in a cycle.
//!
//! A file in a cycle cannot be read, tested or moved without all the others. The compiler forbids
//! cycles of crates and allows cycles of modules, so this check builds the import graph of each
//! crate and of the plugin, by files and by folders, and fails when there is a cycle.
//!
//! ```text
//!   a.rs   use crate::b::B;
//!   b.rs   use crate::c;       --->    a cycle of 3
//!   c.rs   crate::a::f()
//! ```
//!
//! | module | what it does |
//! |---|---|
//! | [`lexer`] | the tokens of a Rust file, without its comments and its tests |
//! | [`rust`] | the imports of a crate |
//! | [`cpp`] | the includes of the plugin |
//! | [`graph`] | cycles, and the edges whose removal breaks them |

mod cpp;
mod graph;
mod lexer;
mod rust;

use self::graph::Graph;
use crate::Result;
use crate::workspace::{files_below, members, root};

/// Every cycle, with its imports and those whose removal breaks it.
pub(crate) fn check() -> Result<Vec<String>> {
    let found = |(name, graph): &(String, Graph)| -> Vec<String> {
        graph.cycles().iter().map(|cycle| graph.describe(name, cycle)).collect()
    };
    Ok(graphs()?.iter().flat_map(found).collect())
}

/// The graphs of all crates by their folder's name, and the plugin's as `mariadb`.
fn graphs() -> Result<Vec<(String, Graph)>> {
    let mut graphs = Vec::new();
    for member in members()? {
        let source = member.path.join("src");
        graphs.push((member.folder, rust::graph(&source, &files_below(&source, "rs")?)?));
    }
    let plugin = root().join("mariadb/src");
    let mut files = files_below(&plugin, "h")?;
    files.extend(files_below(&plugin, "cc")?);
    let graph = cpp::graph(&plugin, &files);
    graphs.push(("mariadb-folders".to_owned(), graph.folders()));
    graphs.push(("mariadb".to_owned(), graph));
    Ok(graphs)
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_modules_import_each_other() {
        let findings = super::check().unwrap();
        assert!(findings.is_empty(), "{}", findings.join("\n"));
    }
}
