//! The forms of a file of entries, and what reading and writing one has in common.

use std::io::{Read, Write};
use std::path::Path;

use clap::ValueEnum;

use super::TextOptions;
use super::binary::{BinaryReader, BinaryWriter};
use super::text::{TextReader, TextWriter};
use crate::failure::Failure;

/// The form of a file of entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Format {
    /// Cells separated by commas.
    Csv,
    /// Cells separated by tabs.
    Tsv,
    /// frondb's own: exact, with checksums.
    Binary,
}

impl Format {
    /// What the file's name says, if the format is not given; binary for other names.
    pub(crate) fn of(given: Option<Self>, file: Option<&Path>) -> Self {
        let by_name = || match file?.extension()?.to_str()? {
            "csv" => Some(Self::Csv),
            "tsv" | "tab" => Some(Self::Tsv),
            _ => None,
        };
        given.or_else(by_name).unwrap_or(Self::Binary)
    }

    /// What stands between cells.
    pub(crate) fn delimiter(self) -> u8 {
        if self == Self::Tsv { b'\t' } else { b',' }
    }
}

/// Takes entries one by one.
pub(crate) trait RecordWriter {
    /// Writes one.
    fn write(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure>;

    /// Writes what is still held back. A file without this call is not complete.
    fn finish(&mut self) -> Result<(), Failure>;
}

/// A key and its value.
pub(crate) type Entry = (Vec<u8>, Vec<u8>);

/// Hands out entries one by one.
pub(crate) trait RecordReader {
    /// The next one; `None` at the end.
    fn next(&mut self) -> Result<Option<Entry>, Failure>;
}

/// A writer of the format.
pub(crate) fn writer<'a>(
    format: Format,
    options: &TextOptions,
    out: impl Write + 'a,
) -> Result<Box<dyn RecordWriter + 'a>, Failure> {
    Ok(match format {
        Format::Binary => Box::new(BinaryWriter::new(out)?),
        Format::Csv | Format::Tsv => Box::new(TextWriter::new(out, options)?),
    })
}

/// A reader of the format.
pub(crate) fn reader<'a>(
    format: Format,
    options: &TextOptions,
    input: impl Read + 'a,
) -> Result<Box<dyn RecordReader + 'a>, Failure> {
    Ok(match format {
        Format::Binary => Box::new(BinaryReader::new(input)?),
        Format::Csv | Format::Tsv => Box::new(TextReader::new(input, options)?),
    })
}
