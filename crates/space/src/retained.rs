//! [`Retained`]: the extents that a backup keeps from being reused.

use std::collections::BTreeSet;

use crate::Extent;

/// The state of a retention, under the lock of the space.
pub(crate) struct Retained {
    pub(crate) id: u64,
    /// The extents to keep; `None` means all.
    pub(crate) wanted: Option<BTreeSet<Extent>>,
    /// Extents that were released, but count as used until the backup has read them.
    pub(crate) released: BTreeSet<Extent>,
}
