//! Messages: the changes that a commit sends into a tree, and the update functions of trees.

use std::fmt;

use crate::SeqNo;
use crate::sync::Arc;

/// What a point message does to its key. The numbers are on disk: do not change them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum MessageKind {
    /// The key has this value.
    Put = 0,
    /// The key has no value.
    Delete = 1,
    /// The tree's update function is applied to the older value, with this value as operand.
    Update = 2,
    /// The key has a value in extents of its own; the message's value is a reference to it (rule
    /// 17).
    PutRef = 3,
}

impl MessageKind {
    /// Decodes the byte on disk.
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

/// Hides every message with a smaller SeqNo whose key is in `[lo, hi)`.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct RangeDelete {
    /// First key deleted.
    pub lo: Box<[u8]>,
    /// First key not deleted; `None` means to the end of the tree.
    pub hi: Option<Box<[u8]>>,
    /// Only messages with a smaller SeqNo are hidden.
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

/// A tree's update function: it computes a value from the older value and an operand, so that an
/// upsert needs no read (rule 16).
///
/// The function has a name and a version, because its operands are on disk: a tree made with one
/// function is opened with the same name and version. The function must be pure and callable from
/// any thread. Combining two operands with [`combine`](Self::combine) and applying the result must
/// equal applying both in turn. A function that panics poisons the database: the engine cannot know
/// which value was meant, so it writes nothing more until the next open.
pub trait UpdateFn: Send + Sync {
    /// Name kept with the tree.
    fn name(&self) -> &str;

    /// Version kept with the tree.
    fn version(&self) -> u32 {
        1
    }

    /// The new value from the existing one (`None`: the key is absent) and one operand. An error
    /// leaves the operands as they are and is reported to the reader.
    fn apply(&self, key: &[u8], existing: Option<&[u8]>, operand: &[u8])
    -> Result<Vec<u8>, String>;

    /// One operand that does what `older` and then `newer` do; `None` if they cannot be combined.
    fn combine(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>>;
}

/// A shared update function.
pub type SharedUpdateFn = Arc<dyn UpdateFn>;

impl fmt::Debug for dyn UpdateFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UpdateFn({} v{})", self.name(), self.version())
    }
}
