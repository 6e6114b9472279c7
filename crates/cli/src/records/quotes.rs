//! The quotes of a table, watched as its bytes pass: the parser takes the end of the input for the
//! end of a quoted cell, and joins what stands behind a closing quote to the cell. Both are a file
//! that is cut or wrong, and are refused.

use std::io::Read;

use crate::failure::Failure;

/// What spreadsheets put before a table in UTF-8; the parser drops it.
pub(super) const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// What passes through.
pub(super) struct Quotes<R> {
    input: R,
    delimiter: u8,
    state: Cell,
    /// Bytes of the byte order mark that were seen, as long as nothing else was.
    mark: usize,
    line: u64,
    /// Line of the first byte behind a closing quote.
    behind_quote: Option<u64>,
    ended: bool,
}

/// Where in a table a byte is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    /// Before the first byte of a cell: only here a quote opens one that is quoted.
    Start,
    /// In a cell without quotes.
    Plain,
    Quoted,
    /// Behind a quote in a quoted cell: its end, or the first of two that stand for one.
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
            behind_quote: None,
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
                self.behind_quote.get_or_insert(self.line);
                Cell::Plain
            }
            _ => Cell::Plain,
        };
    }

    /// Fails if a quoted cell did not end as one must, up to `line` or the end of the input.
    pub(super) fn check(&self, line: u64) -> Result<(), Failure> {
        if let Some(wrong) = self.behind_quote.filter(|wrong| *wrong <= line || self.ended) {
            return Err(Failure::input(format!(
                "line {wrong}: a quoted cell goes on behind its closing quote; a quote in it is \
                 written twice"
            )));
        }
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
        buffer[..n].iter().for_each(|&byte| self.pass(byte));
        Ok(n)
    }
}
