//! [`AsyncRange`]: the entries of a range for a task that must not wait for the device.
//!
//! ```text
//!   next -- entries of the last part, at once
//!      '--- none left: a reader thread reads the next part with the cursor
//! ```
//!
//! The cursor travels with the work: while a thread reads, the range has no cursor, and gets it
//! back with the entries. A task that stops waiting loses nothing, because the range keeps the
//! future of the work.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use frondb_core::sync::Arc;
use frondb_core::{Direction, Result};
use frondb_tree::Range;

use crate::pending::Pending;
use crate::readers::Readers;

/// A key and its value.
type Entry = (Vec<u8>, Vec<u8>);

/// The first part of a range ends after this many entries, because many callers want few; each
/// further part may have four times as many, up to `PART_ENTRIES_MAX`.
const FIRST_PART_ENTRIES: usize = 16;
const PART_ENTRIES_MAX: usize = 256;

/// A part also ends after this many bytes of keys and values.
const PART_BYTES: usize = 64 << 10;

/// The entries of a range in key order, for a task that must not wait for the device;
/// [`Tree::range_async`](crate::Tree::range_async) makes one. All entries are as of that call.
///
/// A thread of the database reads up to 256 entries, or 64 KiB, at a time. The range is `Send`,
/// borrows nothing, and works under any runtime; one task at a time uses it.
///
/// ```
/// # use frondb::{CursorOptions, Db, Options, TreeOptions};
/// # fn main() -> frondb::Result<()> {
/// # let dir = frondb_testkit::TempDir::new("doc");
/// # let db = Db::open(dir.path(), Options::default())?;
/// let words = db.open_or_create_tree("words", TreeOptions::default())?;
/// for word in ["fern", "frond", "leaf"] {
///     words.put(word, "1")?;
/// }
/// let count = async {
///     let mut entries = words.range_async(CursorOptions::new().prefix("f"))?;
///     let mut count = 0;
///     while let Some((_key, _value)) = entries.next().await.transpose()? {
///         count += 1;
///     }
///     Ok::<_, frondb::Error>(count)
/// };
/// assert_eq!(futures::executor::block_on(count)?, 2);
/// # db.close()
/// # }
/// ```
#[must_use = "a range reads nothing before `next`"]
pub struct AsyncRange {
    readers: Arc<Readers>,
    direction: Direction,
    /// Entries that were read and not yet returned. An error is the last one.
    entries: VecDeque<Result<Entry>>,
    /// Largest number of entries of the next part.
    part_entries: usize,
    source: Source,
}

/// Where further entries come from.
enum Source {
    Cursor(Range),
    /// A thread reads the next part.
    Reading(Pending<Part>),
    /// The range has ended or failed.
    Ended,
}

/// A part of the range, and the rest of the range; `None` at its end.
type Part = (VecDeque<Result<Entry>>, Option<Range>);

impl AsyncRange {
    pub(crate) fn new(readers: Arc<Readers>, range: Range, direction: Direction) -> Self {
        let (entries, part_entries) = (VecDeque::new(), FIRST_PART_ENTRIES);
        Self { readers, direction, entries, part_entries, source: Source::Cursor(range) }
    }

    /// Returns the next entry; `None` at the end of the range, and after an error. The future may
    /// be dropped before it returns: the next call continues where this one was.
    ///
    /// # Errors
    /// As the entries of [`Tree::range`](crate::Tree::range); `Closed`; `Io` if no thread can be
    /// started.
    pub async fn next(&mut self) -> Option<Result<(Vec<u8>, Vec<u8>)>> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// As [`next`](Self::next), for a type that implements the trait `Stream` of some library with
    /// this range.
    #[expect(clippy::type_complexity, reason = "the documentation shows the types")]
    pub fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<(Vec<u8>, Vec<u8>)>>> {
        loop {
            if let Some(entry) = self.entries.pop_front() {
                return Poll::Ready(Some(entry));
            }
            self.source = match std::mem::replace(&mut self.source, Source::Ended) {
                Source::Ended => return Poll::Ready(None),
                Source::Cursor(range) => Source::Reading(self.read(range)),
                Source::Reading(mut part) => match Pin::new(&mut part).poll(context) {
                    Poll::Pending => {
                        self.source = Source::Reading(part);
                        return Poll::Pending;
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error))),
                    Poll::Ready(Ok((entries, rest))) => {
                        self.entries = entries;
                        rest.map_or(Source::Ended, Source::Cursor)
                    }
                },
            };
        }
    }

    /// Lets a thread read the next part.
    fn read(&mut self, range: Range) -> Pending<Part> {
        let (direction, entries_max) = (self.direction, self.part_entries);
        self.part_entries = (entries_max * 4).min(PART_ENTRIES_MAX);
        let (pending, completer) = Pending::new();
        self.readers.call(move |begun| {
            // The future may have been dropped.
            let read = || read_part(range, direction, entries_max);
            completer.complete_with(|| begun.map(|()| read()));
        });
        pending
    }
}

impl std::fmt::Debug for AsyncRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AsyncRange").field("direction", &self.direction).finish_non_exhaustive()
    }
}

fn read_part(mut range: Range, direction: Direction, entries_max: usize) -> Part {
    let (mut entries, mut bytes) = (VecDeque::new(), 0);
    while entries.len() < entries_max && bytes < PART_BYTES {
        let entry = match direction {
            Direction::Forward => range.next(),
            Direction::Backward => range.next_back(),
        };
        let Some(entry) = entry else { return (entries, None) };
        let is_failed = entry.is_err();
        bytes += entry.as_ref().map_or(0, |(key, value)| key.len() + value.len());
        entries.push_back(entry);
        if is_failed {
            return (entries, None);
        }
    }
    (entries, Some(range))
}
