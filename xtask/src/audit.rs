//! `make audit`: checks licences, bans and sources of all dependencies with cargo-deny and
//! deny.toml.
//!
//! The command checks both workspaces: the workspace of the checkout, which includes the engines to
//! compare with, and the workspace of fuzz/. It needs no network after cargo-deny is built. A check
//! for known vulnerabilities needs a database from the network: run `cargo deny check advisories`
//! on a machine that may fetch it.

use crate::step::Cmd;
use crate::{Result, install};

const CARGO_DENY: &str = "0.20.2";

/// The Cargo.toml of each checked workspace.
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
