//! `crates/frondb/api.txt`: the public interface of the library as a sorted list, one declaration a
//! line. A change of the interface shows in the diff of this file: a line that is gone or changed
//! breaks programs, so the next release has another second number (until 1.0).
//!
//! The list comes from the pages of `cargo doc`, because the stable compiler has no other list of
//! what is public. Other versions of the compiler write other pages, so only the version that
//! Cargo.toml promises compares the list. For a change of behaviour or of generic bounds that
//! breaks programs without a change of a line, there is only the review.

use std::collections::BTreeSet;
use std::path::Path;

use crate::Result;
use crate::docs;
use crate::toolchain;
use crate::workspace::{read, root, target_folder};

const FILE: &str = "crates/frondb/api.txt";

const HEAD: &str = "# The public interface of the crate frondb, written by `cargo xtask api`. \
                    A line that goes away or changes breaks programs.";

/// Traits that the compiler implements by itself and that no program relies on.
const UNLISTED: [&str; 6] = [
    "Freeze for",
    "RefUnwindSafe for",
    "StructuralPartialEq for",
    "UnsafeUnpin for",
    "Unpin for",
    "UnwindSafe for",
];

/// Compares the list with the pages of `cargo doc`, which must be new.
pub(crate) fn check() -> Result {
    if !toolchain::is_promised()? {
        return Ok(());
    }
    let text = read(&root().join(FILE))?;
    let kept = text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
    compare(&kept, &list(&target_folder().join("doc/frondb"))?)
}

/// Writes the list.
pub(crate) fn write() -> Result {
    docs::build()?;
    let lines = list(&target_folder().join("doc/frondb"))?;
    let lines: Vec<String> = lines.into_iter().collect();
    let path = root().join(FILE);
    std::fs::write(&path, format!("{HEAD}\n{}\n", lines.join("\n")))
        .map_err(|e| format!("cannot write {}: {e}", path.display()))
}

fn compare(kept: &BTreeSet<String>, found: &BTreeSet<String>) -> Result {
    if kept == found {
        return Ok(());
    }
    let gone = kept.difference(found).map(|line| format!("- {line}"));
    let new = found.difference(kept).map(|line| format!("+ {line}"));
    let changes: Vec<String> = gone.chain(new).collect();
    Err(format!(
        "{FILE} is not the public interface; lines with `-` break programs. Run `cargo xtask api`:\n  {}",
        changes.join("\n  ")
    ))
}

/// Returns the declarations on all pages of the documentation in `folder`.
fn list(folder: &Path) -> Result<BTreeSet<String>> {
    let mut lines = BTreeSet::new();
    // The folder may have pages of items that are gone; this page lists those that exist.
    for page in items(&read(&folder.join("all.html"))?) {
        let name = name_of(&page);
        let declarations = declarations(&read(&folder.join(&page))?);
        lines.extend(declarations.into_iter().map(|declaration| format!("{name}: {declaration}")));
    }
    if lines.is_empty() { Err("the documentation lists no items".to_owned()) } else { Ok(lines) }
}

/// Returns the addresses of the pages of all items.
fn items(all: &str) -> Vec<String> {
    let list = all.split_once("class=\"all-items\"").map_or("", |(_, list)| list);
    let links = list.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    links.filter(|link| link.ends_with(".html")).map(str::to_owned).collect()
}

/// Returns the name of an item from the address of its page: `device::Speed` of
/// `device/struct.Speed.html`.
fn name_of(page: &str) -> String {
    let path = page.trim_end_matches(".html");
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let item = file.split_once('.').map_or(file, |(_, item)| item);
    let modules = folder.split('/').filter(|module| !module.is_empty());
    modules.chain([item]).collect::<Vec<_>>().join("::")
}

/// Returns the declarations of a page: of the item, its methods, and the traits that it implements,
/// without the methods of these and without what every type has.
fn declarations(page: &str) -> Vec<String> {
    let own = page.split("id=\"blanket-implementations\"").next().unwrap_or(page);
    let mut found = Vec::new();
    if let Some((_, rest)) = own.split_once("<pre class=\"rust item-decl\">") {
        found.extend(rest.split("</pre>").next().map(text_of));
    }
    for section in own.split("<section id=\"").skip(1) {
        let is_of_trait = section.split('>').next().is_some_and(|tag| tag.contains("trait-impl"));
        if let Some((_, rest)) = section.split_once("class=\"code-header\">")
            && !is_of_trait
        {
            let end = rest.find("</h3>").into_iter().chain(rest.find("</h4>")).min();
            found.extend(end.map(|end| text_of(&rest[..end])));
        }
    }
    // An `impl` without a trait is only a heading.
    let is_listed = |line: &String| {
        !line.starts_with("impl")
            || line.contains(" for ") && !UNLISTED.iter().any(|name| line.contains(name))
    };
    found.into_iter().filter(is_listed).collect()
}

/// Returns the text of HTML in one line.
fn text_of(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    for part in html.split('<') {
        // The part before the first tag has no `>`: code has it escaped.
        let (tag, part) = part.split_once('>').unwrap_or(("", part));
        if tag.starts_with("div") {
            text.push(' ');
        }
        text.push_str(part);
    }
    let entities = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("&amp;", "&"),
    ];
    let text = entities.iter().fold(text, |text, (entity, char)| text.replace(entity, char));
    // rustdoc marks some return types with a sign.
    let words = text.split_whitespace().filter(|word| word.is_ascii());
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_those_of_the_page_without_what_every_type_has() {
        let page = r##"<pre class="rust item-decl"><code>pub struct Tree { <span class="comment">/* private
            fields */</span> }</code></pre><section id="method.get" class="method"><a class="src">Source</a>
            <h4 class="code-header">pub fn <a href="#method.get" class="fn">get</a>(&amp;self) -&gt; Result&lt;u8&gt;</h4></section>
            <section id="impl-Clone-for-Tree" class="impl"><h3 class="code-header">impl Clone for Tree</h3></section>
            <section id="method.clone" class="method trait-impl"><h4 class="code-header">fn clone(&amp;self)</h4></section>
            <section id="impl-Freeze-for-Tree" class="impl"><h3 class="code-header">impl !Freeze for Tree</h3></section>
            <h2 id="blanket-implementations"></h2><section id="impl-Any-for-T"><h3 class="code-header">impl Any</h3>"##;
        assert_eq!(
            declarations(page),
            [
                "pub struct Tree { /* private fields */ }",
                "pub fn get(&self) -> Result<u8>",
                "impl Clone for Tree"
            ]
        );
        let all = r#"<a href="../x.html"></a><ul class="all-items"><li><a href="device/struct.Speed.html">x</a>"#;
        assert_eq!(items(all), ["device/struct.Speed.html"]);
        assert_eq!(name_of("device/struct.Speed.html"), "device::Speed");
        assert_eq!(name_of("type.Result.html"), "Result");
    }

    #[test]
    fn lost_and_new_declarations_are_reported() {
        let of = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect();
        assert_eq!(compare(&of(&["a"]), &of(&["a"])), Ok(()));
        let error = compare(&of(&["a", "b"]), &of(&["b", "c"])).unwrap_err();
        assert!(error.ends_with("\n  - a\n  + c"), "{error}");
    }
}
