//! Messages: the changes that a commit makes to a tree, and the update functions of trees.

use std::fmt;

use crate::SeqNo;
use crate::sync::Arc;

/// The effect of a point message on its key. The numbers are on disk: do not change them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum MessageKind {
    /// The key has this value.
    Put = 0,
    /// The key has no value.
    Delete = 1,
    /// The tree's update function is applied to the older value, with this value as operand.
    Update = 2,
    /// The key has a large value, in its own extents; the message's value is a reference to it
    /// (rule 17).
    PutRef = 3,
}

impl MessageKind {
    /// Decodes the byte on disk; `None` for an unknown kind.
    #[must_use]
    pub const fn from_u8(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Put),
            1 => Some(Self::Delete),
            2 => Some(Self::Update),
            3 => Some(Self::PutRef),
            _ => None,
        }
    }
}

/// A range delete: hides every message with a smaller SeqNo whose key is in `[lo, hi)`.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct RangeDelete {
    /// First key of the range.
    pub lo: Box<[u8]>,
    /// First key after the range; `None` means the end of the tree.
    pub hi: Option<Box<[u8]>>,
    /// The SeqNo of the range delete; only messages with a smaller one are hidden.
    pub seq: SeqNo,
}

impl RangeDelete {
    /// Whether `key` is in the range.
    #[inline]
    #[must_use]
    pub fn covers(&self, key: &[u8]) -> bool {
        *self.lo <= *key && self.hi.as_ref().is_none_or(|hi| *key < **hi)
    }
}

/// The update function of a tree: it computes a value from the older value and an operand, so that
/// an upsert needs no read (rule 16).
///
/// The function has a name and a version, because its operands are on disk: a tree must be opened
/// with a function of the same name and version as at its creation. The function must be pure, and
/// any thread may call it. To apply the result of [`combine`](Self::combine) must have the same
/// effect as to apply both operands one after the other. A panic of the function in background work
/// poisons the database: the engine does not know the right value, so it writes nothing more until
/// the next open. A panic in a read reaches the caller of the read.
pub trait UpdateFn: Send + Sync {
    /// Returns the function's name, which is stored with the tree.
    fn name(&self) -> &str;

    /// Returns the function's version, which is stored with the tree.
    fn version(&self) -> u32 {
        1
    }

    /// Computes the new value from the existing value, `None` if the key has none, and one operand.
    /// After an error, the operands stay in the tree, and the reader gets the error.
    fn apply(&self, key: &[u8], existing: Option<&[u8]>, operand: &[u8])
    -> Result<Vec<u8>, String>;

    /// Computes one operand that has the effect of `older` followed by `newer`; `None` if there is
    /// no such operand.
    fn combine(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>>;
}

/// A shared update function.
pub type SharedUpdateFn = Arc<dyn UpdateFn>;

impl fmt::Debug for dyn UpdateFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UpdateFn({} v{})", self.name(), self.version())
    }
}
