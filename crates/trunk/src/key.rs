//! The key type of pivots and bounds.

use frondb_core::sync::Arc;

/// A key shared without copying, used for pivots and bounds.
pub type Key = Arc<[u8]>;
