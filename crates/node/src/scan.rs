//! Reading rows in key order, many for each call of JavaScript.
//!
//! A call on a thread of the pool costs as much as a hundred rows. So [`Scan::fill`] copies up to
//! [`ROWS_MAX`] rows, fewer at first, so that a short scan reads little that nobody asks for. A
//! cursor that takes locks reads one row at a time: it must lock no row that the caller does not
//! get to.

use frondb::{Cursor, Entries, Result, TransactionCursor};

use crate::columns::Column;

/// Rows of the first fill; each later fill reads four times as many.
const ROWS_FIRST: usize = 16;
/// Most rows of a fill.
const ROWS_MAX: usize = 1024;
/// Bytes of keys, and of values, after which a fill ends. A single row may be longer. Rows share
/// their buffer, so a program that keeps one row keeps this much.
const BYTES_MAX: usize = 64 << 10;

/// What a scan returns of each row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    Keys,
    Values,
    Entries,
}

impl Part {
    /// Returns the part of a number; `lib/range.js` has the same numbers.
    pub(crate) fn of(number: u32) -> Self {
        match number {
            0 => Self::Keys,
            1 => Self::Values,
            _ => Self::Entries,
        }
    }
}

/// A cursor of the tree, or of a transaction.
pub(crate) enum Source {
    Tree(Cursor),
    Transaction(TransactionCursor),
}

/// Calls a method that both kinds of cursors have.
macro_rules! each {
    ($source:expr, $cursor:ident => $call:expr) => {
        match $source {
            Source::Tree($cursor) => $call,
            Source::Transaction($cursor) => $call,
        }
    };
}

/// A scan of a range.
pub(crate) struct Scan {
    source: Source,
    part: Part,
    is_reverse: bool,
    /// Rows until the limit of the caller.
    left: u64,
    /// Most rows of a fill: 1 for a cursor that takes locks.
    rows_max: usize,
    /// Rows of the next fill.
    rows_next: usize,
    has_begun: bool,
    keys: Column,
    values: Column,
}

impl Scan {
    pub(crate) fn new(
        source: Source,
        part: Part,
        is_reverse: bool,
        limit: u64,
        takes_locks: bool,
    ) -> Self {
        let (rows_max, rows_next) = if takes_locks { (1, 1) } else { (ROWS_MAX, ROWS_FIRST) };
        Self {
            source,
            part,
            is_reverse,
            left: limit,
            rows_max,
            rows_next,
            has_begun: false,
            keys: Column::default(),
            values: Column::default(),
        }
    }

    /// Reads more rows. Returns the keys and the values, of which only the asked part is filled,
    /// and whether the scan has ended.
    ///
    /// # Errors
    /// That of the cursor, also if rows were read before it.
    pub(crate) fn fill(&mut self) -> Result<(Column, Column, bool)> {
        self.rows_next = self.rows_next.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let goes_on = self.rows_next > 0 && self.read()?;
        self.left -= (self.len() as u64).min(self.left);
        self.rows_next = (self.rows_next * 4).min(self.rows_max);
        let rows = (std::mem::take(&mut self.keys), std::mem::take(&mut self.values));
        Ok((rows.0, rows.1, !goes_on || self.left == 0))
    }

    fn len(&self) -> usize {
        self.keys.len().max(self.values.len())
    }

    /// Copies rows up to a limit. Returns false at the end.
    fn read(&mut self) -> Result<bool> {
        each!(&mut self.source, cursor => cursor.expect(self.rows_next));
        while self.len() < self.rows_next {
            if !self.step()? {
                return Ok(false);
            }
            self.copy_row()?;
            self.copy_adjacent()?;
            if self.keys.bytes_len() >= BYTES_MAX || self.values.bytes_len() >= BYTES_MAX {
                break;
            }
        }
        Ok(true)
    }

    fn step(&mut self) -> Result<bool> {
        let (begun, is_reverse) = (self.has_begun, self.is_reverse);
        self.has_begun = true;
        each!(&mut self.source, cursor => match (begun, is_reverse) {
            (true, false) => cursor.next(),
            (true, true) => cursor.prev(),
            (false, false) => cursor.first(),
            (false, true) => cursor.last(),
        })
    }

    fn copy_row(&mut self) -> Result<()> {
        let Self { source, part, keys, values, .. } = self;
        if *part != Part::Keys {
            values.push(each!(&*source, cursor => cursor.value())?)?;
        }
        if *part != Part::Values {
            keys.push(each!(&*source, cursor => cursor.key()))?;
        }
        Ok(())
    }

    /// Copies the rows after the current one that the cursor can lend together.
    fn copy_adjacent(&mut self) -> Result<()> {
        let max = self.rows_next.saturating_sub(self.len());
        let Self { source, part, keys, values, is_reverse, .. } = self;
        if max == 0 || *is_reverse {
            return Ok(());
        }
        let entries: Entries<'_> = each!(source, cursor => cursor.next_entries(max, BYTES_MAX));
        if *part != Part::Values {
            let (bytes, first, ends) = entries.keys();
            keys.extend(bytes, first, ends)?;
        }
        if *part != Part::Keys {
            let (bytes, first, ends) = entries.values();
            values.extend(bytes, first, ends)?;
        }
        Ok(())
    }
}
