//! The key type of pivots and bounds.

use frondb_core::sync::Arc;

/// A shared key: pivots and bounds.
pub type Key = Arc<[u8]>;
