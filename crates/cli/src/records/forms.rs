//! The reader and the writer of each format.

use std::io::{Read, Write};

use super::binary::{BinaryReader, BinaryWriter};
use super::lines::LinesReader;
use super::record::{Format, RecordReader, RecordWriter};
use super::text::{TextOptions, TextReader, TextWriter};
use crate::failure::Failure;

/// Makes the writer of a format.
pub(crate) fn writer<'a>(
    format: Format,
    options: &TextOptions,
    out: impl Write + 'a,
) -> Result<Box<dyn RecordWriter + 'a>, Failure> {
    Ok(match format {
        Format::Binary => Box::new(BinaryWriter::new(out)?),
        Format::Csv | Format::Tsv => Box::new(TextWriter::new(out, options)?),
        Format::Jsonl => {
            return Err(Failure::usage("a dump has the format csv, tsv or binary").with_hint(
                "`frondb scan --json` prints entries as JSON lines, which `load` reads",
            ));
        }
    })
}

/// Makes the reader of a format.
pub(crate) fn reader<'a>(
    format: Format,
    options: &TextOptions,
    input: impl Read + 'a,
) -> Result<Box<dyn RecordReader + 'a>, Failure> {
    Ok(match format {
        Format::Binary => Box::new(BinaryReader::new(input)?),
        Format::Csv | Format::Tsv => Box::new(TextReader::new(input, options)?),
        Format::Jsonl => {
            let columns = (options.key_column.as_deref(), options.value_column.as_deref());
            Box::new(LinesReader::new(input, columns, (options.keys, options.values))?)
        }
    })
}
