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
    /// Returns the format that the extension of the file means; `None` for other extensions.
    pub(crate) fn of_name(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()? {
            "csv" => Some(Self::Csv),
            "tsv" | "tab" => Some(Self::Tsv),
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            _ => None,
        }
    }

    /// Returns the byte between cells.
    pub(crate) fn delimiter(self) -> u8 {
        if self == Self::Tsv { b'\t' } else { b',' }
    }
}

/// Returns how many bytes a record of a text file may have, if a byte of a key or value is written
/// with up to `notation` bytes. An entry of the largest size has room. Without this limit a file
/// without line breaks would be one record, which is read into memory.
pub(super) const fn record_bytes_max(notation: u64) -> u64 {
    notation * frondb::limits::VALUE_BYTES_MAX as u64 + (1 << 20)
}

/// Returns the error for a record that begins in `line` and is longer than `limit` bytes.
pub(super) fn too_long(what: &str, line: u64, limit: u64) -> Failure {
    let limit = match limit >> 20 {
        0 => format!("{limit} bytes"),
        mib => format!("{mib} MiB"),
    };
    Failure::input(format!("line {line}: the {what} that begins here is longer than {limit}"))
}

/// Writes entries one by one.
pub(crate) trait RecordWriter {
    /// Writes one entry.
    fn write(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure>;

    /// Writes the buffered bytes and the end of the file. Without this call the file is not
    /// complete.
    fn finish(&mut self) -> Result<(), Failure>;
}

/// A key and its value.
pub(crate) type Entry = (Vec<u8>, Vec<u8>);

/// Reads entries one by one.
pub(crate) trait RecordReader {
    /// Reads the next entry; `None` at the end.
    fn next(&mut self) -> Result<Option<Entry>, Failure>;

    /// Returns how the file is read.
    fn layout(&self) -> Layout;

    /// Returns how many of the cells read so far are text in a column of numbers or booleans. (The
    /// type of a column is guessed from the first part of the file.)
    fn kept_as_text(&self) -> u64 {
        0
    }
}

/// How a file is read: by the options of the user, and by guesses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    pub(crate) format: &'static str,
    /// The character between cells; `None` if the file is not a table.
    pub(crate) delimiter: Option<char>,
    /// The names of the columns; `None` if the first row is data.
    pub(crate) header: Option<Vec<String>>,
    /// The column or JSON field of the key; empty for a dump.
    pub(crate) key: String,
    /// The columns or JSON fields of the value, as text for people; empty for a dump.
    pub(crate) value: String,
}

impl Layout {
    /// Returns the layout in words.
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

/// Maximum number of names in a list of a note.
const SHOWN_MAX: usize = 20;

/// Returns the names as a list; at most [`SHOWN_MAX`] of them.
pub(crate) fn shown(names: &[String]) -> String {
    match names.get(SHOWN_MAX..).filter(|more| !more.is_empty()) {
        Some(more) => format!("{} and {} more", names[..SHOWN_MAX].join(", "), more.len()),
        None => names.join(", "),
    }
}
