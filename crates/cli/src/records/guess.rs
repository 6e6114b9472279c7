//! Guesses the format of a file to load, the delimiter, whether there is a header row, and the
//! types of the columns, from the first bytes of the file. The functions are pure; `load` prints
//! the guess.

use super::format::MAGIC;
use super::quotes::BYTE_ORDER_MARK;
use super::record::Format;

/// Maximum number of rows that are examined.
const ROWS_MAX: usize = 1000;

/// Delimiters that are tried, after the delimiter of the format.
const DELIMITERS: [u8; 4] = [b',', b'\t', b';', b'|'];

/// The first bytes of a file.
pub(crate) struct Sample<'a> {
    pub(crate) bytes: &'a [u8],
    /// Whether `bytes` is the whole file.
    pub(crate) is_whole: bool,
}

/// The type of the cells of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CellType {
    Text,
    Number,
    Boolean,
}

impl CellType {
    /// Returns the name of the type in notes and JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    /// Returns whether a cell is of this type.
    pub(crate) fn fits(self, cell: &[u8]) -> bool {
        match self {
            Self::Text => true,
            Self::Number => is_number(cell),
            Self::Boolean => matches!(cell, b"true" | b"false"),
        }
    }
}

/// Returns whether a cell is a number in JSON syntax; 007 and +1 are not.
fn is_number(cell: &[u8]) -> bool {
    let is_clean = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    cell.iter().all(is_clean)
        && serde_json::from_slice::<&serde_json::value::RawValue>(cell).is_ok()
}

/// Returns whether the file begins as a dump. A file that is shorter than the magic counts if the
/// magic begins with its bytes, so an empty file counts.
pub(crate) fn is_dump(sample: &Sample<'_>) -> bool {
    sample.bytes.starts_with(MAGIC) || MAGIC.starts_with(sample.bytes)
}

/// Guesses the format of a file whose name does not show it.
pub(crate) fn format(sample: &Sample<'_>) -> Format {
    let text = sample.bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(sample.bytes);
    let is_text = match std::str::from_utf8(text) {
        Ok(text) => !text.contains('\0'),
        // Valid text if the sample only ends inside a character.
        Err(error) => !sample.is_whole && error.error_len().is_none() && error.valid_up_to() > 0,
    };
    match text.trim_ascii_start().first() {
        _ if !is_text || is_dump(sample) => Format::Binary,
        None => Format::Binary,
        Some(b'{') => Format::Jsonl,
        // The reader of JSON lines refuses an array, with a hint how to convert it to lines.
        Some(b'[') if is_array(text) => Format::Jsonl,
        Some(_) => Format::Csv,
    }
}

/// Returns whether the text begins as an array of JSON objects.
fn is_array(text: &[u8]) -> bool {
    let inner = text.trim_ascii_start().get(1..).unwrap_or_default();
    inner.trim_ascii_start().starts_with(b"{")
}

/// Guesses the delimiter of a table. A delimiter fits if it divides all rows into the same number
/// of cells, at least two. Returns `preferred` if it fits, otherwise the first other delimiter that
/// fits; `preferred` if none fits.
pub(crate) fn delimiter(sample: &Sample<'_>, preferred: u8) -> u8 {
    let divides = |delimiter: u8| {
        let rows = rows(sample, delimiter);
        rows.first().is_some_and(|first| first.len() > 1)
            && rows.iter().all(|row| row.len() == rows[0].len())
    };
    let others = DELIMITERS.into_iter().filter(|other| *other != preferred);
    std::iter::once(preferred).chain(others).find(|it| divides(*it)).unwrap_or(preferred)
}

/// Returns the cells of the first rows, at most [`ROWS_MAX`] of them. Omits the last row if the
/// sample may end within it, unless it is the only row.
pub(crate) fn rows(sample: &Sample<'_>, delimiter: u8) -> Vec<csv::ByteRecord> {
    let mut input = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .from_reader(sample.bytes);
    let mut rows: Vec<csv::ByteRecord> =
        input.byte_records().map_while(Result::ok).take(ROWS_MAX + 1).collect();
    if rows.len() > ROWS_MAX || (!sample.is_whole && rows.len() > 1) {
        rows.pop();
    }
    rows
}

