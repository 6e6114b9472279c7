//! Reading and writing entries as CSV or TSV: one entry a row, a header row unless it is said that
//! there is none. A file that ends inside a quoted cell was cut: it is refused, not read as if the
//! quote had ended.

use std::io::{Read, Write};

use super::{Entry, RecordReader, RecordWriter};
use crate::encoding::Encoding;
use crate::failure::Failure;

/// How a table of text is read or written.
#[derive(Clone, Debug)]
pub(crate) struct TextOptions {
    /// What stands between cells: a comma, or a tab.
    pub(crate) delimiter: u8,
    /// Whether the first row has the columns' names.
    pub(crate) header: bool,
    /// Column of the key: a name, or a number from 1.
    pub(crate) key_column: String,
    /// Column of the value; if it is not given, the second, or nothing in a table of one column.
    pub(crate) value_column: Option<String>,
    /// How key cells are written.
    pub(crate) keys: Encoding,
    /// How value cells are written.
    pub(crate) values: Encoding,
}

/// Writes rows.
pub(crate) struct TextWriter<W: Write> {
    out: csv::Writer<W>,
    keys: Encoding,
    values: Encoding,
}

impl<W: Write> TextWriter<W> {
    /// Writes the header row if there is one.
    pub(crate) fn new(out: W, options: &TextOptions) -> Result<Self, Failure> {
        let mut out = csv::WriterBuilder::new().delimiter(options.delimiter).from_writer(out);
        if options.header {
            out.write_record(["key", "value"])?;
        }
        Ok(Self { out, keys: options.keys, values: options.values })
    }
}

impl<W: Write> RecordWriter for TextWriter<W> {
    fn write(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        Ok(self.out.write_record([self.keys.encode(key), self.values.encode(value)])?)
    }

    fn finish(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }
}

/// Reads rows.
pub(crate) struct TextReader<R> {
    input: csv::Reader<Quotes<R>>,
    row: csv::StringRecord,
    key: usize,
    value: Option<usize>,
    keys: Encoding,
    values: Encoding,
}

impl<R: Read> TextReader<R> {
    /// Reads the header row if there is one, and finds the columns.
    pub(crate) fn new(input: R, options: &TextOptions) -> Result<Self, Failure> {
        let mut input = csv::ReaderBuilder::new()
            .delimiter(options.delimiter)
            .has_headers(options.header)
            .from_reader(Quotes::new(input, options.delimiter));
        // Without a header row this is the first row, which tells how many columns there are.
        let head = input.headers()?.clone();
        input.get_ref().check()?;
        if head.is_empty() && !options.header {
            // No row at all: what `dump` makes of an empty tree.
            let row = csv::StringRecord::new();
            return Ok(Self {
                input,
                row,
                key: 0,
                value: None,
                keys: options.keys,
                values: options.values,
            });
        }
        let key = column(&head, options, &options.key_column)?;
        let value = match &options.value_column {
            Some(name) => Some(column(&head, options, name)?),
            None if head.len() > 2 => {
                return Err(Failure::usage(format!(
                    "the table has {} columns: say which is the value with --value-column",
                    head.len()
                )));
            }
            None => (0..head.len()).find(|&i| i != key),
        };
        let row = csv::StringRecord::new();
        Ok(Self { input, row, key, value, keys: options.keys, values: options.values })
    }
}

/// Number of the column with a name, or with a number from 1.
fn column(head: &csv::StringRecord, options: &TextOptions, name: &str) -> Result<usize, Failure> {
    if options.header
        && let Some(found) = head.iter().position(|cell| cell == name)
    {
        return Ok(found);
    }
    match name.parse::<usize>() {
        Ok(number) if (1..=head.len()).contains(&number) => Ok(number - 1),
        _ => {
            let known: Vec<&str> = head.iter().collect();
            let known = if options.header { known.join(", ") } else { format!("1-{}", head.len()) };
            Err(Failure::usage(format!("no column `{name}`; there are: {known}")))
        }
    }
}

impl<R: Read> RecordReader for TextReader<R> {
    fn next(&mut self) -> Result<Option<Entry>, Failure> {
        if !self.input.read_record(&mut self.row)? {
            return Ok(None);
        }
        self.input.get_ref().check()?;
        let line = self.row.position().map_or(0, csv::Position::line);
        let place = |failure: Failure| failure.context(format!("line {line}"));
        let cell = |i: usize| self.row.get(i).unwrap_or_default();
        let key = self.keys.decode(cell(self.key)).map_err(place)?;
        let value = self.value.map_or("", cell);
        let value = self.values.decode(value).map_err(place)?;
        Ok(Some((key, value)))
    }
}

/// What passes through, watched for quotes: the parser takes the end of the input for the end of a
/// quoted cell.
struct Quotes<R> {
    input: R,
    delimiter: u8,
    state: Cell,
    ended: bool,
}

/// Where in a table a byte is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    /// Before the first byte of a cell: only here a quote opens one that is quoted.
    Start,
    /// In a cell without quotes, or behind the quoted part of one.
    Plain,
    Quoted,
    /// Behind a quote in a quoted cell: its end, or the first of two that stand for one.
    Quote,
}

