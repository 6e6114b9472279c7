//! What cargo builds for packages: `target/packages/built`.
//!
//! ```text
//!   libfrondb_capi.so, .a     the library for C, with the program's allocator
//!   plugin/libfrondb_capi.a   the library for the plugin, with an allocator of its own
//!   frondb, frondb-convert    the programs
//!   man/, completions/        their manual pages and completions
//!   crates/PACKAGE            the crates of other authors in a package, with their licenses
//! ```
//! The files are the same in whatever folders the checkout, the build output and cargo's registry
//! are: the compilers replace these paths by others.

use std::fs;
use std::path::{Path, PathBuf};

use crate::install_c::version;
use crate::step::Cmd;
use crate::workspace::{root, target_folder};
use crate::{Result, install, programs};

const PROGRAMS: [(&str, &str); 2] =
    [("frondb", "frondb-cli"), ("frondb-convert", "frondb-convert")];

/// Returns the folder of what is built.
pub(super) fn folder() -> PathBuf {
    target_folder().join("packages/built")
}

/// Builds everything, unless that was done before, outside a root.
pub(super) fn build() -> Result {
    if programs::are_built() {
        return Ok(());
    }
    install::c_compiler()?;
    make_folder(&folder().join("plugin"))?;
    cargo("build", "--lib --package frondb-capi --features jemalloc")?;
    keep("libfrondb_capi.a", "plugin/libfrondb_capi.a")?;
    cargo(
        "build",
        "--lib --bins --package frondb-capi --package frondb-cli --package frondb-convert",
    )?;
    for name in ["libfrondb_capi.so", "libfrondb_capi.a", "frondb", "frondb-convert"] {
        keep(name, name)?;
    }
    for (_, package) in PROGRAMS {
        cargo("run", &format!("--example manual --package {package} -- {}", folder().display()))?;
    }
    list_crates()
}

fn make_folder(folder: &Path) -> Result {
    fs::create_dir_all(folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))
}

/// Returns pairs of a path on this machine and the path that replaces it. Where several fit, the
/// compilers take the last one.
pub(super) fn paths() -> Result<Vec<(String, String)>> {
    let home = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cargo = home("CARGO_HOME").or_else(|| Some(home("HOME")?.join(".cargo")));
    let cargo = cargo.ok_or("neither CARGO_HOME nor HOME is set")?;
    let source = format!("/usr/src/frondb-{}", version()?);
    let mut paths = vec![
        (cargo.display().to_string(), "/usr/share/cargo".to_owned()),
        (root().display().to_string(), source.clone()),
    ];
    if target_folder() != root().join("target") {
        paths.push((target_folder().display().to_string(), format!("{source}/target")));
    }
    Ok(paths)
}

/// Returns the folder of cargo's output. It has other flags than other builds.
fn target() -> PathBuf {
    target_folder().join("packages/cargo")
}

fn cargo(command: &str, args: &str) -> Result {
    let map = |option: &str| -> Result<String> {
        let paths = paths()?;
        Ok(paths.iter().map(|(from, to)| format!("{option}={from}={to} ")).collect())
    };
    Cmd::new("cargo", &format!("{command} --release --locked {args}"))
        .env("CARGO_TARGET_DIR", &target().display().to_string())
        .env("RUSTFLAGS", map("--remap-path-prefix")?.trim())
        .env("CFLAGS", map("-ffile-prefix-map")?.trim())
        .run()
}

/// Copies a built file out of cargo's folder, where the next command may replace it.
fn keep(name: &str, to: &str) -> Result {
    let (from, to) = (target().join("release").join(name), folder().join(to));
    let _ = fs::remove_file(&to);
    let copied = fs::copy(&from, &to).map(drop);
    copied.map_err(|e| format!("cannot copy {} to {}: {e}", from.display(), to.display()))
}

/// Writes the lists of crates.
fn list_crates() -> Result {
    let to = folder().join("crates");
    make_folder(&to)?;
    let library = format!("libfrondb{}", super::version::of_interface(&version()?));
    let plugin = "--package frondb-capi --package frondb-convert --features frondb-capi/jemalloc";
    for (package, crates) in [
        (library.as_str(), "--package frondb-capi"),
        ("libfrondb-dev", "--package frondb-capi"),
        ("frondb", "--package frondb-cli"),
        ("mariadb-plugin-frondb", plugin),
    ] {
        let tree = Cmd::new("cargo", "tree --locked --edges normal --prefix none --format");
        let tree = crates.split_whitespace().fold(tree.arg("{p}\t{l}"), Cmd::arg);
        let file = to.join(package);
        fs::write(&file, of_others(&tree.output()?))
            .map_err(|e| format!("cannot write {}: {e}", file.display()))?;
    }
    Ok(())
}

/// Returns the lines of crates that do not lie in the checkout, each once.
fn of_others(tree: &str) -> String {
    let lines = tree.lines().map(|line| line.trim_end_matches(" (*)"));
    let mut lines: Vec<&str> =
        lines.filter(|line| !line.is_empty() && !line.contains(" (/")).collect();
    lines.sort_unstable();
    lines.dedup();
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_of_others_are_listed_once() {
        let tree = "frondb v0.2.0 (/a/frondb)\tMIT\nzstd v0.13.3\tMIT\n\nmemchr v2.8.0\tMIT (*)\nzstd v0.13.3\tMIT\n";
        assert_eq!(of_others(tree), "memchr v2.8.0\tMIT\nzstd v0.13.3\tMIT\n");
    }
}
