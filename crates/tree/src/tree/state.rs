//! [`State`]: what a tree is at the moment.

use frondb_core::sync::Arc;

use crate::stowed::Stowed;
use crate::version::Version;

/// The newest version of a tree, or what it was stowed as.
#[derive(Clone)]
pub enum State {
    /// The version.
    Open(Arc<Version>),
    /// Nothing uses the tree.
    Stowed(Stowed),
}
