//! The content that readers must see. Each message is applied to a map when it is committed; a
//! snapshot has a copy of the map.

use std::collections::BTreeMap;

use frondb_core::{MessageKind, RangeDelete, SeqNo};

use super::messages::{Entry, References};
use frondb_merge::ValueReader;

/// The content that one snapshot sees.
pub(crate) type State = BTreeMap<Vec<u8>, Vec<u8>>;

/// Applies a message to the state before it. A reference is stored as the value that it names.
pub(crate) fn apply(state: &mut State, entry: &Entry) {
    match entry.kind {
        MessageKind::Put => {
            state.insert(entry.key.clone(), entry.value.clone());
        }
        MessageKind::PutRef => {
            state.insert(entry.key.clone(), References.read(&entry.value).unwrap());
        }
        MessageKind::Delete => {
            state.remove(&entry.key);
        }
        MessageKind::Update => {
            state.entry(entry.key.clone()).or_default().extend_from_slice(&entry.value);
        }
    }
}

/// Applies a range delete.
pub(crate) fn apply_range(state: &mut State, delete: &RangeDelete) {
    state.retain(|key, _| !delete.covers(key));
}

/// The current state with its SeqNo, and the states that live snapshots see.
#[derive(Default)]
pub(crate) struct Model {
    pub(crate) now: State,
    pub(crate) seq: SeqNo,
    pub(crate) snapshots: BTreeMap<SeqNo, State>,
}

impl Model {
    pub(crate) fn live(&self) -> Vec<SeqNo> {
        self.snapshots.keys().copied().collect()
    }

    pub(crate) fn next_seq(&mut self) -> SeqNo {
        self.seq = self.seq.next();
        self.seq
    }

    pub(crate) fn take_snapshot(&mut self) {
        self.snapshots.insert(self.seq, self.now.clone());
    }
}
