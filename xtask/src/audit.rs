//! `make audit`: licences, bans and sources of all dependencies, by cargo-deny with deny.toml.
//!
//! Both workspaces are checked: the root's, which has the engines to compare with, and that of
//! fuzz/. Once cargo-deny is built, no network is needed. Known vulnerabilities need a database
//! from the network: run `cargo deny check advisories` on a machine that may fetch it.

use crate::step::Cmd;
use crate::{Result, install};

const CARGO_DENY: &str = "0.20.2";

/// The Cargo.toml of each workspace that is checked.
const WORKSPACES: [&str; 2] = ["Cargo.toml", "fuzz/Cargo.toml"];

/// Runs cargo-deny.
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
