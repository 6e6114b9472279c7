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
    /// The format of frondb itself: exact, with checksums.
    Binary,
}

impl Format {
    /// The given format, or else the one of the file's extension; binary for other names.
    pub(crate) fn of(given: Option<Self>, file: Option<&Path>) -> Self {
        let by_name = || match file?.extension()?.to_str()? {
            "csv" => Some(Self::Csv),
            "tsv" | "tab" => Some(Self::Tsv),
            _ => None,
        };
        given.or_else(by_name).unwrap_or(Self::Binary)
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

    /// Writes what is still buffered. Without this call a file is not complete.
    fn finish(&mut self) -> Result<(), Failure>;
}

/// A key and its value.
pub(crate) type Entry = (Vec<u8>, Vec<u8>);

/// Reads entries one by one.
pub(crate) trait RecordReader {
    /// The next entry; `None` at the end.
    fn next(&mut self) -> Result<Option<Entry>, Failure>;
}
