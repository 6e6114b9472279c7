//! The version of Rust that Cargo.toml promises (`rust-version`) and the one that builds here.
//!
//! A promise that no build tests is soon broken, so CI builds with exactly the promised version.
//! Developers may use newer compilers: clippy then warns of newer functions of the standard library.

use toml::Value;

use crate::Result;
use crate::step::Cmd;
use crate::workspace::{read_toml, root};

/// Checks, in CI, that the compiler has the promised version.
pub(crate) fn check() -> Result {
    if std::env::var_os("CI").is_none() || is_promised()? {
        return Ok(());
    }
    let (promised, found) = (promised()?, installed()?);
    Err(format!(
        "Cargo.toml promises Rust {promised}, and CI tests with {found}: build with {promised}, \
         or raise rust-version, which is a change for users"
    ))
}

/// Returns whether the compiler has the promised version.
pub(crate) fn is_promised() -> Result<bool> {
    let (promised, found) = (promised()?, installed()?);
    Ok(is_version(&promised, &found))
}

fn is_version(promised: &str, found: &str) -> bool {
    found == promised || found.starts_with(&format!("{promised}."))
}

/// Returns `rust-version` of the workspace.
fn promised() -> Result<String> {
    let manifest = read_toml(&root().join("Cargo.toml"))?;
    let package = manifest.get("workspace").and_then(|workspace| workspace.get("package"));
    let version = package.and_then(|package| package.get("rust-version")).and_then(Value::as_str);
    version.map(str::to_owned).ok_or_else(|| "Cargo.toml has no rust-version".to_owned())
}

/// Returns the version of the compiler, such as `1.95.0`.
fn installed() -> Result<String> {
    let output = Cmd::new("rustc", "--version").output()?;
    let version = output.split_whitespace().nth(1);
    version.map(str::to_owned).ok_or_else(|| format!("rustc has no version: {output}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_names_a_version_or_its_releases() {
        assert!(is_version("1.95", "1.95.0") && is_version("1.95", "1.95.2"));
        assert!(is_version("1.95.1", "1.95.1"));
        assert!(!is_version("1.95", "1.96.0") && !is_version("1.9", "1.95.0"));
    }
}
