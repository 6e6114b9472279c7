//! Finds the value of one key for a reader, from messages passed newest to oldest.

use frondb_core::message::UpdateFn;
use frondb_core::{MessageKind, Result, SeqNo};

use crate::update::{Existing, ValueReader, VisibleValue, resolve};

/// Collects the messages of one key that a snapshot sees, until one of them decides the value.
///
/// The caller searches its sources from the newest to the oldest, feeds each message at or below
/// the snapshot, and stops when [`feed`](Self::feed) returns `false`:
///
/// ```
/// use frondb_core::{MessageKind, SeqNo};
/// use frondb_merge::{VisibleValue, Lookup};
///
/// let mut lookup = Lookup::new();
/// lookup.hide_below(SeqNo(3)); // a range delete over the key
/// assert!(!lookup.feed(SeqNo(5), MessageKind::Put, b"v"));
/// assert_eq!(lookup.finish(b"k", None, None).unwrap(), Some(VisibleValue::Value(b"v".to_vec())));
/// ```
#[derive(Debug, Default)]
pub struct Lookup {
    /// Messages below this SeqNo are hidden by a range delete.
    hidden_below: SeqNo,
    /// SeqNo of the first message fed, the newest.
    first: SeqNo,
    /// SeqNo of the last message fed.
    last: Option<SeqNo>,
    /// Operands, newest first.
    operands: Vec<Vec<u8>>,
    /// Memory for the value.
    memory: Vec<u8>,
    state: LookupState,
}

#[derive(Debug, Default)]
enum LookupState {
    /// Only updates were fed so far, or no message.
    #[default]
    Open,
    Absent,
    Value(Vec<u8>),
    Reference(Vec<u8>),
}

impl Lookup {
    /// Creates a lookup before its first message.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a lookup that copies the value of a put into `memory`, whose contents are discarded.
    #[must_use]
    pub fn reusing(mut memory: Vec<u8>) -> Self {
        memory.clear();
        Self { memory, ..Self::default() }
    }

    /// Returns the memory passed to [`reusing`](Self::reusing) if the messages fed so far give the
    /// key no value. Otherwise returns `None`, and [`finish`](Self::finish) returns the value, in
    /// that memory if it is the value of a put.
    #[must_use]
    pub fn unused_memory(&mut self) -> Option<Vec<u8>> {
        let is_absent = matches!(self.state, LookupState::Open | LookupState::Absent);
        (is_absent && self.operands.is_empty()).then(|| std::mem::take(&mut self.memory))
    }

    /// Reports a range delete at `seq` that covers the key and is visible at the snapshot. The
    /// caller may report it at any time before it feeds the messages that the range delete hides.
    /// The newest range delete counts.
    pub fn hide_below(&mut self, seq: SeqNo) {
        self.hidden_below = self.hidden_below.max(seq);
    }

    /// Whether older messages can still change the answer.
    #[must_use]
    pub fn wants_more(&self) -> bool {
        matches!(self.state, LookupState::Open)
    }

    /// SeqNo of the newest message or range delete passed so far; 0 if there was none.
    #[must_use]
    pub fn newest(&self) -> SeqNo {
        self.first.max(self.hidden_below)
    }

    /// Takes the next older message and returns whether still older messages matter. A message fed
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
            LookupState::Absent
        } else {
            match kind {
                MessageKind::Put => {
                    let mut memory = std::mem::take(&mut self.memory);
                    // Growing an empty vector takes more instructions than `to_vec`.
                    LookupState::Value(if memory.capacity() == 0 {
                        value.to_vec()
                    } else {
                        memory.extend_from_slice(value);
                        memory
                    })
                }
                MessageKind::PutRef => LookupState::Reference(value.to_vec()),
                MessageKind::Delete => LookupState::Absent,
                MessageKind::Update => {
                    self.operands.push(value.to_vec());
                    LookupState::Open
                }
            }
        };
        self.wants_more()
    }

    /// Returns the value of the key. Call it when all sources were searched or [`feed`](Self::feed)
    /// has returned `false`.
    ///
    /// # Errors
    /// Invalid if there are updates and `update` is missing or fails. If an update applies to a
    /// reference: the errors of `values`, or Internal without `values`.
    pub fn finish(
        self,
        key: &[u8],
        update: Option<&dyn UpdateFn>,
        values: Option<&dyn ValueReader>,
    ) -> Result<Option<VisibleValue>> {
        if self.operands.is_empty() {
            return Ok(match self.state {
                LookupState::Open | LookupState::Absent => None,
                LookupState::Value(value) => Some(VisibleValue::Value(value)),
                LookupState::Reference(reference) => Some(VisibleValue::Reference(reference)),
            });
        }
        let below = match &self.state {
            LookupState::Open | LookupState::Absent => Existing::Absent,
            LookupState::Value(value) => Existing::Value(value),
            LookupState::Reference(reference) => Existing::Reference(reference),
        };
        resolve(update, values, key, below, self.operands.iter().map(Vec::as_slice))
    }
}
