//! A server's reply: rows, or the effect of a statement.

use std::io;

use crate::packet::{Fields, malformed};

/// A value as the server sends it, as text; none for NULL.
pub type Value = Option<Vec<u8>>;

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Name of the column.
    pub name: String,
    /// Type of the column, as a number of the client protocol.
    pub kind: u8,
}

/// The answer to one statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// Columns of the result; empty if the statement has no result.
    pub columns: Vec<Column>,
    /// The rows in the order in which they arrived.
    pub rows: Vec<Vec<Value>>,
    /// The number of rows that the statement changed.
    pub affected: u64,
    /// The first AUTO_INCREMENT value that the statement generated.
    pub last_id: u64,
    /// Number of the statement's warnings.
    pub warnings: u16,
    /// The server's text, such as "Records: 3  Duplicates: 0  Warnings: 0".
    pub info: String,
}

impl Reply {
    /// The only value of the only row as text, as for `SELECT count(*)`; none for other results and
    /// for NULL.
    pub fn single(&self) -> Option<String> {
        match self.rows.as_slice() {
            [row] => match row.as_slice() {
                [Some(value)] => Some(text(value)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The only value of the only row as a number; none if there is no such number.
    pub fn number(&self) -> Option<u64> {
        self.single()?.parse().ok()
    }
}

/// Whether more results of the same statement follow.
pub(crate) type More = bool;

/// Status flag: another result follows.
const MORE_RESULTS: u64 = 8;

/// First bytes of packets that are not a count of columns.
pub(crate) const OK: u8 = 0;
pub(crate) const EOF: u8 = 0xFE;
pub(crate) const ERR: u8 = 0xFF;

impl Reply {
    /// Decodes the reply to a statement without rows.
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

    /// Adds the fields of the packet that ends the rows.
    pub(crate) fn end(&mut self, message: &[u8]) -> io::Result<More> {
        let mut fields = Fields(message);
        fields.bytes(1)?;
        self.warnings = fields.integer(2)? as u16;
        Ok(fields.integer(2)? & MORE_RESULTS != 0)
    }

    pub(crate) fn row(&mut self, message: &[u8]) -> io::Result<()> {
        let mut fields = Fields(message);
        let row: io::Result<Vec<Value>> =
            self.columns.iter().map(|_| Ok(fields.text()?.map(<[u8]>::to_vec))).collect();
        self.rows.push(row?);
        Ok(())
    }
}

impl Column {
    /// Decodes a column from its packet.
    pub(crate) fn read(message: &[u8]) -> io::Result<Self> {
        let mut fields = Fields(message);
        // Catalog, database, table and its alias.
        for _ in 0..4 {
            fields.text()?;
        }
        let name = text(fields.text()?.ok_or_else(malformed)?);
        // The column's original name; then the length of the fixed fields, the character set and
        // the width.
        fields.text()?;
        fields.bytes(1 + 2 + 4)?;
        Ok(Self { name, kind: fields.integer(1)? as u8 })
    }
}

/// Decodes bytes of the server to text for people; invalid UTF-8 is replaced.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
