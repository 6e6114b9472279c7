//! Reads and writes entries as CSV or TSV: one entry in each row, after a header row unless the
//! options say that there is none. Cells of both formats are quoted by the rules of RFC 4180. A
//! table that was written is read back as the same bytes. Bytes that a table cannot hold, and
//! ambiguous tables, are refused.

use std::io::{Read, Write};

use super::cells::{self, Cells, DUMP_HINT};
use super::guess::CellType;
use super::quotes::{BYTE_ORDER_MARK, Quotes};
use super::record::{Entry, Layout, RecordReader, RecordWriter, record_bytes_max, shown};
use crate::encoding::{Encoding, shortened};
use crate::failure::Failure;

/// Bytes that a header row may have: the names of its columns are kept, and shown in a note.
const HEADER_BYTES_MAX: u64 = 1 << 20;

/// How a table is read or written.
#[derive(Clone, Debug)]
pub(crate) struct TextOptions {
    /// The byte between cells; in a dump a comma or a tab.
    pub(crate) delimiter: u8,
    /// Whether the first row has the names of the columns.
    pub(crate) header: bool,
    /// Column of the key: a name, or a number from 1. Default: the first.
    pub(crate) key_column: Option<String>,
    /// Column of the value. Default: the other column of two. In a table of one column the values
    /// are empty; in a table of more columns the value is a JSON object of all columns but the key.
    pub(crate) value_column: Option<String>,
    /// The types of the columns that become fields of a JSON object; columns beyond the list are
    /// text.
    pub(crate) types: Vec<CellType>,
    /// How key cells are written.
    pub(crate) keys: Cells,
    /// How value cells are written.
    pub(crate) values: Cells,
}

/// Writes a table.
pub(crate) struct TextWriter<W> {
    out: W,
    row: Vec<u8>,
    delimiter: u8,
    keys: Cells,
    values: Cells,
}

impl<W: Write> TextWriter<W> {
    /// Writes the header row, if there is one.
    pub(crate) fn new(mut out: W, options: &TextOptions) -> Result<Self, Failure> {
        let delimiter = options.delimiter;
        if options.header {
            out.write_all(&[b"key", &[delimiter][..], b"value\n"].concat())?;
        }
        Ok(Self { out, row: Vec::new(), delimiter, keys: options.keys, values: options.values })
    }

    /// Appends a cell to the row, quoted if necessary.
    fn push(&mut self, cell: &[u8]) {
        let special = |byte: &u8| matches!(byte, b'"' | b'\r' | b'\n') || *byte == self.delimiter;
        // Quote a cell that begins with a byte order mark: at the start of the table a reader would
        // take it for the mark of the file and drop it.
        if !cell.iter().any(special) && !cell.starts_with(BYTE_ORDER_MARK) {
            return self.row.extend_from_slice(cell);
        }
        self.row.push(b'"');
        for &byte in cell {
            if byte == b'"' {
                self.row.push(b'"');
            }
            self.row.push(byte);
        }
        self.row.push(b'"');
    }
}

impl<W: Write> RecordWriter for TextWriter<W> {
    fn write(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let refused = |column: &str, why: &str| {
            let shown = shortened(&Encoding::Text.encode(key));
            Failure::usage(format!(
                "the {column} of entry {shown} {why}, which a text cell cannot hold"
            ))
            .with_hint(DUMP_HINT)
        };
        let key_cell = self.keys.write(key).map_err(|why| refused("key", why))?;
        let value_cell = self.values.write(value).map_err(|why| refused("value", why))?;
        self.row.clear();
        self.push(&key_cell);
        self.row.push(self.delimiter);
        self.push(&value_cell);
        self.row.push(b'\n');
        Ok(self.out.write_all(&self.row)?)
    }

    fn finish(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }
}

/// Reads a table.
pub(crate) struct TextReader<R> {
    input: csv::Reader<Quotes<R>>,
    row: csv::ByteRecord,
    /// Whether `row` was read and is the next entry.
    is_row_next: bool,
    key: usize,
    value: Value,
    keys: Cells,
    values: Cells,
    layout: Layout,
    /// Number of cells that do not fit the types of their columns.
    kept_as_text: u64,
}

/// The columns that are the value.
enum Value {
    Empty,
    One(usize),
    /// All columns but the key, as an object: for each the index, the name as JSON, and the type.
    Others(Vec<(usize, String, CellType)>),
}

