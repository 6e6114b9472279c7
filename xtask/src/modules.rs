//! Finds cycles of modules: files of one crate, or of the plugin, that import each other in a
//! cycle.
//!
//! A file in a cycle cannot be read, tested or moved without all other files of the cycle. The
//! compiler forbids cycles of crates but allows cycles of modules. So this check builds the import
//! graph of each crate and of the plugin, and fails if there is a cycle. It also fails if a file of
//! the plugin includes a file of a folder that `mariadb/src/layers.toml` lists above the includer's
//! folder.
//!
//! ```text
//!   a.rs   use crate::b::B;
//!   b.rs   use crate::c::C;    --->    a cycle of 3
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
use crate::workspace::{files_below, members, read_toml, root};

/// The name of the plugin's graph.
const PLUGIN: &str = "mariadb";

/// Returns every cycle, with its imports and the imports to cut, and every include of the plugin
/// from a lower folder to a higher one.
pub(crate) fn check() -> Result<Vec<String>> {
    let found = |(name, graph): &(String, Graph)| -> Vec<String> {
        graph.cycles().iter().map(|cycle| graph.describe(name, cycle)).collect()
    };
    let graphs = graphs()?;
    let mut findings: Vec<String> = graphs.iter().flat_map(found).collect();
    let layers = plugin_layers()?;
    for (_, plugin) in graphs.iter().filter(|(name, _)| name == PLUGIN) {
        let upward = plugin.upward(&layers);
        findings.extend(upward.iter().map(|it| format!("{it}, against mariadb/src/layers.toml")));
    }
    Ok(findings)
}

/// Returns the graphs of all crates under the names of their folders, and the graph of the plugin
/// under [`PLUGIN`].
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
    graphs.push((PLUGIN.to_owned(), graph));
    Ok(graphs)
}

/// Returns the folders of the plugin, the highest first.
fn plugin_layers() -> Result<Vec<String>> {
    let table = read_toml(&root().join("mariadb/src/layers.toml"))?;
    let folders = table.get("folders").and_then(toml::Value::as_array);
    let folders = folders.ok_or("mariadb/src/layers.toml: `folders` is missing")?;
    Ok(folders.iter().filter_map(|it| it.as_str().map(str::to_owned)).collect())
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_modules_import_each_other() {
        let findings = super::check().unwrap();
        assert!(findings.is_empty(), "{}", findings.join("\n"));
    }
}
