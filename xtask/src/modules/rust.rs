//! The import graph of a Rust crate, read from its tokens.
//!
//! An edge goes from the file that names an item to the file that declares the item. The edge of a
//! re-exported name goes to its declaration, so a `mod.rs` that only lists and re-exports its
//! modules is in no cycle. A `mod.rs` that declares items for its own modules can be in one. Method
//! calls make no edges: the file that calls a method usually names the type as well.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::graph::Graph;
use super::lexer::{Token, shipped, tokens};
use crate::Result;
use crate::workspace::{SourceFile, root};

/// A path in the crate, without `crate`: modules, and perhaps an item.
type Names = Vec<String>;

/// Maximum number of re-exports that are followed for one name, because re-exports can form a
/// cycle.
const HOPS_MAX: usize = 8;

/// Builds the graph of the files below `source`, the `src` folder of a crate.
///
/// # Errors
/// A file that is not Rust.
pub(super) fn graph(source: &Path, files: &[SourceFile]) -> Result<Graph> {
    let has_library = files.iter().any(|file| unit_of(source, file) == "lib");
    let mut modules = Modules::default();
    let mut read = Vec::new();
    for file in files {
        let unit = unit_of(source, file);
        // In a package with a library, `main` uses the library as an external crate.
        if is_for_tests(&unit) || (has_library && unit == "main") {
            continue;
        }
        let tokens = tokens(&file.text).map_err(|e| format!("{}: {e}", file.path))?;
        let module = module_of(&unit);
        modules.units.insert(module.clone(), unit);
        read.push((module, tokens));
    }
    let known: BTreeSet<Names> = modules.units.keys().cloned().collect();
    let files: Vec<File> = read
        .into_iter()
        .map(|(module, tokens)| File::read(module, &shipped(&tokens), &known))
        .collect();
    for file in &files {
        modules.imports.insert(file.module.clone(), file.imports.clone());
    }
    let mut graph = Graph::default();
    for file in &files {
        for path in &file.paths {
            graph.add(modules.unit(&file.module), modules.unit(&modules.declaring(path, HOPS_MAX)));
        }
    }
    Ok(graph)
}

/// Returns a file's path below `src` without its extension; for a `mod.rs`, the path of its folder.
fn unit_of(source: &Path, file: &SourceFile) -> String {
    let path = root().join(&file.path);
    let path = path.strip_prefix(source).unwrap_or(&path).with_extension("");
    let unit = path.to_string_lossy();
    unit.strip_suffix("/mod").unwrap_or(&unit).to_owned()
}

fn is_for_tests(unit: &str) -> bool {
    unit.rsplit('/').next().is_some_and(|name| name == "tests" || name.ends_with("_tests"))
}

fn module_of(unit: &str) -> Names {
    match unit {
        "lib" | "main" => Names::new(),
        unit => unit.split('/').map(str::to_owned).collect(),
    }
}

/// The modules of a crate that have their own files.
#[derive(Default)]
struct Modules {
    units: BTreeMap<Names, String>,
    /// By module: the names that its `use` items import, with their paths.
    imports: BTreeMap<Names, BTreeMap<String, Names>>,
}

impl Modules {
    fn unit(&self, module: &Names) -> &str {
        self.units.get(module).map_or("", String::as_str)
    }

    /// Returns the module that declares the item of a path.
    fn declaring(&self, path: &[String], hops: usize) -> Names {
        let known = (0..=path.len()).rev().find(|n| self.units.contains_key(&path[..*n]));
        let (module, rest) = path.split_at(known.unwrap_or(0));
        let imported = rest.first().and_then(|name| self.imports.get(module)?.get(name));
        match imported {
            Some(further) if hops > 0 => {
                let further: Names = further.iter().chain(&rest[1..]).cloned().collect();
                self.declaring(&further, hops - 1)
            }
            _ => module.to_vec(),
        }
    }
}

/// The names of its own crate that a file uses.
struct File {
    module: Names,
    imports: BTreeMap<String, Names>,
    /// The paths in expressions and types, and the items that private `use` items import. An
    /// imported module counts where a path uses it. A re-export counts in the files that import it.
    paths: Vec<Names>,
}

impl File {
    fn read(module: Names, tokens: &[Token<'_>], known: &BTreeSet<Names>) -> Self {
        let mut file = Self { module, imports: BTreeMap::new(), paths: Vec::new() };
        let mut inline = Inline::default();
        let mut bare = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            inline.step(&tokens[at..]);
            let here: Names = file.module.iter().chain(inline.names()).cloned().collect();
            if tokens[at] == "use" && tokens.get(at + 1) != Some(&"<") {
                let is_public = at > 0 && matches!(tokens[at - 1], "pub" | ")");
                let tree = &tokens[at + 1..];
                let end = tree.iter().position(|token| *token == ";").unwrap_or(tree.len());
                for (path, name) in leaves(&tree[..end]) {
                    file.import(&here, path, name, is_public, known);
                }
                at += end + 1;
            } else {
                let path = path_at(&tokens[at..]);
                at += (path.len() * 2).max(2) - 1;
                if path.len() > 1 {
                    bare.push((here, path));
                }
            }
        }
        // Resolve these paths after all imports are known, because a name may appear above the
        // `use` that imports it.
        for (here, path) in bare {
            let path = file.absolute(&here, &path, known);
            file.paths.extend(path);
        }
        file
    }

