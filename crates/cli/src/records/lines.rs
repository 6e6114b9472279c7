//! Reads entries from JSON lines: one object on each line, with a field for the key.

use std::fmt;
use std::io::{BufRead, BufReader, Read};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::cells::Cells;
use super::quotes::BYTE_ORDER_MARK;
use super::record::{Entry, Layout, RecordReader, record_bytes_max, too_long};
use crate::failure::Failure;

/// Most bytes that a file needs for one byte of a key or value: a JSON escape such as `\u0000`.
const NOTATION: u64 = 6;

/// Hint for a file that is not JSON lines.
const LINES_HINT: &str =
    "write one object on each line, for example with jq -c . (jq -c '.[]' for an array)";

/// The fields of an object in their order; each value is its JSON text in the file.
struct Fields(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields, M::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// Which fields become the value.
enum Value {
    None,
    One(String),
    /// All fields but the key, as an object.
    Others,
}

/// Reads an entry from each line that is not empty.
pub(crate) struct LinesReader<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    line_bytes_max: u64,
    number: u64,
    /// The fields of the first line, which was read to choose the columns; `None` after the line
    /// was returned.
    first: Option<Fields>,
    key: String,
    value: Value,
    /// Whether the user chose the field of the value. Then other fields are omitted on purpose.
    is_chosen: bool,
    keys: Cells,
    values: Cells,
}

impl<R: Read> LinesReader<R> {
    /// Reads the first line. Chooses the fields of the key and of the value if the user does not
    /// name them.
    pub(crate) fn new(
        input: R,
        columns: (Option<&str>, Option<&str>),
        cells: (Cells, Cells),
    ) -> Result<Self, Failure> {
        Self::with_lines_up_to(record_bytes_max(NOTATION), input, columns, cells)
    }

    fn with_lines_up_to(
        line_bytes_max: u64,
        input: R,
        columns: (Option<&str>, Option<&str>),
        (keys, values): (Cells, Cells),
    ) -> Result<Self, Failure> {
        let input = BufReader::new(input);
        let (line, number) = (Vec::new(), 0);
        let (key, value) = (String::new(), Value::None);
        let is_chosen = columns.1.is_some();
        let first = None;
        let mut reader = Self {
            input,
            line,
            line_bytes_max,
            number,
            first,
            key,
            value,
            is_chosen,
            keys,
            values,
        };
        let first = reader.fields()?;
        let first = first.ok_or_else(|| Failure::input("the file is empty: it has no objects"))?;
        let names: Vec<&str> = first.0.iter().map(|(name, _)| name.as_str()).collect();
        let none = || Failure::input("the first object has no fields");
        let known = |name: &str| match names.contains(&name) {
            true => Ok(name.to_owned()),
            false => {
                let known = names.join(", ");
                Err(Failure::usage(format!("no field `{name}`; the fields are: {known}")))
            }
        };
        let key = columns
            .0
            .map_or_else(|| names.first().map(|name| (*name).to_owned()).ok_or_else(none), known)?;
        let mut others = names.iter().filter(|name| **name != key);
        let value = match (columns.1, others.next(), others.next()) {
            (Some(name), ..) => Value::One(known(name)?),
            (None, None, _) => Value::None,
            (None, Some(name), None) => Value::One((*name).to_owned()),
            (None, Some(_), Some(_)) => Value::Others,
        };
        (reader.key, reader.value, reader.first) = (key, value, Some(first));
        Ok(reader)
    }

