//! The checkout as data: its root, its crates, and their files.
//!
//! Files come from the file system, not from git, so that a check sees what the compiler sees.

use std::fs;
use std::path::{Path, PathBuf};

use toml::Table;

use crate::Result;

/// Returns the checkout's root folder.
pub(crate) fn root() -> &'static Path {
    // This crate's folder is one below the root.
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Returns the folder of cargo's build output.
pub(crate) fn target_folder() -> PathBuf {
    // A relative CARGO_TARGET_DIR is relative to the folder in which make was called: the root.
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    root().join(folder)
}

/// One crate of the workspace.
#[derive(Debug)]
pub(crate) struct Member {
    /// The name of the crate's folder and of its entry in layers.toml.
    pub(crate) folder: String,
    /// The name of the package.
    pub(crate) package: String,
    /// The path of the crate's folder.
    pub(crate) path: PathBuf,
    /// The parsed Cargo.toml.
    pub(crate) manifest: Table,
}

impl Member {
    /// Returns the crate's Rust files, sorted by path.
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

/// Returns all crates, sorted by folder: the crates in `crates/`, the plugin's converter, harness
/// and benchmark, and xtask.
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

pub(crate) fn read_toml(path: &Path) -> Result<Table> {
    read(path)?.parse::<Table>().map_err(|e| format!("{}: {e}", path.display()))
}

/// Reads a text file.
pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
}

/// Returns all Rust files below `folder`, sorted by path, without build output.
pub(crate) fn rust_files_below(folder: &Path) -> Result<Vec<SourceFile>> {
    files_below(folder, "rs")
}

/// Returns the scripts of a crate's script tests, sorted by path.
pub(crate) fn scripts_of(member: &Member) -> Result<Vec<SourceFile>> {
    let folder = member.path.join("tests/testdata");
    if folder.is_dir() { files_below(&folder, "") } else { Ok(Vec::new()) }
}

/// Returns all Markdown files of the checkout, sorted by path.
pub(crate) fn markdown_files() -> Result<Vec<SourceFile>> {
    files_below(root(), "md")
}

/// Returns all files with this extension, or all files if it is empty, sorted by path.
pub(crate) fn files_below(folder: &Path, extension: &str) -> Result<Vec<SourceFile>> {
    let mut files = Vec::new();
    collect(folder, extension, &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn collect(folder: &Path, extension: &str, files: &mut Vec<SourceFile>) -> Result {
    for path in read_dir(folder)? {
        let relative = path.strip_prefix(root()).unwrap_or(&path);
        if path.is_dir() {
            if is_source(relative) {
                collect(&path, extension, files)?;
            }
        } else if extension.is_empty() || path.extension().is_some_and(|e| e == extension) {
            let text = read(&path)?;
            files.push(SourceFile { path: relative.to_string_lossy().into_owned(), text });
        }
    }
    Ok(())
}

/// Folders that commands write below the root, as in .gitignore: build output, data and reports of
/// benchmarks, inputs of fuzzers.
const WRITTEN: [&str; 6] =
    ["target", "var", "report", "fuzz/target", "fuzz/corpus", "fuzz/artifacts"];

/// Returns whether a folder has source: it is neither hidden nor in [`WRITTEN`]. The path is
/// relative to the root.
fn is_source(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    !name.starts_with('.') && !WRITTEN.iter().any(|written| folder == Path::new(written))
}

fn read_dir(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).map_err(|e| format!("cannot list {}: {e}", folder.display()))?;
    entries
        .map(|entry| entry.map(|e| e.path()).map_err(|e| format!("{}: {e}", folder.display())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_that_commands_write_are_left_out() {
        let kept = |folder: &str| is_source(Path::new(folder));
        assert!(kept("xtask/src/report") && kept("crates/bench/src/report"));
        assert!(!kept("report") && !kept("var") && !kept("fuzz/corpus") && !kept("docs/.cache"));
        let files = rust_files_below(&root().join("xtask")).unwrap();
        assert!(files.iter().any(|file| file.path == "xtask/src/report/steps.rs"));
    }
}