    fn import(
        &mut self,
        here: &Names,
        path: Vec<Token<'_>>,
        name: &str,
        is_public: bool,
        known: &BTreeSet<Names>,
    ) {
        let Some(path) = self.absolute(here, &path, known) else { return };
        if !is_public && !known.contains(&path) && name != "*" {
            self.paths.push(path.clone());
        }
        if name == "*" {
            self.paths.extend((!is_public).then_some(path));
        } else if *here == self.module {
            self.imports.insert(name.to_owned(), path);
        }
    }

    /// Resolves a path to a path from the crate's root; none for a path into another crate.
    fn absolute(&self, here: &Names, path: &[Token<'_>], known: &BTreeSet<Names>) -> Option<Names> {
        let mut start = here.clone();
        let mut rest = path;
        match *path.first()? {
            "crate" => {
                start.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {
                while let ["super", behind @ ..] = rest {
                    start.pop()?;
                    rest = behind;
                }
            }
            first => {
                let child: Names = start.iter().cloned().chain([first.to_owned()]).collect();
                if !known.contains(&child) {
                    start = self.imports.get(first)?.clone();
                    rest = &path[1..];
                }
            }
        }
        start.extend(rest.iter().map(|name| (*name).to_owned()));
        Some(start)
    }
}

/// The modules inside the file, as `mod name { ... }`, that contain the current token.
#[derive(Default)]
struct Inline {
    depth: usize,
    open: Vec<(usize, String)>,
}

impl Inline {
    fn step(&mut self, tokens: &[Token<'_>]) {
        match tokens {
            ["mod", name, "{", ..] => self.open.push((self.depth, (*name).to_owned())),
            ["{", ..] => self.depth += 1,
            ["}", ..] => {
                self.depth = self.depth.saturating_sub(1);
                self.open.retain(|(depth, _)| *depth < self.depth);
            }
            _ => {}
        }
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        self.open.iter().map(|(_, name)| name)
    }
}

/// Returns the path with which the tokens begin; empty if they begin with no name.
fn path_at<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut path = Vec::new();
    let mut rest = tokens;
    while let [name, behind @ ..] = rest {
        if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            break;
        }
        path.push(*name);
        let ["::", further @ ..] = behind else { break };
        rest = further;
    }
    path
}

/// Returns the paths of a `use` tree, each with the name that it brings into scope; `*` for a glob.
fn leaves<'a>(tree: &[Token<'a>]) -> Vec<(Vec<Token<'a>>, Token<'a>)> {
    let mut found = Vec::new();
    read_tree(&mut tree.iter().copied(), &[], &mut found);
    found
}

/// Reads the branches of a `use` tree up to the closing brace, and puts `prefix` before each path.
fn read_tree<'a>(
    tokens: &mut dyn Iterator<Item = Token<'a>>,
    prefix: &[Token<'a>],
    found: &mut Vec<(Vec<Token<'a>>, Token<'a>)>,
) {
    let (mut path, mut name) = (prefix.to_vec(), "");
    loop {
        let token = tokens.next();
        match token {
            Some("{") => {
                read_tree(tokens, &path, found);
                // The names were in the braces.
                name = "";
            }
            Some("::") => {}
            Some("as") => name = tokens.next().unwrap_or_default(),
            Some("*") => name = "*",
            // `a::{self}` is `a`.
            Some("self") if !path.is_empty() => name = path[path.len() - 1],
            Some("," | "}") | None => {
                let ended = std::mem::replace(&mut path, prefix.to_vec());
                if !name.is_empty() {
                    found.push((ended, name));
                }
                name = "";
                if token != Some(",") {
                    return;
                }
            }
            Some(segment) => {
                path.push(segment);
                name = segment;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the edges of a crate, given the paths and texts of its files.
    fn edges(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<SourceFile> = files
            .iter()
            .map(|(path, text)| SourceFile { path: format!("k/{path}"), text: (*text).to_owned() })
            .collect();
        graph(&root().join("k"), &files).unwrap().edges()
    }

    #[test]
    fn imports_and_paths_in_the_code_are_edges() {
        let a = "use crate::b::{self, c::{C, D as E}}; fn f() { b::g(); crate::d::h(); }";
        let found = edges(&[
            ("lib.rs", "mod a; mod b; mod d;"),
            ("a.rs", a),
            ("b/mod.rs", "mod c; fn g() { c::C; }"),
            ("b/c.rs", "use super::super::d::X; fn f() { std::mem::take() }"),
            ("d.rs", "use frondb_core::a::Y;"),
        ]);
        assert_eq!(found, ["a>b", "a>b/c", "a>d", "b>b/c", "b/c>d"]);
    }

    #[test]
    fn a_reexport_is_followed_and_adds_no_edge() {
        let found = edges(&[
            ("lib.rs", "mod a; mod b; pub use a::A; pub(crate) use b::*;"),
            ("a.rs", "use crate::b::Far; fn f() { crate::Root }"),
            ("b/mod.rs", "mod c; pub use c::Near as Far;"),
            ("b/c.rs", "use crate::A;"),
        ]);
        assert_eq!(found, ["a>b/c", "a>lib", "b/c>a"]);
    }

    #[test]
    fn tests_are_left_out_and_modules_in_a_file_belong_to_it() {
        let a = "mod inner { use super::super::b::X; fn f() { self::g() } }\n\
                 #[cfg(test)] mod tests { use crate::c::X; }";
        let found = edges(&[
            ("main.rs", "mod a; mod b; mod c;"),
            ("a.rs", a),
            ("a_tests.rs", "use crate::c::X;"),
            ("b.rs", "use crate::a::inner::Y;"),
            ("c.rs", ""),
        ]);
        assert_eq!(found, ["a>b", "b>a"]);
    }
}
