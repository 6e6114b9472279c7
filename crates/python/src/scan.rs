//! Reading rows in key order, many for each release of the interpreter lock.
//!
//! ```text
//!   cursor --fill()--> Rows: keys, values, their ends --take()--> one row for each `next()`
//!          without the lock                            with the lock
//! ```
//!
//! A release and a new take of the lock cost about as much as a row. So [`Scan::fill`] copies up to
//! [`ROWS_MAX`] rows, fewer at first, so that a short scan reads little that nobody asks for. A
//! cursor that takes locks reads one row at a time: it must lock no row that the caller does not
//! get to.

use frondb::{Cursor, Entries, Error, Result, TransactionCursor};

/// Rows of the first fill; each later fill reads four times as many.
const ROWS_FIRST: usize = 16;
/// Most rows of a fill.
const ROWS_MAX: usize = 1024;
/// Bytes of keys, and of values, after which a fill ends. A single row may be longer.
const BYTES_MAX: usize = 256 << 10;

/// What a scan returns of each row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    Keys,
    Values,
    Items,
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

/// Copies of rows.
#[derive(Default)]
struct Rows {
    keys: Column,
    values: Column,
    next: usize,
}

/// Byte strings, one after the other.
#[derive(Default)]
struct Column {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Column {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        // The bytes of one huge value are not kept for the rest of the scan.
        self.bytes.shrink_to(BYTES_MAX * 2);
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
    }

    /// Appends strings that are adjacent in `bytes`, the first from `first` on.
    fn extend(&mut self, bytes: &[u8], first: u32, ends: &[u32]) {
        let (Some(&last), first) = (ends.last(), first as usize) else { return };
        let before = self.bytes.len();
        self.bytes.extend_from_slice(&bytes[first..last as usize]);
        self.ends.extend(ends.iter().map(|&end| before + end as usize - first));
    }

    /// Returns a string; an empty one if the scan does not read this column.
    fn get(&self, index: usize) -> &[u8] {
        let Some(&end) = self.ends.get(index) else { return b"" };
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..end]
    }
}

/// A scan of a range.
pub(crate) struct Scan {
    source: Source,
    part: Part,
    is_reverse: bool,
    /// Most rows of a fill: 1 for a cursor that takes locks.
    rows_max: usize,
    /// Rows of the next fill.
    rows_next: usize,
    has_begun: bool,
    rows: Rows,
    /// How the scan ended. An error is returned after the rows before it.
    end: Option<Result<()>>,
}

impl Scan {
    pub(crate) fn new(source: Source, part: Part, is_reverse: bool, takes_locks: bool) -> Self {
        let (rows_max, rows_next) = if takes_locks { (1, 1) } else { (ROWS_MAX, ROWS_FIRST) };
        Self {
            source,
            part,
            is_reverse,
            rows_max,
            rows_next,
            has_begun: false,
            rows: Rows::default(),
            end: None,
        }
    }

    pub(crate) fn part(&self) -> Part {
        self.part
    }

    /// Returns the next key and value, of which only the asked part is filled, if it was read
    /// already.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<(&[u8], &[u8])> {
        let Rows { keys, values, next } = &mut self.rows;
        let at = *next;
        if at >= keys.ends.len().max(values.ends.len()) {
            return None;
        }
        *next += 1;
        Some((keys.get(at), values.get(at)))
    }

    /// Reads more rows after all were taken. Returns whether there is one.
    ///
    /// # Errors
    /// That of the cursor, once; the scan ends after it.
    pub(crate) fn fill(&mut self) -> Result<bool> {
        self.rows.keys.clear();
        self.rows.values.clear();
        self.rows.next = 0;
        if self.end.is_none() {
            let read = self.read();
            self.rows_next = (self.rows_next * 4).min(self.rows_max);
            if !matches!(read, Ok(true)) {
                self.end = Some(read.map(drop));
            }
        }
        if self.len() > 0 {
            return Ok(true);
        }
        self.end.replace(Ok(())).unwrap_or(Ok(())).map(|()| false)
    }

    /// Moves over about `max` rows or to the end, and counts them. Returns the number, and whether
    /// there may be more.
    ///
    /// # Errors
    /// That of the cursor.
    pub(crate) fn count(&mut self, max: u64) -> Result<(u64, bool)> {
        let mut count = 0;
        while count < max {
            if !self.step()? {
                return Ok((count, false));
            }
            count += 1;
            while let rows @ 1.. = self.adjacent(ROWS_MAX).len() {
                count += rows as u64;
            }
        }
        Ok((count, true))
    }

    fn len(&self) -> usize {
        self.rows.keys.ends.len().max(self.rows.values.ends.len())
    }

    /// Copies rows up to a limit. Returns false at the end.
    fn read(&mut self) -> Result<bool> {
        each!(&mut self.source, cursor => cursor.expect(self.rows_next));
        while self.len() < self.rows_next {
            if !self.step()? {
                return Ok(false);
            }
            self.copy_row()?;
            self.copy_adjacent();
            let Rows { keys, values, .. } = &self.rows;
            if keys.bytes.len() >= BYTES_MAX || values.bytes.len() >= BYTES_MAX {
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
        let Self { source, part, rows, .. } = self;
        // Reading the value first: if it fails, the row has no key without a value.
        if *part != Part::Keys {
            rows.values.push(each!(&*source, cursor => cursor.value())?);
        }
        if *part != Part::Values {
            rows.keys.push(each!(&*source, cursor => cursor.key()));
        }
        Ok(())
    }

    /// Copies the rows after the current one that the cursor can lend together.
    fn copy_adjacent(&mut self) {
        let Self { source, part, rows, rows_next, is_reverse, .. } = self;
        let copied = rows.keys.ends.len().max(rows.values.ends.len());
        let max = rows_next.saturating_sub(copied);
        if max == 0 || *is_reverse {
            return;
        }
        let entries: Entries<'_> = each!(source, cursor => cursor.next_entries(max, BYTES_MAX));
        if *part != Part::Values {
            let (bytes, first, ends) = entries.keys();
            rows.keys.extend(bytes, first, ends);
        }
        if *part != Part::Keys {
            let (bytes, first, ends) = entries.values();
            rows.values.extend(bytes, first, ends);
        }
    }

    /// Returns the rows after the current one that the cursor can lend together.
    fn adjacent(&mut self, max: usize) -> Entries<'_> {
        if self.is_reverse {
            return Entries::default();
        }
        each!(&mut self.source, cursor => cursor.next_entries(max, BYTES_MAX))
    }
}

/// The error of an unknown part, which only the package itself can name.
pub(crate) fn part_of(name: &str) -> Result<Part> {
    match name {
        "keys" => Ok(Part::Keys),
        "values" => Ok(Part::Values),
        "items" => Ok(Part::Items),
        _ => Err(Error::invalid(format!("a row has no part {name:?}"))),
    }
}
