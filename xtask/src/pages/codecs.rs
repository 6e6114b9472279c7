//! Parses the rows of `codecs_with_levels!`, and writes them in words.
//!
//! ```text
//!   TAG VARIANT("NAME"): FIRST..=LAST, DEFAULT;
//! ```

use super::items::{Item, items};

/// A codec with levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CodecRow {
    pub(super) name: String,
    pub(super) first: u8,
    pub(super) last: u8,
    /// The level if only the name is given.
    default: u8,
    /// The first paragraph of the comment as one line.
    doc: String,
}

/// Parses the rows in the source of the codecs.
pub(super) fn codec_rows(source: &str) -> Vec<CodecRow> {
    items(source, "codecs_with_levels! {").into_iter().filter_map(row).collect()
}

fn row(item: Item) -> Option<CodecRow> {
    let (_, rest) = item.code.strip_suffix(';')?.split_once("(\"")?;
    let (name, rest) = rest.split_once("\"): ")?;
    let (range, default) = rest.split_once(", ")?;
    let (first, last) = range.split_once("..=")?;
    Some(CodecRow {
        name: name.to_owned(),
        first: first.parse().ok()?,
        last: last.parse().ok()?,
        default: default.parse().ok()?,
        doc: item.doc,
    })
}

impl CodecRow {
    /// Returns the row as an item of a page, with its levels.
    pub(super) fn described(&self) -> Item {
        let Self { name, first, last, default, doc } = self;
        let doc = format!("{doc} Levels {first} to {last}; `{name}` is `{name}:{default}`.");
        Item { doc, code: name.clone() }
    }

    /// Returns the texts that name the codec.
    pub(super) fn values(&self) -> String {
        let Self { name, first, last, .. } = self;
        format!("`{name}`, `{name}:{first}` to `{name}:{last}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_levels_in_words() {
        let source = "codecs_with_levels! {\n    /// Text.\n    3 Zlib(\"zlib\"): 1..=9, 6;\n}\n";
        let [row] = &codec_rows(source)[..] else { panic!("one row") };
        assert_eq!((row.first, row.last), (1, 9));
        let item = row.described();
        assert_eq!(
            (item.name().as_str(), row.values().as_str()),
            ("zlib", "`zlib`, `zlib:1` to `zlib:9`")
        );
        assert_eq!(item.doc, "Text. Levels 1 to 9; `zlib` is `zlib:6`.");
    }
}
