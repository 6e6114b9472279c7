//! [`Range`]: an iterator over the entries of a tree in key order, from both ends.

use crate::cursor::Cursor;
use crate::ends::{End, Ends, Entry, Walk, iterator};

/// The entries of a range of a tree in key order, as `Result<(key, value)>`, from either end. Made
/// by [`Tree::range`](crate::Tree::range) and [`Tree::prefix`](crate::Tree::prefix). The range
/// shows the state at the time of that call.
///
/// The iterator ends after its first error. Changing the direction costs a search; `rev()` costs
/// none. A program that needs no copies of keys and values uses a [`Cursor`].
#[derive(Debug)]
pub struct Range {
    ends: Ends<Cursor>,
}

iterator!(Range over Cursor);
