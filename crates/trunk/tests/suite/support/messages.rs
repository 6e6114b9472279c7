//! Functions that make messages, a source over a list of messages, and the update function of test
//! trees.

use frondb_core::message::UpdateFn;
use frondb_core::{Chunk, MessageKind, Result, SeqNo, Source};
use frondb_merge::ValueReader;

/// A point message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    pub(crate) seq: SeqNo,
    pub(crate) kind: MessageKind,
    pub(crate) value: Vec<u8>,
}

pub(crate) fn entry(key: &str, seq: u64, kind: MessageKind, value: &str) -> Entry {
    Entry { key: key.into(), seq: SeqNo(seq), kind, value: value.into() }
}

pub(crate) fn put(key: &str, seq: u64, value: &str) -> Entry {
    entry(key, seq, MessageKind::Put, value)
}

pub(crate) fn delete(key: &str, seq: u64) -> Entry {
    entry(key, seq, MessageKind::Delete, "")
}

/// Sorts messages into the order of sources: keys ascend, SeqNos descend within a key.
pub(crate) fn sort(entries: &mut [Entry]) {
    entries.sort_by(|a, b| (&a.key, b.seq).cmp(&(&b.key, a.seq)));
}

/// A source that returns the messages of a list, sorted, in chunks of three.
pub(crate) struct VecSource(pub(crate) std::vec::IntoIter<Entry>);

impl VecSource {
    pub(crate) fn new(mut entries: Vec<Entry>) -> Self {
        sort(&mut entries);
        Self(entries.into_iter())
    }
}

impl Source for VecSource {
    fn next_chunk(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.clear();
        for entry in self.0.by_ref().take(3) {
            chunk.push(&entry.key, entry.seq, entry.kind, &entry.value);
        }
        Ok(!chunk.is_empty())
    }
}

/// Appends operands. Two operands are combined unless their total length is odd, so that some keys
/// keep several messages.
pub(crate) struct Tags;

impl UpdateFn for Tags {
    fn name(&self) -> &'static str {
        "tags"
    }

    fn apply(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operand: &[u8],
    ) -> Result<Vec<u8>, String> {
        Ok([existing.unwrap_or_default(), operand].concat())
    }

    fn combine(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        ((older.len() + newer.len()).is_multiple_of(2)).then(|| [older, newer].concat())
    }
}

/// Resolves a reference to its own bytes in brackets.
pub(crate) struct References;

impl ValueReader for References {
    fn read(&self, reference: &[u8]) -> Result<Vec<u8>> {
        Ok([b"<", reference, b">"].concat())
    }
}
