//! Cycles of modules: files of one crate, or of the plugin, that import each other in a cycle.
//!
//! A file in a cycle cannot be read, tested or moved without all the others. The compiler forbids
//! cycles of crates and allows cycles of modules, so this check builds the import graph of each
//! crate and fails when a cycle has more than three files. The folders of the plugin are layers, so
//! no two of them may include each other. `modules.toml` lists the larger cycles that are left;
//! their sizes may only shrink.
//!
//! ```text
//!   a.rs   use crate::b::B;            modules.toml
//!   b.rs   use crate::c;       --->    engine = [41]     at most one cycle, at most 41 files
//!   c.rs   crate::a::f()
//! ```
//!
//! | module | what it does |
//! |---|---|
//! | [`lexer`] | the tokens of a Rust file, without its comments and its tests |
//! | [`rust`] | the imports of a crate |
//! | [`cpp`] | the includes of the plugin |
//! | [`graph`] | cycles, and the edges that tie them |
//! | [`ratchet`] | the sizes found against those of modules.toml |

mod cpp;
mod graph;
mod lexer;
mod ratchet;
mod rust;

use self::graph::Graph;
use crate::Result;
use crate::workspace::{files_below, members, read_toml, root};

/// Every cycle that modules.toml does not allow, and every entry that is larger than its cycle.
pub(crate) fn check() -> Result<Vec<String>> {
    Ok(ratchet::check(&table()?, &graphs()?))
}

/// Prints the cycles of the named crates with the imports that tie them, and checks their sizes.
/// Without names it does this for all crates.
pub(crate) fn print(names: &[String]) -> Result<Vec<String>> {
    let mut table = table()?;
    let mut graphs = graphs()?;
    if let Some(unknown) = names.iter().find(|name| graphs.iter().all(|(known, _)| known != *name))
    {
        let known = "give the name of a folder, mariadb, or mariadb-folders";
        return Err(format!("no crate `{unknown}`; {known}"));
    }
    let is_asked = |name: &String| names.is_empty() || names.contains(name);
    table.retain(|name, _| is_asked(name));
    graphs.retain(|(name, _)| is_asked(name));
    for (name, graph) in &graphs {
        for cycle in graph.cycles() {
            println!("{}", graph.describe(name, &cycle));
        }
    }
    Ok(ratchet::check(&table, &graphs))
}

fn table() -> Result<ratchet::Allowed> {
    ratchet::parse(&read_toml(&root().join("modules.toml"))?)
}

/// The graphs of all crates by their folder's name, and the plugin's as `mariadb`.
fn graphs() -> Result<Vec<(String, Graph)>> {
    let mut graphs = Vec::new();
    for member in members()? {
        let source = member.path.join("src");
        graphs.push((member.folder, rust::graph(&source, &files_below(&source, "rs")?)));
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
    fn no_cycle_is_larger_than_modules_toml_allows() {
        let findings = super::check().unwrap();
        assert!(findings.is_empty(), "{}", findings.join("\n"));
    }
}
