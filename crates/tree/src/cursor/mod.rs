//! Ordered reading of a tree, and what a cursor keeps from being given back.
//!
//! ```text
//!  cursor.rs   the cursor: seeks, moves, one leaf after the other
//!  pins.rs     the version and the sources of each cursor, where a flush can take them away
//! ```

#[expect(clippy::module_inception, reason = "the cursor itself, beside what it pins")]
mod cursor;
mod pins;

pub use cursor::{Cursor, CursorOptions};
pub use pins::Cursors;
