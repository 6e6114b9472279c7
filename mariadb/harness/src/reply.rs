//! What a server answers: rows, or what a statement did.

use std::io;

use crate::packet::{Fields, malformed};

/// A column of a row as text, as the server sends it; none for NULL.
pub type Value = Option<Vec<u8>>;

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type, by the number of the protocol.
    pub kind: u8,
}

/// The answer to one statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// Columns of the result; none if the statement has none.
    pub columns: Vec<Column>,
    /// Its rows, in the order in which they came.
    pub rows: Vec<Vec<Value>>,
    /// Rows that the statement changed.
    pub affected: u64,
    /// The AUTO_INCREMENT value that it made last.
    pub last_id: u64,
    /// How many warnings it raised.
    pub warnings: u16,
    /// "Records: 3  Duplicates: 0  Warnings: 0" and its like.
    pub info: String,
}

impl Reply {
    /// The only value of the only row, as text: what `SELECT count(*)` answers.
    pub fn single(&self) -> Option<String> {
        match self.rows.as_slice() {
            [row] => match row.as_slice() {
                [Some(value)] => Some(text(value)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The same as a number.
    pub fn number(&self) -> Option<u64> {
        self.single()?.parse().ok()
    }
}

/// Whether more results of the same statement follow.
pub(crate) type More = bool;

/// Set in the status when another result follows.
const MORE_RESULTS: u64 = 8;

/// What a first byte other than a count of columns means.
pub(crate) const OK: u8 = 0;
pub(crate) const EOF: u8 = 0xFE;
pub(crate) const ERR: u8 = 0xFF;

impl Reply {
    /// The answer of a statement without rows.
    pub(crate) fn done(message: &[u8]) -> io::Result<(Self, More)> {
        let mut fields = Fields(message);
        fields.bytes(1)?;
        let affected = fields.length()?.ok_or_else(malformed)?;
        let last_id = fields.length()?.ok_or_else(malformed)?;
        let status = fields.integer(2)?;
        let warnings = fields.integer(2)? as u16;
        let info = text(fields.0);
        let reply = Self { affected, last_id, warnings, info, ..Self::default() };
        Ok((reply, status & MORE_RESULTS != 0))
    }

    /// Adds what the end of the rows says.
    pub(crate) fn end(&mut self, message: &[u8]) -> io::Result<More> {
        let mut fields = Fields(message);
        fields.bytes(1)?;
        self.warnings = fields.integer(2)? as u16;
        Ok(fields.integer(2)? & MORE_RESULTS != 0)
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, message: &[u8]) -> io::Result<()> {
        let mut fields = Fields(message);
        let row: io::Result<Vec<Value>> =
            self.columns.iter().map(|_| Ok(fields.text()?.map(<[u8]>::to_vec))).collect();
        self.rows.push(row?);
        Ok(())
    }
}

impl Column {
    /// From the packet that defines it.
    pub(crate) fn read(message: &[u8]) -> io::Result<Self> {
        let mut fields = Fields(message);
        // Catalog, database, table and its alias.
        for _ in 0..4 {
            fields.text()?;
        }
        let name = text(fields.text()?.ok_or_else(malformed)?);
        // Its name in the table; then the length of what follows: character set and width.
        fields.text()?;
        fields.bytes(1 + 2 + 4)?;
        Ok(Self { name, kind: fields.integer(1)? as u8 })
    }
}

/// Bytes of the server as text to show.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
