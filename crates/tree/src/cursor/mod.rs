//! Ordered reading of a tree.
//!
//! ```text
//!  cursor.rs   the cursor: seeks and steps, from leaf to leaf; errors
//!  walk.rs     the merge over one leaf, and the scan debt that it adds
//! ```
//!
//! What a cursor pins is in [`crate::pins`], where a flush can unpin it.

#[expect(clippy::module_inception, reason = "the cursor itself, beside its parts")]
mod cursor;
mod walk;

pub use cursor::{Cursor, CursorOptions};