    /// Reads the fields of the next line that is not empty.
    fn fields(&mut self) -> Result<Option<Fields>, Failure> {
        loop {
            self.line.clear();
            self.number += 1;
            let mut limited = (&mut self.input).take(self.line_bytes_max + 1);
            match limited.read_until(b'\n', &mut self.line)? as u64 {
                0 => return Ok(None),
                bytes if bytes > self.line_bytes_max => {
                    let failure = too_long("line", self.number, self.line_bytes_max);
                    return Err(failure.with_hint(LINES_HINT));
                }
                _ => {}
            }
            let mut line = self.line.as_slice();
            if self.number == 1 {
                line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            let parsed = serde_json::from_slice(line);
            return parsed.map(Some).map_err(|error| {
                Failure::input(format!("line {}: no JSON object: {error}", self.number))
                    .with_hint(LINES_HINT)
            });
        }
    }

    /// Returns the bytes of a field: the characters of a string, or the JSON text of any other
    /// value.
    fn cell(&self, value: &RawValue, cells: Cells, what: &str) -> Result<Vec<u8>, Failure> {
        let at = |failure: Failure| failure.context(format!("line {}", self.number));
        let text = value.get();
        if text.starts_with('"') {
            let text: String = serde_json::from_str(text).map_err(|error| {
                at(Failure::input(format!("the {what} is no string of characters: {error}")))
            })?;
            return cells.read(text.as_bytes()).map_err(at);
        }
        Ok(text.as_bytes().to_vec())
    }

    fn entry(&self, fields: Fields) -> Result<Entry, Failure> {
        let refused = |why: String| Failure::input(format!("line {}: {why}", self.number));
        let find = |name: &str| {
            let mut found = fields.0.iter().filter(|(known, _)| known == name);
            match (found.next(), found.next()) {
                (Some((_, value)), None) => Ok(value),
                (None, _) => Err(refused(format!("there is no field `{name}`"))),
                (Some(_), Some(_)) => Err(refused(format!("the field `{name}` comes twice"))),
            }
        };
        let key = find(&self.key)?;
        if matches!(key.get().as_bytes().first(), Some(b'{' | b'[' | b'n')) {
            let name = &self.key;
            return Err(refused(format!("the field `{name}` is no key: {}", key.get())));
        }
        let key = self.cell(key, self.keys, "key")?;
        let is_kept = |name: &String| match &self.value {
            Value::None => *name == self.key,
            Value::One(value) => *name == self.key || name == value,
            Value::Others => true,
        };
        let lost = fields.0.iter().find(|(name, _)| !self.is_chosen && !is_kept(name));
        if let Some((name, _)) = lost {
            return Err(refused(format!(
                "the field `{name}` is not in the first line; choose the value with --value-column"
            )));
        }
        let value = match &self.value {
            Value::None => Vec::new(),
            Value::One(name) => self.cell(find(name)?, self.values, "value")?,
            Value::Others => {
                let mut object = String::from("{");
                for (name, value) in fields.0.iter().filter(|(name, _)| *name != self.key) {
                    let comma = if object.len() > 1 { "," } else { "" };
                    let name = serde_json::to_string(name)?;
                    object.push_str(&format!("{comma}{name}:{}", value.get()));
                }
                object.push('}');
                object.into_bytes()
            }
        };
        Ok((key, value))
    }
}

impl<R: Read> RecordReader for LinesReader<R> {
    fn next(&mut self) -> Result<Option<Entry>, Failure> {
        let fields = match self.first.take() {
            Some(first) => Some(first),
            None => self.fields()?,
        };
        fields.map(|fields| self.entry(fields)).transpose()
    }

    fn layout(&self) -> Layout {
        let value = match &self.value {
            Value::None => "empty".to_owned(),
            Value::One(name) => name.clone(),
            Value::Others => "the other fields as a JSON object".to_owned(),
        };
        Layout { format: "jsonl", delimiter: None, header: None, key: self.key.clone(), value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_refused() {
        let text = format!("{{\"k\":\"a\",\"v\":1}}\n{{\"k\":\"{}\"}}\n", "x".repeat(1000));
        let cells = (Cells::Literal, Cells::Literal);
        let read = |bytes| {
            let columns = (Some("k"), Some("v"));
            LinesReader::with_lines_up_to(bytes, text.as_bytes(), columns, cells)
        };
        let mut reader = read(500).unwrap();
        assert_eq!(reader.next().unwrap(), Some((b"a".to_vec(), b"1".to_vec())));
        let error = reader.next().unwrap_err().message;
        assert_eq!(error, "line 2: the line that begins here is longer than 500 bytes");
        let error = read(10).err().unwrap().message;
        assert_eq!(error, "line 1: the line that begins here is longer than 10 bytes");
    }
}
