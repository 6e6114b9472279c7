//! The include graph of the plugin. A header and the source file of the same name are one unit.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::graph::Graph;
use crate::workspace::{SourceFile, root};

/// Builds the graph of the files below `source`. An include in quotes is relative to the includer's
/// folder or to `source`. Includes of other files, which are not part of the plugin, are ignored.
pub(super) fn graph(source: &Path, files: &[SourceFile]) -> Graph {
    let units: BTreeSet<String> = files.iter().map(|file| unit_of(source, file)).collect();
    let mut graph = Graph::default();
    for file in files {
        let unit = unit_of(source, file);
        let folder = Path::new(&unit).parent().unwrap_or(Path::new(""));
        for include in file.text.lines().filter_map(included) {
            let places = [folder.join(include), PathBuf::from(include)];
            let mut named = places.iter().map(|place| name_of(place));
            if let Some(to) = named.find(|name| units.contains(name)) {
                graph.add(&unit, &to);
            }
        }
    }
    graph
}

fn unit_of(source: &Path, file: &SourceFile) -> String {
    let path = root().join(&file.path);
    name_of(path.strip_prefix(source).unwrap_or(&path))
}

/// Returns a path without its extension, with each `..` resolved.
fn name_of(path: &Path) -> String {
    let mut name = PathBuf::new();
    for part in path.with_extension("").iter() {
        if part == ".." {
            name.pop();
        } else {
            name.push(part);
        }
    }
    name.to_string_lossy().into_owned()
}

fn included(line: &str) -> Option<&str> {
    let name = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?;
    name.trim_start().strip_prefix('"')?.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_sources_of_a_name_are_one_and_includes_are_edges() {
        let file = |path: &str, text: &str| SourceFile {
            path: format!("m/{path}"),
            text: text.to_owned(),
        };
        let files = [
            file("a/b.h", "#include \"c.h\"\n#include <d.h>\n"),
            file("a/b.cc", "#include \"b.h\"\n  # include \"d.h\" // why\n#include \"my_sys.h\"\n"),
            file("a/c.h", "#include \"../d.h\"\n// #include \"b.h\"\n"),
            file("d.h", "#include \"a/b.h\"\n"),
        ];
        let found = graph(&root().join("m"), &files).edges();
        assert_eq!(found, ["a/b>a/c", "a/b>d", "a/c>d", "d>a/b"]);
    }
}
