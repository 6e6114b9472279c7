//! `make audit`: licences, bans and sources of all dependencies, by cargo-deny with deny.toml.
//!
//! Both workspaces are checked: the root's, in which the engines to compare with are too, and
//! fuzz/'s. Once cargo-deny is built nothing is fetched, so this works without a network. Known
//! vulnerabilities need a database from the network and are left to `cargo deny check advisories` on
//! a machine that may fetch it.

use crate::step::Cmd;
use crate::{Result, install};

const CARGO_DENY: &str = "0.20.2";

/// What is checked: the workspaces by their Cargo.toml.
const WORKSPACES: [&str; 2] = ["Cargo.toml", "fuzz/Cargo.toml"];

/// Runs it.
pub(crate) fn run() -> Result {
    install::c_compiler()?;
    install::cargo_tool("deny", CARGO_DENY, "--no-default-features")?;
    for manifest in WORKSPACES {
        let args = format!(
            "deny --locked --manifest-path {manifest} --config deny.toml check \
             --hide-inclusion-graph licenses bans sources"
        );
        Cmd::new("cargo", &args).env("PATH", &install::path_with_tools()).run()?;
    }
    Ok(())
}
