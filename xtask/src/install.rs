//! What the commands need beyond cargo, and how it comes onto the machine.
//!
//! As root on a Debian machine what is missing is installed; otherwise the exact command is said and
//! the caller stops. Cargo's own tools go into `target/tools`, so that nothing outside the checkout
//! changes but Debian packages.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::step::Cmd;
use crate::workspace::target_folder;

/// Whether `program` is on the path.
pub(crate) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Sees to it that `present` holds, by installing Debian packages if it does not. `what` completes
/// the sentence "... is missing".
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
    Cmd::new("apt-get", &command["apt-get ".len()..])
        .env("DEBIAN_FRONTEND", "noninteractive")
        .run()?;
    if present() { Ok(()) } else { Err(format!("{what} is still missing after: {command}")) }
}

/// A C compiler, which compression libraries and the linker need.
pub(crate) fn c_compiler() -> Result {
    let headers = || Path::new("/usr/include/stdlib.h").exists();
    apt("a C compiler", "gcc libc6-dev", || on_path("cc") && headers())
}

/// rustfmt and clippy, which a minimal toolchain lacks.
pub(crate) fn rust_components() -> Result {
    for (subcommand, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        let present = || Cmd::new("cargo", subcommand).arg("--version").succeeds();
        if present() {
            continue;
        }
        let command = format!("rustup component add {component}");
        if !on_path("rustup") {
            return Err(format!(
                "cargo {subcommand} is missing; with rustup it comes by: {command}"
            ));
        }
        Cmd::new("rustup", &command["rustup ".len()..]).run()?;
        if !present() {
            return Err(format!("cargo {subcommand} is still missing after: {command}"));
        }
    }
    Ok(())
}

/// A nightly toolchain, which sanitizers and libFuzzer need; installed by rustup if it can be.
pub(crate) fn nightly() -> Result {
    let present = || Cmd::new("cargo", "+nightly --version").succeeds();
    if present() {
        return Ok(());
    }
    if on_path("rustup") {
        // The outcome is judged by what is there afterwards.
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

/// The folder of cargo's own tools that [`cargo_tool`] fills.
fn tools_bin() -> PathBuf {
    tools().join("bin")
}

/// The path with [`tools_bin`] in front, for cargo to find its subcommands there.
pub(crate) fn path_with_tools() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{}:{path}", tools_bin().display())
}

/// Sees to it that `cargo NAME` (package `cargo-NAME`) can be run with [`path_with_tools`]: taken as
/// it is if the machine has one, else built at `version` into `target/tools`.
pub(crate) fn cargo_tool(name: &str, version: &str, features: &str) -> Result {
    let package = format!("cargo-{name}");
    if on_path(&package) || tools_bin().join(&package).is_file() {
        return Ok(());
    }
    eprintln!("{package} is missing: building {version} below target/ (some minutes)");
    let args = format!("install {package} --version {version} --locked {features} --root");
    Cmd::new("cargo", &args).arg(&tools().to_string_lossy()).run().map_err(|e| {
        format!("{package} {version} could not be installed, so this was NOT checked: {e}")
    })
}
