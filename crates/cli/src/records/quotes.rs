//! Checks the quotes and the lengths of the rows of a table while the parser reads it. The CSV
//! parser accepts two errors: the end of input inside a quoted cell, and text after a closing
//! quote. Both mean a truncated or wrong file, and this module refuses them. The parser keeps a row
//! in memory however long it is, so this module ends the input within a row that is too long.

use std::io::Read;

use super::record::too_long;
use crate::failure::Failure;

/// The byte order mark that spreadsheets write before a table in UTF-8; the parser skips it.
pub(super) const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A reader that checks the quotes and the lengths of rows in the bytes that it reads.
pub(super) struct Quotes<R> {
    input: R,
    delimiter: u8,
    state: Cell,
    /// Number of bytes of the byte order mark that were read. The first byte that is not part of
    /// the mark sets the number to the mark's length, so that no mark is expected after it.
    mark: usize,
    line: u64,
    /// Line of the first closing quote that is followed by neither a delimiter nor a line break.
    after_quote: Option<u64>,
    /// Bytes of the current row so far, and the line in which it begins.
    row_bytes: u64,
    row_line: u64,
    /// Bytes that the current row may have, and that each later row may have.
    row_bytes_max: u64,
    later_bytes_max: u64,
    ended: bool,
}

/// Where the reader is within a cell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    /// Before the first byte of a cell; a quote opens a quoted cell only here.
    Start,
    /// In an unquoted cell.
    Plain,
    Quoted,
    /// After a quote in a quoted cell. The quote ends the cell, or is the first of a doubled quote.
    Quote,
}

impl<R> Quotes<R> {
    /// The first row may have `first_bytes_max` bytes, the others `later_bytes_max`.
    pub(super) fn new(input: R, delimiter: u8, first_bytes_max: u64, later_bytes_max: u64) -> Self {
        Self {
            input,
            delimiter,
            state: Cell::Start,
            mark: 0,
            line: 1,
            after_quote: None,
            row_bytes: 0,
            row_line: 1,
            row_bytes_max: first_bytes_max,
            later_bytes_max,
            ended: false,
        }
    }

    fn pass(&mut self, byte: u8) {
        if self.mark < BYTE_ORDER_MARK.len() && byte == BYTE_ORDER_MARK[self.mark] {
            self.mark += 1;
            return;
        }
        self.mark = BYTE_ORDER_MARK.len();
        self.line += u64::from(byte == b'\n');
        self.row_bytes += 1;
        self.state = match (self.state, byte) {
            (Cell::Quoted, b'"') => Cell::Quote,
            (Cell::Quoted, _) | (Cell::Quote | Cell::Start, b'"') => Cell::Quoted,
            (_, b'\r' | b'\n') => {
                // The parser skips empty lines, so the first row may still follow.
                if self.row_bytes > 1 {
                    self.row_bytes_max = self.later_bytes_max;
                }
                (self.row_bytes, self.row_line) = (0, self.line);
                Cell::Start
            }
            (_, other) if other == self.delimiter => Cell::Start,
            (Cell::Quote, _) => {
                self.after_quote.get_or_insert(self.line);
                Cell::Plain
            }
            _ => Cell::Plain,
        };
    }

    fn is_row_too_long(&self) -> bool {
        self.row_bytes > self.row_bytes_max
    }

    /// Fails if a quoted cell up to `line` is malformed, or if the input has ended inside a quoted
    /// cell or in a row that is too long.
    pub(super) fn check(&self, line: u64) -> Result<(), Failure> {
        if let Some(wrong) = self.after_quote.filter(|wrong| *wrong <= line || self.ended) {
            return Err(Failure::input(format!(
                "line {wrong}: text follows the closing quote of a cell; quotes in a quoted cell are \
                 doubled"
            )));
        }
        if self.ended && self.is_row_too_long() {
            return Err(too_long("row", self.row_line, self.row_bytes_max).with_hint(
                "check the line breaks of the file and the closing quotes of its cells",
            ));
        }
        if self.ended && self.state == Cell::Quoted {
            return Err(Failure::input(
                "the file ends inside a quoted cell: it is truncated, or a quote is missing",
            ));
        }
        Ok(())
    }
}

impl<R: Read> Read for Quotes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = if self.is_row_too_long() { 0 } else { self.input.read(buffer)? };
        self.ended |= n == 0 && !buffer.is_empty();
        buffer[..n].iter().for_each(|&byte| self.pass(byte));
        Ok(n)
    }
}