/// Returns whether the first row has the names of the columns: it has a cell that is not empty; no
/// cell is a boolean, or begins with a digit or a sign and a digit; no cell occurs twice in the
/// row, or again in its column.
pub(crate) fn has_header(rows: &[csv::ByteRecord]) -> bool {
    let Some((first, data)) = rows.split_first() else { return true };
    let is_value = |cell: &[u8]| {
        let unsigned = cell.strip_prefix(b"-").or_else(|| cell.strip_prefix(b"+")).unwrap_or(cell);
        unsigned.first().is_some_and(u8::is_ascii_digit) || CellType::Boolean.fits(cell)
    };
    let is_repeated = |column: usize, cell: &[u8]| {
        first.iter().take(column).any(|other| other == cell)
            || data.iter().any(|row| row.get(column) == Some(cell))
    };
    let mut names = first.iter().enumerate().filter(|(_, cell)| !cell.is_empty()).peekable();
    names.peek().is_some() && names.all(|(i, cell)| !is_value(cell) && !is_repeated(i, cell))
}

/// Returns the type of each column: number or boolean if all non-empty cells of the column have
/// that type, otherwise text.
pub(crate) fn types(rows: &[csv::ByteRecord], columns: usize) -> Vec<CellType> {
    let of_column = |column: usize| {
        let cells =
            || rows.iter().filter_map(|row| row.get(column)).filter(|cell| !cell.is_empty());
        let all = |kind: CellType| cells().next().is_some() && cells().all(|cell| kind.fits(cell));
        [CellType::Number, CellType::Boolean].into_iter().find(|kind| all(*kind))
    };
    (0..columns).map(|column| of_column(column).unwrap_or(CellType::Text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Sample<'_> {
        Sample { bytes: text.as_bytes(), is_whole: true }
    }

    #[test]
    fn the_format_is_that_of_the_first_bytes() {
        assert_eq!(format(&whole("id,name\n1,x\n")), Format::Csv);
        assert_eq!(format(&whole("\u{feff}{\"a\":1}\n")), Format::Jsonl);
        assert_eq!(format(&whole("FRONDUMP\u{1}")), Format::Binary);
        assert_eq!(format(&whole("")), Format::Binary);
        assert_eq!(format(&whole("FROND")), Format::Binary, "a dump that was cut");
        assert_eq!(format(&Sample { bytes: b"a,\xff\xfe\n", is_whole: true }), Format::Binary);
        assert_eq!(format(&Sample { bytes: b"a,\xc3", is_whole: false }), Format::Csv);
    }

    #[test]
    fn the_delimiter_divides_all_rows_alike() {
        let guess = |text: &str| char::from(delimiter(&whole(text), b','));
        assert_eq!(guess("a;b;c\n1;2,5;3\n"), ';');
        assert_eq!(guess("a\tb\n1,2\t3\n"), '\t');
        assert_eq!(guess("a|b\n1|\"x|y\"\n"), '|');
        assert_eq!(guess("id\n7\n"), ',');
        // A file that looks like a dump without a header keeps the delimiter with which it was
        // written.
        assert_eq!(guess("a;b,c;d\na;b,c;d\n"), ',');
        assert_eq!(delimiter(&whole("a,b\tc,d\n"), b'\t'), b'\t');
        let cut = Sample { bytes: b"a;b;c\n1;2", is_whole: false };
        assert_eq!(delimiter(&cut, b','), b';');
    }

    #[test]
    fn a_header_has_no_numbers() {
        let header = |text: &str| has_header(&rows(&whole(text), b','));
        assert!(header("id,name\n1,x\n") && header("key,value\n") && header(",a\n0,1\n"));
        assert!(!header("1,x\n2,y\n") && !header("x,true\n") && !header(",\n"));
        assert!(header("year 2024,x\n"));
        for data in ["2024-01-31,x\n", "007,x\n", "+1,x\n", "1.2.3,x\n", "3 pieces,x\n"] {
            assert!(!header(data), "{data}");
        }
        assert!(!header("a,a\n1,2\n"), "names are different");
        assert!(!header("fern,leaf\nfrond,leaf\n"), "a name is no value of its column");
        assert!(header("fern,leaf\nleaf,fern\n"));
    }

    #[test]
    fn a_column_has_the_type_of_all_its_cells() {
        use CellType::{Boolean, Number, Text};
        let rows = rows(&whole("1,007,true,,x\n-2.5e3,8,false,,1\n,9,,,2\n"), b',');
        assert_eq!(types(&rows, 5), [Number, Text, Boolean, Text, Text]);
        assert!(
            !Number.fits(b"+1") && !Number.fits(b" 1") && !Number.fits(b"1.") && !Number.fits(b"")
        );
    }
}
