//! The key type of pivots and bounds.

use frondb_core::sync::Arc;

/// A key that is shared without copying it. Used for pivots and bounds.
pub type Key = Arc<[u8]>;
