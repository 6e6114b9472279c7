//! What one key has for a reader, from messages fed newest to oldest.

use frondb_core::message::UpdateFn;
use frondb_core::{MessageKind, Result, SeqNo};

use crate::update::{Found, Under, ValueReader, resolve};

/// Collects the messages of one key that a snapshot sees, until one settles the matter.
///
/// The caller asks its sources from the newest to the oldest, feeds what they have at or below the
/// snapshot, and stops when told to:
///
/// ```
/// use frondb_core::{MessageKind, SeqNo};
/// use frondb_merge::{Found, Lookup};
///
/// let mut lookup = Lookup::new();
/// lookup.hide_below(SeqNo(3)); // a range delete over the key
/// assert!(!lookup.feed(SeqNo(5), MessageKind::Put, b"v"));
/// assert_eq!(lookup.finish(b"k", None, None).unwrap(), Some(Found::Value(b"v".to_vec())));
/// ```
#[derive(Debug, Default)]
pub struct Lookup {
    /// Messages below this are hidden by a range delete.
    hidden_below: SeqNo,
    /// SeqNo of the first message fed, the newest.
    first: SeqNo,
    /// SeqNo of the last message fed.
    last: Option<SeqNo>,
    /// Operands, newest first.
    operands: Vec<Vec<u8>>,
    state: State,
}

#[derive(Debug, Default)]
enum State {
    /// Nothing under the operands was found yet.
    #[default]
    Open,
    Absent,
    Value(Vec<u8>),
    Reference(Vec<u8>),
}

impl Lookup {
    /// A lookup that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A range delete at `seq`, visible at the snapshot, covers the key. May be told at any time
    /// before the messages it hides are fed; the newest counts.
    pub fn hide_below(&mut self, seq: SeqNo) {
        self.hidden_below = self.hidden_below.max(seq);
    }

    /// Whether older messages can still change the answer.
    #[must_use]
    pub fn wants_more(&self) -> bool {
        matches!(self.state, State::Open)
    }

    /// The newest of what was fed and told: messages and range deletes; 0 if there was nothing.
    #[must_use]
    pub fn newest(&self) -> SeqNo {
        self.first.max(self.hidden_below)
    }

    /// Takes the next older message and returns whether still older ones matter. A message fed
    /// twice counts once (rule 2).
    pub fn feed(&mut self, seq: SeqNo, kind: MessageKind, value: &[u8]) -> bool {
        if !self.wants_more() || self.last == Some(seq) {
            return self.wants_more();
        }
        debug_assert!(self.last.is_none_or(|last| seq < last), "messages come newest first");
        if self.last.is_none() {
            self.first = seq;
        }
        self.last = Some(seq);
        self.state = if seq < self.hidden_below {
            State::Absent
        } else {
            match kind {
                MessageKind::Put => State::Value(value.to_vec()),
                MessageKind::PutRef => State::Reference(value.to_vec()),
                MessageKind::Delete => State::Absent,
                MessageKind::Update => {
                    self.operands.push(value.to_vec());
                    State::Open
                }
            }
        };
        self.wants_more()
    }

    /// The answer, when all sources were asked or [`feed`](Self::feed) said that it is enough.
    ///
    /// # Errors
    /// Invalid if there are updates and `update` is missing or fails; what `values` returns when an
    /// update lies upon a reference.
    pub fn finish(
        self,
        key: &[u8],
        update: Option<&dyn UpdateFn>,
        values: Option<&dyn ValueReader>,
    ) -> Result<Option<Found>> {
        if self.operands.is_empty() {
            return Ok(match self.state {
                State::Open | State::Absent => None,
                State::Value(value) => Some(Found::Value(value)),
                State::Reference(reference) => Some(Found::Reference(reference)),
            });
        }
        let under = match &self.state {
            State::Open | State::Absent => Under::Absent,
            State::Value(value) => Under::Value(value),
            State::Reference(reference) => Under::Reference(reference),
        };
        resolve(update, values, key, under, self.operands.iter().map(Vec::as_slice))
    }
}
