//! `make audit`: licences, bans and sources of all dependencies, by cargo-deny with deny.toml.
//!
//! Known vulnerabilities need a database from the network and are left to `cargo deny check
//! advisories` on a machine that may fetch it.

use crate::step::Cmd;
use crate::{Result, install};

const CARGO_DENY: &str = "0.20.2";

/// Runs it.
pub(crate) fn run() -> Result {
    install::c_compiler()?;
    install::cargo_tool("deny", CARGO_DENY, "--no-default-features")?;
    Cmd::new("cargo", "deny --locked check licenses bans sources")
        .env("PATH", &install::path_with_tools())
        .run()
}
