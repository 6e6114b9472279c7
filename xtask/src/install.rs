//! Installs the programs that the commands need besides cargo.
//!
//! As root on a Debian machine the commands install missing packages; otherwise they print the
//! exact command and stop. Cargo's own tools go into `target/tools`, so that nothing outside the
//! checkout changes except Debian packages and rustup's toolchains.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::step::Cmd;
use crate::workspace::target_folder;

pub(crate) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Installs Debian packages, unless `present` already returns `true`. `what` completes the sentence
/// "... is missing".
pub(crate) fn apt(what: &str, packages: &str, present: impl Fn() -> bool) -> Result {
    if present() {
        return Ok(());
    }
    let command = format!("apt-get install -y --no-install-recommends {packages}");
    let root = Cmd::new("id", "-u").output().is_ok_and(|id| id == "0");
    if !root || !on_path("apt-get") {
        return Err(format!("{what} is missing; install it with: sudo {command}"));
    }
    eprintln!("{what} is missing: installing {packages}");
    Cmd::new("apt-get", "update -qq").run()?;
    // Another program may be installing packages just now.
    Cmd::new("apt-get", &command["apt-get ".len()..])
        .arg("-o")
        .arg("DPkg::Lock::Timeout=300")
        .env("DEBIAN_FRONTEND", "noninteractive")
        .run()?;
    if present() { Ok(()) } else { Err(format!("{what} is still missing after: {command}")) }
}

/// Installs a C compiler, which compiles compression libraries and links programs.
pub(crate) fn c_compiler() -> Result {
    let headers = || Path::new("/usr/include/stdlib.h").exists();
    apt("a C compiler", "gcc libc6-dev", || on_path("cc") && headers())
}

/// Installs rustfmt and clippy, which a minimal toolchain lacks.
pub(crate) fn rust_components() -> Result {
    for (subcommand, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        let present = || Cmd::new("cargo", subcommand).arg("--version").succeeds();
        if present() {
            continue;
        }
        let command = format!("rustup component add {component}");
        if !on_path("rustup") {
            return Err(format!(
                "cargo {subcommand} is missing; install it with rustup: {command}"
            ));
        }
        Cmd::new("rustup", &command["rustup ".len()..]).run()?;
        if !present() {
            return Err(format!("cargo {subcommand} is still missing after: {command}"));
        }
    }
    Ok(())
}

/// Installs a nightly toolchain, which sanitizers and libFuzzer need, with rustup if possible.
pub(crate) fn nightly() -> Result {
    let present = || Cmd::new("cargo", "+nightly --version").succeeds();
    if present() {
        return Ok(());
    }
    if on_path("rustup") {
        // The check below decides whether the installation succeeded.
        let _ = Cmd::new("rustup", "toolchain install nightly --profile minimal").run();
    }
    if present() {
        return Ok(());
    }
    Err("a nightly toolchain is missing; install it with: rustup toolchain install nightly".into())
}

fn tools() -> PathBuf {
    target_folder().join("tools")
}

/// Returns the folder of the programs that [`cargo_tool`] installs.
fn tools_bin() -> PathBuf {
    tools().join("bin")
}

/// Returns the search path with [`tools_bin`] in front, so that cargo finds its subcommands there.
pub(crate) fn path_with_tools() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{}:{path}", tools_bin().display())
}

/// Makes `cargo NAME` (package `cargo-NAME`) available with [`path_with_tools`]. Uses the machine's
/// program if there is one, otherwise builds `version` into `target/tools`.
pub(crate) fn cargo_tool(name: &str, version: &str, features: &str) -> Result {
    let package = format!("cargo-{name}");
    if on_path(&package) {
        return Ok(());
    }
    tool_in(&tools(), &package, version, features).map(drop)
}

/// Builds `version` of a program of crates.io into `target/tools`, unless it is there. Returns its
/// path. The version is part of the path, so a new version is built anew.
pub(crate) fn pinned_tool(package: &str, version: &str, features: &str) -> Result<PathBuf> {
    tool_in(&tools().join(version), package, version, features)
}

fn tool_in(folder: &Path, package: &str, version: &str, features: &str) -> Result<PathBuf> {
    let program = folder.join("bin").join(package);
    if program.is_file() {
        return Ok(program);
    }
    eprintln!("{package} is missing: building {version} below target/ (takes some minutes)");
    let args = format!("install {package} --version {version} --locked {features} --root");
    Cmd::new("cargo", &args).arg(&folder.to_string_lossy()).run().map_err(|e| {
        format!("{package} {version} could not be installed, so this was NOT checked: {e}")
    })?;
    Ok(program)
}
