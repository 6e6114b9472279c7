//! Ordered reading of a tree.
//!
//! ```text
//!  cursor.rs   the cursor: seeks and steps, from leaf to leaf; errors
//!  walk.rs     the merge over one leaf, and the scan debt that it adds
//!  pins.rs     the version and the sources of each cursor, where a flush can unpin them
//! ```

#[expect(clippy::module_inception, reason = "the cursor itself, beside its parts")]
mod cursor;
mod pins;
mod walk;

pub use cursor::{Cursor, CursorOptions};
pub use pins::Cursors;
