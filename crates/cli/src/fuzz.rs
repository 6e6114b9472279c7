//! Entry points for fuzzers. Each function takes any bytes, and must neither panic nor allocate
//! without bound.

use crate::encoding::Encoding;
use crate::failure::Failure;
use crate::records::binary::{BinaryReader, BinaryWriter};
use crate::records::guess::{self, Sample};
use crate::records::lines::LinesReader;
use crate::records::{
    Cells, Entry, Format, RecordReader, RecordWriter, TextOptions, reader, writer,
};

/// Returns all entries, or the first error.
fn read_all(reader: &mut dyn RecordReader) -> Result<Vec<Entry>, Failure> {
    let mut entries = Vec::new();
    while let Some(entry) = reader.next()? {
        entries.push(entry);
    }
    Ok(entries)
}

fn write_all(writer: &mut dyn RecordWriter, entries: &[Entry]) -> Result<(), Failure> {
    entries.iter().try_for_each(|(key, value)| writer.write(key, value))?;
    writer.finish()
}

/// Reads a binary dump. If the dump is complete, writes its entries again and checks that they are
/// read back.
pub fn dump(bytes: &[u8]) {
    let read = |bytes: &[u8]| read_all(&mut BinaryReader::new(bytes)?);
    let Ok(entries) = read(bytes) else { return };
    let mut again = Vec::new();
    let written = BinaryWriter::new(&mut again).and_then(|mut out| write_all(&mut out, &entries));
    assert!(written.is_ok(), "what was read can be written");
    assert_eq!(read(&again).ok(), Some(entries), "what was written is read back");
}

/// Reads a table. The first byte selects CSV or TSV, a header row or none, and literal cells or the
/// encoding of the cells. If the table is complete, writes its entries again and checks that they
/// are read back.
pub fn table(bytes: &[u8]) {
    let Some((&how, bytes)) = bytes.split_first() else { return };
    let format = if how & 1 == 0 { Format::Csv } else { Format::Tsv };
    let cells = [
        Cells::Encoded(Encoding::Text),
        Cells::Encoded(Encoding::Hex),
        Cells::Encoded(Encoding::Base64),
        Cells::Literal,
    ][usize::from(how >> 2) % 4];
    let options = TextOptions {
        delimiter: format.delimiter(),
        header: how & 2 == 0,
        key_column: None,
        value_column: None,
        types: Vec::new(),
        keys: cells,
        values: cells,
    };
    let read = |bytes: &[u8]| read_all(&mut *reader(format, &options, bytes)?);
    let Ok(entries) = read(bytes) else { return };
    let mut again = Vec::new();
    let written =
        writer(format, &options, &mut again).and_then(|mut out| write_all(&mut *out, &entries));
    assert!(written.is_ok(), "what was read can be written");
    // A table without a header row and without entries has no columns and is refused.
    if options.header || !entries.is_empty() {
        assert_eq!(read(&again).ok(), Some(entries), "what was written is read back");
    }
}

/// Reads JSON lines, and guesses the format and the layout of a file with these bytes.
pub fn lines(bytes: &[u8]) {
    let cells = (Cells::Literal, Cells::Literal);
    let read = || read_all(&mut LinesReader::new(bytes, (None, None), cells)?);
    if let Ok(entries) = read() {
        assert!(entries.len() <= bytes.len());
    }
    let sample = Sample { bytes, is_whole: bytes.len().is_multiple_of(2) };
    if guess::format(&sample) == Format::Csv {
        let rows = guess::rows(&sample, guess::delimiter(&sample, b','));
        let _ = (guess::has_header(&rows), guess::types(&rows, 10));
    }
}

/// Decodes the bytes as keys and values that a user has typed. Also encodes the bytes and checks
/// that decoding restores them.
pub fn typed(bytes: &[u8]) {
    for encoding in [Encoding::Text, Encoding::Hex, Encoding::Base64] {
        assert_eq!(encoding.decode(&encoding.encode(bytes)).ok().as_deref(), Some(bytes));
        if let Ok(text) = std::str::from_utf8(bytes)
            && let Ok(decoded) = encoding.decode(text)
        {
            assert_eq!(encoding.decode(&encoding.encode(&decoded)).ok(), Some(decoded));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frondb_testkit::fuzz::smoke;

    #[test]
    fn no_bytes_make_the_reader_of_dumps_panic() {
        let mut sample = Vec::new();
        let mut writer = BinaryWriter::new(&mut sample).unwrap();
        for i in 0..20u8 {
            writer.write(&[i; 3], &vec![i; usize::from(i)]).unwrap();
        }
        writer.finish().unwrap();
        drop(writer);
        smoke(1, 20_000, &[sample], dump);
    }

    #[test]
    fn no_bytes_make_the_reader_of_tables_panic() {
        let samples = [
            &b"\0key,value\na,1\n\"b\"\"\",\"x\ny\"\n\\x00,\\\\\n"[..],
            b"\x03a\t1\nb\t\n",
            b"\x04key,value\n61,00ff\n",
            b"\x08key,value\nYQ==,AP8=\n",
            b"\x0e\xef\xbb\xbfa\\,1\n\"b\"\"\",\"x\ny\"\n",
        ];
        smoke(2, 20_000, &samples.map(<[u8]>::to_vec), table);
    }

    #[test]
    fn no_bytes_make_the_reader_of_lines_panic() {
        let samples = [
            &b"{\"id\": 1, \"name\": \"a\\u00e9\", \"x\": [1, {}]}\n\n{\"id\":2}\n"[..],
            b"{\"key\":\"a\",\"value\":\"b\"}\r\n",
            b"id;name\n1;x\n2;\"y;z\"\n",
        ];
        smoke(4, 20_000, &samples.map(<[u8]>::to_vec), lines);
    }

    #[test]
    fn no_bytes_make_the_reader_of_typed_keys_panic() {
        let samples = [&b"a\\x00\\n"[..], b"00ff", b"AP8=", "\u{fc}\\\\".as_bytes()];
        smoke(3, 20_000, &samples.map(<[u8]>::to_vec), typed);
    }
}
