//! [`State`]: whether a tree is open or stowed.

use frondb_core::sync::Arc;

use crate::stowed::Stowed;
use crate::version::Version;

/// The newest version of a tree, open or stowed.
#[derive(Clone)]
pub enum State {
    /// The version, which readers can take.
    Open(Arc<Version>),
    /// The encoded version of a tree that nothing uses.
    Stowed(Stowed),
}
