//! The expected content of a database: one sorted map for each tree, shared with the snapshots that
//! see it.
//!
//! Maps are in an `Arc`, and are copied when they change while another holder exists, so a
//! snapshot, a cursor or an allowed state takes no memory of its own until then.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::functions::Function;

/// Identifies a tree throughout a history, whatever its name.
pub type TreeNumber = u32;

/// A key or a value. Clones share the bytes; debug output abbreviates them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Bytes(Arc<[u8]>);

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.len() {
            0..=24 => write!(f, "\"{}\"", self.escape_ascii()),
            n => write!(f, "\"{}\"... of {n}", self[..12].escape_ascii()),
        }
    }
}

/// A message of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// Sets a value.
    Put(Bytes, Bytes),
    /// Removes a key.
    Delete(Bytes),
    /// Applies the tree's update function with this operand.
    Update(Bytes, Bytes),
    /// Removes the keys in `[lo, hi)`.
    DeleteRange(Bytes, Option<Bytes>),
}

/// The content of one tree.
pub type Contents = Arc<BTreeMap<Bytes, Bytes>>;

/// The content of all trees at one moment. A state may still have a tree that was dropped after
/// that moment; the catalog says which trees exist.
pub type State = BTreeMap<TreeNumber, Contents>;

/// Names of the trees that exist.
pub type Catalog = BTreeMap<String, TreeNumber>;

/// The messages of a prepared transaction, which its commit will apply to the trees.
pub type PreparedMessages = Arc<Vec<(TreeNumber, Function, Message)>>;

/// All prepared transactions, by the number in their names.
pub type Prepared = BTreeMap<u32, PreparedMessages>;

/// Returns the name of a prepared transaction.
#[must_use]
pub fn xid(number: u32) -> Vec<u8> {
    format!("transaction {number}").into_bytes()
}

/// The expected state of the database.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Contents by tree.
    pub state: State,
    /// The names of the trees.
    pub catalog: Catalog,
    /// Update functions by tree.
    pub functions: BTreeMap<TreeNumber, Function>,
    /// Prepared transactions.
    pub prepared: Prepared,
}

impl Model {
    /// Returns the content of a tree.
    #[must_use]
    pub fn contents(&self, tree: TreeNumber) -> Contents {
        self.state.get(&tree).cloned().unwrap_or_default()
    }

    /// Applies messages in order.
    pub fn write<'a>(&mut self, messages: impl IntoIterator<Item = &'a (TreeNumber, Message)>) {
        for (tree, message) in messages {
            let function = self.functions.get(tree).copied().unwrap_or(Function::None);
            let map = Arc::make_mut(self.state.entry(*tree).or_default());
            apply(map, function, message);
        }
    }
}

/// Applies a message to the content of a tree.
pub(crate) fn apply(map: &mut BTreeMap<Bytes, Bytes>, function: Function, message: &Message) {
    match message {
        Message::Put(key, value) => {
            map.insert(key.clone(), value.clone());
        }
        Message::Delete(key) => {
            map.remove(key);
        }
        Message::Update(key, operand) => {
            let value = function.apply(key, map.get(key).map(|value| &**value), operand);
            map.insert(key.clone(), value.into());
        }
        Message::DeleteRange(lo, hi) => {
            map.retain(|key, _| key < lo || hi.as_ref().is_some_and(|hi| key >= hi));
        }
    }
}

/// The expected behaviour of a cursor, over the contents of one moment and within bounds.
#[derive(Clone, Debug)]
pub struct ModelCursor {
    contents: Contents,
    lower: Option<Bytes>,
    upper: Option<Bytes>,
    place: Place,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Place {
    /// Never positioned: `next` goes to the first entry, `prev` to the last.
    Unset,
    At(Bytes),
    /// Moved past an end; stays there until it is positioned again.
    Beyond,
}

/// A move of a cursor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Move {
    /// To the first entry.
    First,
    /// To the last entry.
    Last,
    /// To the next entry.
    Next,
    /// To the previous entry.
    Prev,
    /// To the first entry at or above the key.
    Seek(Bytes),
    /// To the last entry at or below the key.
    SeekForPrev(Bytes),
}

impl ModelCursor {
    /// Creates a cursor that is not positioned.
    #[must_use]
    pub fn new(contents: Contents, lower: Option<Bytes>, upper: Option<Bytes>) -> Self {
        Self { contents, lower, upper, place: Place::Unset }
    }

    /// Moves the cursor and returns the entry at its new position.
    pub fn go(&mut self, to: &Move) -> Option<(Bytes, Bytes)> {
        let inside = |key: &Bytes| {
            self.lower.as_ref().is_none_or(|lower| key >= lower)
                && self.upper.as_ref().is_none_or(|upper| key < upper)
        };
        let mut entries = self.contents.iter().filter(|(key, _)| inside(key));
        let found = match (to, &self.place) {
            (Move::First, _) | (Move::Next, Place::Unset) => entries.next(),
            (Move::Last, _) | (Move::Prev, Place::Unset) => entries.next_back(),
            (Move::Next | Move::Prev, Place::Beyond) => None,
            (Move::Next, Place::At(at)) => entries.find(|(key, _)| *key > at),
            (Move::Prev, Place::At(at)) => entries.rfind(|(key, _)| *key < at),
            (Move::Seek(to), _) => entries.find(|(key, _)| *key >= to),
            (Move::SeekForPrev(to), _) => entries.rfind(|(key, _)| *key <= to),
        };
        let found = found.map(|(key, value)| (key.clone(), value.clone()));
        self.place = found.as_ref().map_or(Place::Beyond, |(key, _)| Place::At(key.clone()));
        found
    }
}