impl<R: Read> TextReader<R> {
    /// Reads the first row and finds the columns.
    pub(crate) fn new(input: R, options: &TextOptions) -> Result<Self, Failure> {
        // A literal quote takes two bytes, a byte in hex too, and an escape up to four.
        let escapes = Cells::Encoded(Encoding::Text);
        let notation = if [options.keys, options.values].contains(&escapes) { 4 } else { 2 };
        Self::with_rows_up_to(record_bytes_max(notation), input, options)
    }

    fn with_rows_up_to(
        row_bytes_max: u64,
        input: R,
        options: &TextOptions,
    ) -> Result<Self, Failure> {
        let first_bytes_max =
            if options.header { HEADER_BYTES_MAX.min(row_bytes_max) } else { row_bytes_max };
        let quotes = Quotes::new(input, options.delimiter, first_bytes_max, row_bytes_max);
        let mut input = csv::ReaderBuilder::new().delimiter(options.delimiter).from_reader(quotes);
        // Give the parser an empty header, so that it returns the first row like any other.
        // Otherwise it would keep two copies of this row, which may be large if it is data.
        input.set_byte_headers(csv::ByteRecord::new());
        let mut head = csv::ByteRecord::new();
        input.read_byte_record(&mut head)?;
        input.get_ref().check(input.position().line())?;
        if head.is_empty() {
            // An empty file is more likely the output of a failed command than a tree without
            // entries.
            return Err(Failure::input(if options.header {
                "the file is empty: it has no header row"
            } else {
                "the file is empty: a table without entries needs a header row"
            }));
        }
        if options.header {
            for name in &head {
                cells::text(name).map_err(|why| {
                    Failure::input(format!("a cell of the header row {why}"))
                        .with_hint(cells::LOAD_HINT)
                })?;
            }
        }
        let (key, value) = columns(&head, options)?;
        let layout = layout(&head, options, key, &value);
        let (keys, values) = (options.keys, options.values);
        // Without a header row the first row is data. It shows the number of columns.
        let is_row_next = !options.header;
        Ok(Self {
            input,
            row: head,
            is_row_next,
            key,
            value,
            keys,
            values,
            layout,
            kept_as_text: 0,
        })
    }
}

/// Returns the name of a column: the name in the header, or its number.
fn column_name(head: &csv::ByteRecord, options: &TextOptions, column: usize) -> String {
    match head.get(column).filter(|name| options.header && !name.is_empty()) {
        Some(name) => String::from_utf8_lossy(name).into_owned(),
        None => (column + 1).to_string(),
    }
}

fn layout(head: &csv::ByteRecord, options: &TextOptions, key: usize, value: &Value) -> Layout {
    let name = |column: usize| column_name(head, options, column);
    let value = match value {
        Value::Empty => "empty".to_owned(),
        Value::One(column) => name(*column),
        Value::Others(others) => {
            let list: Vec<String> = others
                .iter()
                .map(|(column, _, kind)| format!("{} ({})", name(*column), kind.name()))
                .collect();
            format!("a JSON object of {}", shown(&list))
        }
    };
    Layout {
        format: if options.delimiter == b'\t' { "tsv" } else { "csv" },
        delimiter: Some(char::from(options.delimiter)),
        header: options.header.then(|| (0..head.len()).map(name).collect()),
        key: name(key),
        value,
    }
}

/// Returns the value of a row as a JSON object. Counts cells that do not fit the types of their
/// columns.
fn object(
    row: &csv::ByteRecord,
    columns: &[(usize, String, CellType)],
    kept_as_text: &mut u64,
) -> Result<Vec<u8>, Failure> {
    let mut out = vec![b'{'];
    for (place, (column, name, kind)) in columns.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        out.extend_from_slice(name.as_bytes());
        out.push(b':');
        let cell = Cells::Literal.read(row.get(*column).unwrap_or_default())?;
        match kind {
            CellType::Number | CellType::Boolean if cell.is_empty() => {
                out.extend_from_slice(b"null")
            }
            CellType::Number | CellType::Boolean if kind.fits(&cell) => {
                out.extend_from_slice(&cell)
            }
            _ => {
                *kept_as_text += u64::from(*kind != CellType::Text);
                let text = serde_json::to_string(&String::from_utf8_lossy(&cell))?;
                out.extend_from_slice(text.as_bytes());
            }
        }
    }
    out.push(b'}');
    Ok(out)
}

