//! Finds documented items in a source file. It reads lines as rustfmt formats them and does not
//! parse Rust.

/// A documented item of a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// The first paragraph of the comment as one line, without links.
    pub(super) doc: String,
    /// The first line of code, trimmed.
    pub(super) code: String,
}

impl Item {
    /// Returns the text for a table: a builder with its arguments, or the name of a field.
    pub(super) fn name(&self) -> String {
        let code = self.code.trim_start_matches("pub ");
        let code = code.trim_start_matches("gauge ").trim_start_matches("counter ");
        if let Some((name, arguments)) = code.strip_prefix("fn ").and_then(|c| c.split_once('(')) {
            let arguments = arguments.split_once(") ->").map_or(arguments, |(a, _)| a);
            let arguments = arguments.strip_prefix("mut self").unwrap_or(arguments);
            return format!("{name}({})", arguments.trim_start_matches(", "));
        }
        if let Some((method, _)) = code.split_once(") -> ") {
            return format!("{method})");
        }
        code.split([':', ',', ' ']).next().unwrap_or_default().to_owned()
    }
}

/// Returns the documented items between the line `start` and the next line that is a closing brace.
pub(super) fn items(source: &str, start: &str) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let mut doc = String::new();
    // Whether the first paragraph of the comment has ended.
    let mut has_ended = false;
    let lines = source.lines().skip_while(|line| *line != start).skip(1);
    for line in lines.take_while(|line| *line != "}") {
        let line = line.trim();
        if let Some(text) = line.strip_prefix("///") {
            has_ended |= text.is_empty();
            if !has_ended {
                doc.push_str(text);
            }
        } else if !doc.is_empty() && !line.starts_with("#[") {
            let text = std::mem::take(&mut doc);
            items.push(Item { doc: without_links(text.trim()), code: line.into() });
            has_ended = false;
        }
    }
    items
}

/// Replaces ``[`Name`](path)`` and ``[`Name`]`` by `` `Name` ``.
fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("[`") {
        let Some((name, after)) = link.split_once("`]") else { break };
        out.push_str(before);
        out.push_str(&format!("`{name}`"));
        rest = after;
        if let Some((_, behind)) = rest.strip_prefix('(').and_then(|r| r.split_once(')')) {
            rest = behind;
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
database_options! {
    /// How much [`there`](crate::there) is, bytes.
    /// Default 32 MiB.
    ///
    /// Only in the library's documentation.
    a_bytes(bytes: u64) -> u64 = 32 << 20;
}

impl Options {
    /// What it does.
    #[must_use]
    pub fn f(mut self, function: impl UpdateFn) -> Self {
        self
    }
}
";

    #[test]
    fn items_have_comments_and_names() {
        let found = items(SOURCE, "database_options! {");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].doc, "How much `there` is, bytes. Default 32 MiB.");
        assert_eq!(found[0].name(), "a_bytes(bytes: u64)");
        assert_eq!(items(SOURCE, "impl Options {")[0].name(), "f(function: impl UpdateFn)");
        let field = Item { doc: String::new(), code: "pub b: u64,".into() };
        assert_eq!(field.name(), "b");
    }
}
