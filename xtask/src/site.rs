//! `cargo xtask site` (`make docs`): builds the documentation site from the Markdown pages.
//!
//! ```text
//!   docs/README.md, the contents      --+
//!   every page that it names            |--> target/book --mdBook--> target/site --> links checked
//!   docs/site: settings, style          |
//!   pictures and sources that pages link to
//! ```
//!
//! The pages stay where they are, because a plain Git host shows them, too. [`stage`] copies them to
//! the same places below `target/book/src`, where mdBook finds nothing but the book. [`html`] checks
//! all links and anchors of the result.

mod html;
mod stage;

use std::fs;

use crate::step::Cmd;
use crate::workspace::target_folder;
use crate::{Result, install, report};

use stage::failed;

const MDBOOK: &str = "0.5.4";
const FEATURES: &str = "--no-default-features --features search";

/// Builds the site below `target/site` and checks it.
pub(crate) fn build() -> Result {
    let mdbook = install::pinned_tool("mdbook", MDBOOK, FEATURES)?;
    let (book, site) = (target_folder().join("book"), target_folder().join("site"));
    for folder in [&book, &site] {
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(|e| failed("remove", folder, e))?;
        }
    }
    stage::stage(&book)?;
    let build =
        Cmd::new(&mdbook.to_string_lossy(), "build --dest-dir").arg(&site.to_string_lossy());
    build.arg(&book.to_string_lossy()).run()?;
    report("site", html::check(&site))?;
    println!("{}", site.join("index.html").display());
    Ok(())
}
