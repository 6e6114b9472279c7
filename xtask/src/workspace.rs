//! The checkout as data: its root, its crates, and their files.
//!
//! Files come from the file system, not from git, so that a check sees what the compiler sees.

use std::fs;
use std::path::{Path, PathBuf};

use toml::Table;

use crate::Result;

/// The checkout's root folder.
pub(crate) fn root() -> &'static Path {
    // This crate's folder is one below the root.
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Where cargo puts what it builds.
pub(crate) fn target_folder() -> PathBuf {
    // A relative folder is relative to where make was called, which is the root.
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    root().join(folder)
}

/// One crate of the workspace.
#[derive(Debug)]
pub(crate) struct Member {
    /// The name of its folder, which is its name in layers.toml.
    pub(crate) folder: String,
    /// The name of its package.
    pub(crate) package: String,
    /// The path of its folder.
    pub(crate) path: PathBuf,
    /// Its Cargo.toml.
    pub(crate) manifest: Table,
}

impl Member {
    /// Its Rust files, sorted.
    pub(crate) fn rust_files(&self) -> Result<Vec<SourceFile>> {
        rust_files_below(&self.path)
    }
}

/// A text file with its path relative to the root.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// Path relative to the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// All crates, sorted by folder: those in `crates/`, the plugin's converter, harness and benchmark,
/// and xtask.
pub(crate) fn members() -> Result<Vec<Member>> {
    let outer = ["xtask", "mariadb/convert", "mariadb/harness", "mariadb/sql-bench"];
    let mut paths: Vec<PathBuf> = outer.iter().map(|path| root().join(path)).collect();
    for entry in read_dir(&root().join("crates"))? {
        if entry.join("Cargo.toml").is_file() {
            paths.push(entry);
        }
    }
    let mut members = paths.into_iter().map(member).collect::<Result<Vec<_>>>()?;
    members.sort_by(|a, b| a.folder.cmp(&b.folder));
    Ok(members)
}

fn member(path: PathBuf) -> Result<Member> {
    let manifest = read_toml(&path.join("Cargo.toml"))?;
    let package = manifest
        .get("package")
        .and_then(|package| package.get("name")?.as_str())
        .ok_or_else(|| format!("{}: no package name", path.display()))?
        .to_owned();
    let folder = path.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(Member { folder: folder.unwrap_or_default(), package, path, manifest })
}

/// Reads a TOML file.
pub(crate) fn read_toml(path: &Path) -> Result<Table> {
    read(path)?.parse::<Table>().map_err(|e| format!("{}: {e}", path.display()))
}

/// Reads a text file.
pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
}

/// All Rust files below `folder`, sorted by path, without build output.
pub(crate) fn rust_files_below(folder: &Path) -> Result<Vec<SourceFile>> {
    files_below(folder, "rs")
}

/// The scripts of a crate's script tests, sorted by path.
pub(crate) fn scripts_of(member: &Member) -> Result<Vec<SourceFile>> {
    let folder = member.path.join("tests/testdata");
    if folder.is_dir() { files_below(&folder, "") } else { Ok(Vec::new()) }
}

/// All Markdown files of the checkout, sorted by path.
pub(crate) fn markdown_files() -> Result<Vec<SourceFile>> {
    files_below(root(), "md")
}

/// All files with this extension, or all files if it is empty.
pub(crate) fn files_below(folder: &Path, extension: &str) -> Result<Vec<SourceFile>> {
    let mut files = Vec::new();
    collect(folder, extension, &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn collect(folder: &Path, extension: &str, files: &mut Vec<SourceFile>) -> Result {
    for path in read_dir(folder)? {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        if path.is_dir() {
            // Build output, generated corpora and hidden folders are not source.
            let skipped = ["target", "corpus", "artifacts", "report", "var"];
            if !name.starts_with('.') && !skipped.contains(&name.as_str()) {
                collect(&path, extension, files)?;
            }
        } else if extension.is_empty() || path.extension().is_some_and(|e| e == extension) {
            let relative = path.strip_prefix(root()).unwrap_or(&path);
            let text = read(&path)?;
            files.push(SourceFile { path: relative.to_string_lossy().into_owned(), text });
        }
    }
    Ok(())
}

fn read_dir(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).map_err(|e| format!("cannot list {}: {e}", folder.display()))?;
    entries
        .map(|entry| entry.map(|e| e.path()).map_err(|e| format!("{}: {e}", folder.display())))
        .collect()
}
