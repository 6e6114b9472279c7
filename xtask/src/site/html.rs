//! Checks the links of the built site: every file and every anchor of this site to which a page
//! links must exist. Addresses on the network are not tried.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::Result;
use crate::markdown::normal;
use crate::workspace::{SourceFile, files_below, root};

/// Finds links that lead nowhere.
pub(super) fn check(site: &Path) -> Result<Vec<String>> {
    let below = |page: SourceFile| {
        let path = root().join(&page.path);
        let path = path.strip_prefix(site).unwrap_or(&path).to_string_lossy().into_owned();
        SourceFile { path, text: page.text }
    };
    let pages: Vec<SourceFile> = files_below(site, "html")?.into_iter().map(below).collect();
    if pages.is_empty() {
        return Err(format!("{} has no pages", site.display()));
    }
    Ok(dead_links(&pages, |path| site.join(path).is_file()))
}

fn dead_links(pages: &[SourceFile], exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let anchors: BTreeMap<&Path, BTreeSet<&str>> = pages
        .iter()
        .map(|it| (Path::new(&it.path), values(&it.text, " id=\"").collect()))
        .collect();
    let mut findings = Vec::new();
    for page in pages {
        let links = values(&page.text, " href=\"").chain(values(&page.text, " src=\""));
        let links: BTreeSet<&str> = links.collect();
        for link in links.into_iter().filter(|link| !link.contains(':')) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let here = Path::new(&page.path);
            let path = match file {
                "" => here.to_owned(),
                _ => normal(&here.parent().unwrap_or(Path::new("")).join(file)),
            };
            let found = match anchors.get(path.as_path()) {
                Some(ids) => anchor.is_empty() || ids.contains(anchor),
                None => anchor.is_empty() && exists(&path),
            };
            if !found {
                findings.push(format!("{}: `{link}` leads nowhere", page.path));
            }
        }
    }
    findings
}

/// Returns the values of an attribute.
fn values<'a>(page: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
    page.match_indices(start).filter_map(|(at, _)| page[at + start.len()..].split('"').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let page = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        let pages = [
            page(
                "index.html",
                "<h1 id=\"top\">A</h1><a href=\"b/c.html#d\">x</a><img src=\"y.svg\">",
            ),
            page(
                "b/c.html",
                "<a href=\"../index.html#no\">x</a><a href=\"#no\"> <a href=\"z.html\">",
            ),
        ];
        let found = dead_links(&pages, |path| path == Path::new("y.svg"));
        let of = |page: &str| found.iter().filter(|it| it.starts_with(page)).count();
        assert_eq!((of("index.html"), of("b/c.html")), (1, 3), "{found:?}");
    }
}
