//! `cargo xtask docs`: checks that the documentation of the public library has no warnings and no
//! dead links.
//!
//! rustdoc checks the links in the crate that it documents. But `frondb` re-exports types of inner
//! crates, whose comments may have links to private items. rustdoc does not warn of such a link: it
//! writes the link as text, or with a path in the source as its address. [`dead_links`] finds these
//! links.

use std::fs;
use std::path::Path;

use crate::Result;
use crate::step::Cmd;
use crate::workspace::target_folder;

/// Builds the documentation of the library and checks it.
pub(crate) fn check() -> Result {
    build()?;
    let mut found = Vec::new();
    collect(&target_folder().join("doc/frondb"), &mut found)?;
    if found.is_empty() {
        return Ok(());
    }
    found.sort();
    Err(format!(
        "links to what is not public; write the name without a link:\n  {}",
        found.join("\n  ")
    ))
}

/// Builds the documentation of the library.
pub(crate) fn build() -> Result {
    let pages = Cmd::new("cargo", "doc --quiet --package frondb --no-deps");
    pages.env("RUSTDOCFLAGS", "-D warnings").run()
}

fn collect(folder: &Path, found: &mut Vec<String>) -> Result {
    let failed = |e| format!("cannot read {}: {e}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            collect(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            let page = fs::read_to_string(&path)
                .map_err(|e| format!("cannot read {}: {e}", path.display()))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            found.extend(dead_links(&page).into_iter().map(|link| format!("{name}: {link}")));
        }
    }
    Ok(())
}

/// Returns the links of a page that rustdoc could not resolve.
fn dead_links(page: &str) -> Vec<String> {
    let after = |start: &'static str, end: char| {
        page.match_indices(start).filter_map(move |(at, _)| {
            page[at + start.len()..].split(end).next().map(str::to_owned)
        })
    };
    let addresses = ["crate::", "super::", "self::"]
        .into_iter()
        .flat_map(|root| after("href=\"", '"').filter(move |link| link.starts_with(root)));
    // Every page lists these traits of other crates, because every type implements them.
    let foreign = ["Span", "Subscriber", "WithDispatch"];
    let is_ours = |link: &String| !foreign.iter().any(|name| link.contains(name));
    after("[<code>", '<').chain(addresses).filter(is_ours).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_without_a_target_are_found() {
        let page = "<p>See [<code>Inner</code>] and <a href=\"crate::Other::call\"><code>call</code></a>, \
                    <a href=\"struct.Db.html\"><code>Db</code></a>, [<code>WithDispatch</code>].</p>";
        assert_eq!(dead_links(page), ["Inner", "crate::Other::call"]);
    }
}
