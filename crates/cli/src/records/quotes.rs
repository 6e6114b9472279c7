//! Checks the quotes of a table while the parser reads it. The CSV parser accepts two errors: the
//! end of input inside a quoted cell, and text after a closing quote. Both mean a truncated or
//! wrong file, and this module refuses them.

use std::io::Read;

use crate::failure::Failure;

/// The byte order mark that spreadsheets write before a table in UTF-8; the parser skips it.
pub(super) const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A reader that checks the quotes in the bytes that it reads.
pub(super) struct Quotes<R> {
    input: R,
    delimiter: u8,
    state: Cell,
    /// Number of bytes of the byte order mark that were read; the length of the mark after any
    /// other byte was read.
    mark: usize,
    line: u64,
    /// Line of the first closing quote that is followed by neither a delimiter nor a line break.
    after_quote: Option<u64>,
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
    pub(super) fn new(input: R, delimiter: u8) -> Self {
        Self {
            input,
            delimiter,
            state: Cell::Start,
            mark: 0,
            line: 1,
            after_quote: None,
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
        self.state = match (self.state, byte) {
            (Cell::Quoted, b'"') => Cell::Quote,
            (Cell::Quoted, _) | (Cell::Quote | Cell::Start, b'"') => Cell::Quoted,
            (_, b'\r' | b'\n') => Cell::Start,
            (_, other) if other == self.delimiter => Cell::Start,
            (Cell::Quote, _) => {
                self.after_quote.get_or_insert(self.line);
                Cell::Plain
            }
            _ => Cell::Plain,
        };
    }

    /// Fails if a quoted cell up to `line` is malformed, or if the input has ended inside a quoted
    /// cell.
    pub(super) fn check(&self, line: u64) -> Result<(), Failure> {
        if let Some(wrong) = self.after_quote.filter(|wrong| *wrong <= line || self.ended) {
            return Err(Failure::input(format!(
                "line {wrong}: text follows the closing quote of a cell; quotes in a quoted cell are \
                 doubled"
            )));
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
        let n = self.input.read(buffer)?;
        self.ended |= n == 0 && !buffer.is_empty();
        buffer[..n].iter().for_each(|&byte| self.pass(byte));
        Ok(n)
    }
}