/// Returns the index of the key column, and the columns of the value.
fn columns(head: &csv::ByteRecord, options: &TextOptions) -> Result<(usize, Value), Failure> {
    let key = match &options.key_column {
        Some(name) => column(head, options, name)?,
        None => 0,
    };
    let others = || (0..head.len()).filter(|&i| i != key);
    let value = match &options.value_column {
        Some(name) => Value::One(column(head, options, name)?),
        None if head.len() > 2 => Value::Others(object_columns(head, options, others())?),
        None => others().next().map_or(Value::Empty, Value::One),
    };
    Ok((key, value))
}

/// Returns the columns of an object, with their names as JSON and their types.
fn object_columns(
    head: &csv::ByteRecord,
    options: &TextOptions,
    columns: impl Iterator<Item = usize>,
) -> Result<Vec<(usize, String, CellType)>, Failure> {
    if options.values != Cells::Literal {
        return Err(Failure::usage(format!(
            "the table has {} columns, which are loaded as JSON objects of text: choose the column that is \
             encoded with --value-column",
            head.len()
        )));
    }
    let mut found: Vec<(usize, String, CellType)> = Vec::new();
    for column in columns {
        let name = column_name(head, options, column);
        let json = serde_json::to_string(&name)?;
        if found.iter().any(|(_, known, _)| *known == json) {
            return Err(Failure::usage(format!(
                "several columns have the name `{name}`: choose one with --value-column, or load the \
                 table with --no-header after removing its header"
            )));
        }
        let kind = options.types.get(column).copied().unwrap_or(CellType::Text);
        found.push((column, json, kind));
    }
    Ok(found)
}

/// Returns the index of the column with this name or number (from 1).
fn column(head: &csv::ByteRecord, options: &TextOptions, name: &str) -> Result<usize, Failure> {
    if options.header {
        let mut named = (0..head.len()).filter(|&i| head.get(i) == Some(name.as_bytes()));
        match (named.next(), named.next()) {
            (Some(_), Some(_)) => {
                return Err(Failure::usage(format!(
                    "several columns have the name `{name}`: give a number, from 1"
                )));
            }
            (Some(found), None) => return Ok(found),
            (None, _) => {}
        }
    }
    match name.parse::<usize>() {
        Ok(number) if (1..=head.len()).contains(&number) => Ok(number - 1),
        _ => {
            let known: Vec<_> = head.iter().map(String::from_utf8_lossy).collect();
            let known = if options.header { known.join(", ") } else { format!("1-{}", head.len()) };
            Err(Failure::usage(format!("no column `{name}`; the columns are: {known}")))
        }
    }
}

impl<R: Read> RecordReader for TextReader<R> {
    fn next(&mut self) -> Result<Option<Entry>, Failure> {
        if !std::mem::take(&mut self.is_row_next) {
            let more = self.input.read_byte_record(&mut self.row)?;
            self.input.get_ref().check(self.input.position().line())?;
            if !more {
                return Ok(None);
            }
        }
        let line = self.row.position().map_or(0, csv::Position::line);
        let refused = |failure: Failure| failure.context(format!("line {line}"));
        let cell = |i: usize| self.row.get(i).unwrap_or_default();
        let key = self.keys.read(cell(self.key)).map_err(refused)?;
        let value = match &self.value {
            Value::Empty => self.values.read(b""),
            Value::One(column) => self.values.read(cell(*column)),
            Value::Others(columns) => object(&self.row, columns, &mut self.kept_as_text),
        };
        Ok(Some((key, value.map_err(refused)?)))
    }

    fn layout(&self) -> Layout {
        self.layout.clone()
    }

