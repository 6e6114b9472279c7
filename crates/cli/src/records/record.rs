//! The formats of a file of entries, and the traits of their readers and writers.

use std::path::Path;

use clap::ValueEnum;

use crate::failure::Failure;

/// The format of a file of entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Format {
    /// Cells separated by commas.
    Csv,
    /// Cells separated by tabs.
    Tsv,
    /// A JSON object on each line; only for `load`.
    Jsonl,
    /// The format of frondb itself: exact, with checksums.
    Binary,
}

impl Format {
    /// The format of the file's extension.
    pub(crate) fn of_name(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()? {
            "csv" => Some(Self::Csv),
            "tsv" | "tab" => Some(Self::Tsv),
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            _ => None,
        }
    }

    /// The byte between cells.
    pub(crate) fn delimiter(self) -> u8 {
        if self == Self::Tsv { b'\t' } else { b',' }
    }
}

/// Writes entries one by one.
pub(crate) trait RecordWriter {
    /// Writes one entry.
    fn write(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure>;

    /// Writes the buffered bytes. Without this call a file is not complete.
    fn finish(&mut self) -> Result<(), Failure>;
}

/// A key and its value.
pub(crate) type Entry = (Vec<u8>, Vec<u8>);

/// Reads entries one by one.
pub(crate) trait RecordReader {
    /// The next entry; `None` at the end.
    fn next(&mut self) -> Result<Option<Entry>, Failure>;

    /// How the file is read.
    fn layout(&self) -> Layout;

    /// Cells so far that are text although their columns have numbers or booleans in the part of the
    /// file from which the types were guessed.
    fn kept_as_text(&self) -> u64 {
        0
    }
}

/// How a file is read, by the options of the user and by guesses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    pub(crate) format: &'static str,
    /// The byte between cells.
    pub(crate) delimiter: Option<char>,
    /// The names of the columns; `None` if the first row is data.
    pub(crate) header: Option<Vec<String>>,
    /// The column of the key.
    pub(crate) key: String,
    /// The columns of the value, in words.
    pub(crate) value: String,
}

impl Layout {
    /// The layout in words.
    pub(crate) fn sentence(&self) -> String {
        if self.key.is_empty() {
            return format!("read as {}", self.format);
        }
        let delimiter = match self.delimiter {
            None => String::new(),
            Some('\t') => " with tabs".to_owned(),
            Some(delimiter) => format!(" with the delimiter {delimiter:?}"),
        };
        let header = match (&self.header, self.delimiter) {
            (Some(names), _) => format!(", the first row is a header ({})", shown(names)),
            (None, Some(_)) => ", no header: the first row is data".to_owned(),
            (None, None) => String::new(),
        };
        let (key, value) = (&self.key, &self.value);
        format!("read as {}{delimiter}{header}; key: {key}; value: {value}", self.format)
    }
}

/// Names in the lists of a note.
const SHOWN_MAX: usize = 20;

/// The names as a list; at most [`SHOWN_MAX`] of them.
pub(crate) fn shown(names: &[String]) -> String {
    match names.get(SHOWN_MAX..).filter(|more| !more.is_empty()) {
        Some(more) => format!("{} and {} more", names[..SHOWN_MAX].join(", "), more.len()),
        None => names.join(", "),
    }
}