impl<R> Quotes<R> {
    fn new(input: R, delimiter: u8) -> Self {
        Self { input, delimiter, state: Cell::Start, ended: false }
    }

    fn next(&self, byte: u8) -> Cell {
        match (self.state, byte) {
            (Cell::Quoted, b'"') => Cell::Quote,
            (Cell::Quoted, _) | (Cell::Quote | Cell::Start, b'"') => Cell::Quoted,
            (_, b'\r' | b'\n') => Cell::Start,
            (_, other) if other == self.delimiter => Cell::Start,
            _ => Cell::Plain,
        }
    }

    /// Fails if the input has ended inside a quoted cell.
    fn check(&self) -> Result<(), Failure> {
        if self.ended && self.state == Cell::Quoted {
            return Err(Failure::input(
                "it ends inside a quoted cell: it was cut, or a quote is missing",
            ));
        }
        Ok(())
    }
}

impl<R: Read> Read for Quotes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.input.read(buffer)?;
        self.ended |= n == 0 && !buffer.is_empty();
        for &byte in &buffer[..n] {
            self.state = self.next(byte);
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> TextOptions {
        TextOptions {
            delimiter: b',',
            header: true,
            key_column: "1".into(),
            value_column: None,
            keys: Encoding::Text,
            values: Encoding::Text,
        }
    }

    fn load(text: &str, options: &TextOptions) -> Result<Vec<Entry>, Failure> {
        let mut reader = TextReader::new(text.as_bytes(), options)?;
        let mut entries = Vec::new();
        while let Some(entry) = reader.next()? {
            entries.push(entry);
        }
        Ok(entries)
    }

    fn pair(key: &str, value: &str) -> Entry {
        (key.into(), value.into())
    }

    #[test]
    fn what_is_written_is_read() {
        for (delimiter, header) in [(b',', true), (b'\t', false)] {
            let options = TextOptions { delimiter, header, ..options() };
            let entries = [pair("", ""), pair("a,\"b\t", "x\ny"), pair("\\", "=")];
            let mut bytes = Vec::new();
            let mut writer = TextWriter::new(&mut bytes, &options).unwrap();
            for (key, value) in &entries {
                writer.write(key, value).unwrap();
            }
            writer.finish().unwrap();
            drop(writer);
            assert_eq!(load(std::str::from_utf8(&bytes).unwrap(), &options).unwrap(), entries);
        }
    }

    #[test]
    fn columns_are_found_by_name_and_by_number() {
        let text = "id,when,what\n1,mon,run\n2,tue,sit\n";
        let by_name = TextOptions {
            key_column: "when".into(),
            value_column: Some("what".into()),
            ..options()
        };
        assert_eq!(load(text, &by_name).unwrap(), [pair("mon", "run"), pair("tue", "sit")]);
        let by_number = TextOptions { value_column: Some("3".into()), ..options() };
        assert_eq!(load(text, &by_number).unwrap(), [pair("1", "run"), pair("2", "sit")]);
        let one_column = load("id\n7\n", &options()).unwrap();
        assert_eq!(one_column, [pair("7", "")]);
    }

    #[test]
    fn a_table_that_ends_inside_a_quoted_cell_is_refused() {
        for cut in ["k,v\n1,\"2\n", "k,v\n1,\"2\"\"", "k,\"v\n1,2\n", "\"k"] {
            let error = load(cut, &options()).unwrap_err();
            assert_eq!(error.kind, "Input", "{cut}");
            assert!(error.message.contains("quoted"), "{cut}: {}", error.message);
        }
        let whole = "k,v\n1,\"a\"\"\"\n2,5\" pipe\n3,\"\"\n4,\"x\ny\"";
        let entries = load(whole, &options()).unwrap();
        assert_eq!(entries[..2], [pair("1", "a\""), pair("2", "5\" pipe")]);
        assert_eq!(entries[2..], [pair("3", ""), pair("4", "x\ny")]);
    }

    #[test]
    fn an_empty_table_without_a_header_has_no_entries() {
        let options = TextOptions { header: false, ..options() };
        assert_eq!(load("", &options).unwrap(), []);
    }

    #[test]
    fn a_table_that_does_not_fit_is_refused_with_the_reason() {
        let unclear = load("a,b,c\n1,2,3\n", &options()).unwrap_err();
        assert!(unclear.message.contains("--value-column"), "{}", unclear.message);
        let missing = TextOptions { key_column: "z".into(), ..options() };
        let missing = load("a,b\n1,2\n", &missing).unwrap_err();
        assert!(missing.message.contains("there are: a, b"), "{}", missing.message);
        let hex = TextOptions { keys: Encoding::Hex, ..options() };
        let wrong = load("k,v\nff,1\nzz,2\n", &hex).unwrap_err();
        assert!(wrong.message.contains("line 3"), "{}", wrong.message);
        assert!(load("k,v\n1,2,3\n", &options()).is_err(), "a row with too many cells");
    }
}