    fn kept_as_text(&self) -> u64 {
        self.kept_as_text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> TextOptions {
        TextOptions {
            delimiter: b',',
            header: true,
            key_column: None,
            value_column: None,
            types: Vec::new(),
            keys: Cells::Literal,
            values: Cells::Literal,
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
    fn written_entries_are_read_back() {
        // Without a header, the first key is the first cell of the file.
        let texts = [
            pair("\u{feff}mark", "\u{feff}"),
            pair("", ""),
            pair("a,\"b\t", "x\ny\r\n\rz"),
            pair("C:\\temp", "\\0 \\x41 \\"),
            pair("\"", " leading, trailing "),
            pair("#", "="),
            pair("\u{1}\u{7f}", "\u{2028}"),
        ];
        let binary =
            [(vec![0], vec![0xff, b'"', b'\n', 0]), (b"\\x41".to_vec(), b"A\xc3".to_vec())];
        for (delimiter, header) in [(b',', true), (b'\t', false), (b',', false), (b'\t', true)] {
            for encoding in [Encoding::Text, Encoding::Hex, Encoding::Base64] {
                for escapes in [false, true] {
                    let cells = Cells::of(encoding, escapes);
                    let options =
                        TextOptions { delimiter, header, keys: cells, values: cells, ..options() };
                    let mut entries = texts.to_vec();
                    if cells != Cells::Literal {
                        entries.extend(binary.clone());
                    }
                    let bytes = written(&entries, &options).unwrap();
                    let text = std::str::from_utf8(&bytes).unwrap();
                    assert_eq!(load(text, &options).unwrap(), entries, "{text}");
                }
            }
        }
    }

    fn written(entries: &[Entry], options: &TextOptions) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        let mut writer = TextWriter::new(&mut bytes, options)?;
        entries.iter().try_for_each(|(key, value)| writer.write(key, value))?;
        writer.finish()?;
        drop(writer);
        Ok(bytes)
    }

    #[test]
    fn a_row_that_is_too_long_is_refused() {
        let long = "x".repeat(100_000);
        let wrong = |text: &str, header: bool| {
            let options = TextOptions { header, ..options() };
            let rows = (|| {
                let mut reader = TextReader::with_rows_up_to(50_000, text.as_bytes(), &options)?;
                while reader.next()?.is_some() {}
                Ok(())
            })();
            rows.map_err(|failure: Failure| failure.message).unwrap_err()
        };
        let refused =
            |line: u64| format!("line {line}: the row that begins here is longer than 50000 bytes");
        assert_eq!(wrong(&long, true), refused(1));
        assert_eq!(wrong(&long, false), refused(1));
        assert_eq!(wrong(&format!("k,v\r\na,1\r\nb,{long}\n"), true), refused(3));
        let lines = "line\n".repeat(20_000);
        assert_eq!(wrong(&format!("k,v\na,\"{lines}\"\n"), true), refused(2));
        let header = format!("\n{}", "x".repeat(2 << 20));
        let refused = TextReader::new(header.as_bytes(), &options()).err().unwrap().message;
        assert_eq!(refused, "line 2: the row that begins here is longer than 1 MiB");
        let rows = format!("k,v\n{}", "a,1\n".repeat(50_000));
        let mut reader = TextReader::with_rows_up_to(50_000, rows.as_bytes(), &options()).unwrap();
        while reader.next().unwrap().is_some() {}
    }

    #[test]
    fn cells_are_literal() {
        let text = "path,name\nC:\\temp\\new,\\x41\n";
        assert_eq!(load(text, &options()).unwrap(), [pair("C:\\temp\\new", "\\x41")]);
        let bytes = written(&[pair("C:\\temp", "\\")], &options()).unwrap();
        assert_eq!(bytes, b"key,value\nC:\\temp,\\\n");
        let escapes = TextOptions { keys: Cells::of(Encoding::Text, true), ..options() };
        assert_eq!(load("k,v\na\\tb,\\t\n", &escapes).unwrap(), [pair("a\tb", "\\t")]);
    }

    #[test]
    fn bytes_that_are_not_text_have_no_literal_cell() {
        for (key, value, column) in
            [(&b"k\xff"[..], &b"v"[..], "key"), (b"k", b"\xff", "value"), (b"k", b"a\0b", "value")]
        {
            let error = written(&[(key.to_vec(), value.to_vec())], &options()).unwrap_err();
            assert_eq!(error.code(), 2);
            assert!(error.message.contains(column), "{}", error.message);
            assert!(error.hint().unwrap().contains("--escapes"));
        }
        for wrong in [&b"k,v\na,1\nb,\xe4\n"[..], b"k,v\na,1\nb\0,2\n"] {
            let mut reader = TextReader::new(wrong, &options()).unwrap();
            assert!(reader.next().unwrap().is_some());
            let error = reader.next().unwrap_err();
            assert_eq!(error.code(), 10);
            assert!(error.message.starts_with("line 3: a cell has "), "{}", error.message);
        }
    }

    #[test]
    fn a_table_that_is_not_clear_is_refused() {
        for (wrong, line) in [
            ("k,v\n1,\"2\"x\n3,4\n", "line 2"),
            ("k,v\n1,\"2\n\"x\n3,4\n", "line 3"),
            ("\"k\"x,v\n", "line 1"),
            ("\u{feff}\"k\"x,v\n", "line 1"),
        ] {
            let error = load(wrong, &options()).unwrap_err();
            assert_eq!(error.code(), 10, "{wrong}");
            assert!(error.message.contains(line), "{wrong}: {}", error.message);
        }
        let twice = TextOptions { key_column: Some("a".into()), ..options() };
        let twice = load("a,a\n1,2\n", &twice).unwrap_err();
        assert!(twice.message.contains("several columns"), "{}", twice.message);
        let marked = load("\u{feff}k,\"v\n\"\n1,2\n", &options()).unwrap();
        assert_eq!(marked, [pair("1", "2")]);
    }

    #[test]
    fn an_empty_file_is_no_table_with_a_header() {
        let error = load("", &options()).unwrap_err();
        assert_eq!(error.code(), 10);
        assert!(error.message.contains("empty"), "{}", error.message);
    }

    #[test]
    fn columns_are_found_by_name_and_by_number() {
        let text = "id,when,what\n1,mon,run\n2,tue,sit\n";
        let by_name = TextOptions {
            key_column: Some("when".into()),
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
    fn the_other_columns_are_an_object() {
        use CellType::{Boolean, Number, Text};
        let text = "id,name,age,\"is \"\"on\"\"\",\n1,\"a\"\"b\",37,true,x\n2,,,,\n3,c,old,no,\n";
        let types = vec![Number, Text, Number, Boolean, Text];
        let typed = TextOptions { types, ..options() };
        let objects = [
            r#"{"name":"a\"b","age":37,"is \"on\"":true,"5":"x"}"#,
            r#"{"name":"","age":null,"is \"on\"":null,"5":""}"#,
            r#"{"name":"c","age":"old","is \"on\"":"no","5":""}"#,
        ];
        let expected = [("1", objects[0]), ("2", objects[1]), ("3", objects[2])];
        assert_eq!(load(text, &typed).unwrap(), expected.map(|(key, value)| pair(key, value)));
        let without = TextOptions { header: false, key_column: Some("2".into()), ..options() };
        assert_eq!(load("1,k,3\n", &without).unwrap(), [pair("k", r#"{"1":"1","3":"3"}"#)]);
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
    fn a_table_without_rows_has_a_header() {
        let without = TextOptions { header: false, ..options() };
        for nothing in ["", "\n\n", "\u{feff}"] {
            let error = load(nothing, &without).unwrap_err();
            assert_eq!(error.code(), 10);
            assert!(error.message.contains("empty"), "{}", error.message);
        }
        assert_eq!(load("k,v\n", &options()).unwrap(), []);
    }

    #[test]
    fn a_table_that_does_not_fit_is_refused_with_the_reason() {
        let encoded = TextOptions { values: Cells::Encoded(Encoding::Hex), ..options() };
        let unclear = load("a,b,c\n1,2,3\n", &encoded).unwrap_err();
        assert!(unclear.message.contains("--value-column"), "{}", unclear.message);
        let twice = load("a,b,b\n1,2,3\n", &options()).unwrap_err();
        assert!(twice.message.contains("`b`"), "{}", twice.message);
        let missing = TextOptions { key_column: Some("z".into()), ..options() };
        let missing = load("a,b\n1,2\n", &missing).unwrap_err();
        assert!(missing.message.contains("the columns are: a, b"), "{}", missing.message);
        let hex = TextOptions { keys: Cells::Encoded(Encoding::Hex), ..options() };
        let wrong = load("k,v\nff,1\nzz,2\n", &hex).unwrap_err();
        assert!(wrong.message.contains("line 3"), "{}", wrong.message);
        assert_eq!(wrong.code(), 10);
        let escapes = TextOptions { values: Cells::of(Encoding::Text, true), ..options() };
        let wrong = load("k,v\na,\\q\n", &escapes).unwrap_err();
        assert_eq!(wrong.code(), 10);
        let long = load("k,v\n1,2,3\n", &options()).unwrap_err();
        assert_eq!(long.code(), 10, "a row with too many cells");
    }
}
