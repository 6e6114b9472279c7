//! Random histories, the naive model of what readers see of them, and sources over them.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "a part of tests")]

use std::collections::BTreeMap;

use frondb_core::message::{SharedUpdateFn, UpdateFn};
use frondb_core::prng::Prng;
use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::{Chunk, Direction, Error, MessageKind, RangeDelete, Result, SeqNo, Source};
use frondb_merge::{ValueReader, VisibleMerge, VisibleOptions, VisibleValue};

pub type Message = (Vec<u8>, SeqNo, MessageKind, Vec<u8>);

/// A history: messages in any order, and range deletes.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub messages: Vec<Message>,
    pub deletes: Vec<RangeDelete>,
    pub last: SeqNo,
}

/// A key. Keys have long common prefixes and extensions by zeros, and are few, so that many
/// messages have the same key.
pub fn key(prng: &mut Prng) -> Vec<u8> {
    let mut key = [&b""[..], b"a", b"a\0", b"price\0\0\0\0\0\0", b"price\0\0\0\0\0\x01"]
        [prng.index(5)]
    .to_vec();
    key.extend((0..prng.below(3)).map(|_| [0, b'k', 0xff][prng.index(3)]));
    key
}

impl History {
    /// `count` messages and range deletes together, each with a SeqNo of its own.
    pub fn random(prng: &mut Prng, count: u64) -> Self {
        let mut history = Self::default();
        let updates = prng.chance(2, 3);
        let ranges = prng.chance(2, 3);
        for seq in 1..=count {
            history.last = SeqNo(seq);
            if ranges && prng.chance(1, 12) {
                let (a, b) = (key(prng), key(prng));
                let hi = prng.chance(7, 8).then(|| a.clone().max(b.clone()).into());
                history.deletes.push(RangeDelete { lo: a.min(b).into(), hi, seq: SeqNo(seq) });
                continue;
            }
            let kind = match prng.below(8) {
                0 | 1 => MessageKind::Delete,
                2..=4 if updates => MessageKind::Update,
                5 => MessageKind::PutRef,
                _ => MessageKind::Put,
            };
            let value = match kind {
                MessageKind::Delete => Vec::new(),
                _ => seq.to_string().into_bytes(),
            };
            history.messages.push((key(prng), SeqNo(seq), kind, value));
        }
        history
    }

    pub fn range_deletes(&self) -> RangeDeletes {
        RangeDeletes::new(self.deletes.iter().cloned())
    }

    /// What a reader at `snapshot` sees, key by key.
    pub fn read(&self, snapshot: SeqNo) -> Result<BTreeMap<Vec<u8>, VisibleValue>> {
        let mut keys: Vec<&Vec<u8>> = self.messages.iter().map(|message| &message.0).collect();
        keys.sort();
        keys.dedup();
        let mut seen = BTreeMap::new();
        for key in keys {
            if let Some(found) = self.read_key(key, snapshot)? {
                seen.insert(key.clone(), found);
            }
        }
        Ok(seen)
    }

    /// What a reader at `snapshot` sees of one key: replays its history from the beginning.
    pub fn read_key(&self, key: &[u8], snapshot: SeqNo) -> Result<Option<VisibleValue>> {
        let mut found = None;
        for seq in 1..=snapshot.get().min(self.last.get()) {
            if self.deletes.iter().any(|delete| delete.seq == SeqNo(seq) && delete.covers(key)) {
                found = None;
            }
            let here = |message: &&Message| message.1 == SeqNo(seq) && message.0 == key;
            let Some((_, _, kind, value)) = self.messages.iter().find(here) else { continue };
            found = match kind {
                MessageKind::Put => Some(VisibleValue::Value(value.clone())),
                MessageKind::PutRef => Some(VisibleValue::Reference(value.clone())),
                MessageKind::Delete => None,
                MessageKind::Update => {
                    let before = match &found {
                        None => None,
                        Some(VisibleValue::Value(value)) => Some(value.clone()),
                        Some(VisibleValue::Reference(reference)) => Some(Extents.read(reference)?),
                    };
                    let after = AppendWithPlus.apply(key, before.as_deref(), value);
                    Some(VisibleValue::Value(after.map_err(Error::invalid)?))
                }
            };
        }
        Ok(found)
    }
}

/// Appends a plus sign and the operand. Two operands combine while they are short. The result
/// depends on the order, so a wrong order shows.
pub struct AppendWithPlus;

/// Operands with this byte make [`AppendWithPlus`] fail.
pub const POISON: u8 = b'!';

impl UpdateFn for AppendWithPlus {
    fn name(&self) -> &str {
        "append"
    }

    fn apply(&self, _: &[u8], existing: Option<&[u8]>, operand: &[u8]) -> Result<Vec<u8>, String> {
        if operand.contains(&POISON) {
            return Err("poisoned".into());
        }
        Ok([existing.unwrap_or(b"~"), b"+", operand].concat())
    }

    fn combine(&self, _: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        let both = [older, b"+", newer].concat();
        (both.len() < 8 && !both.contains(&POISON)).then_some(both)
    }
}

pub fn append_with_plus() -> SharedUpdateFn {
    Arc::new(AppendWithPlus)
}

/// Reads large values; the value is made up from the reference.
pub struct Extents;

impl ValueReader for Extents {
    fn read(&self, reference: &[u8]) -> Result<Vec<u8>> {
        Ok([b"at:", reference].concat())
    }
}

/// Sorted messages returned in chunks of random sizes.
pub struct ListSource {
    messages: Vec<Message>,
    direction: Direction,
    prng: Prng,
    /// Fails when at most this many messages are left.
    fails_at: Option<usize>,
}

impl ListSource {
    pub fn new(mut messages: Vec<Message>, direction: Direction, prng: &mut Prng) -> Self {
        messages.sort_by(|a, b| (&a.0, b.1).cmp(&(&b.0, a.1)));
        Self { messages, direction, prng: Prng::new(prng.next_u64()), fails_at: None }
    }

    pub fn failing_at(mut self, left: usize) -> Self {
        self.fails_at = Some(left);
        self
    }
}

impl Source for ListSource {
    fn next_chunk(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.clear();
        if self.fails_at.is_some_and(|left| self.messages.len() <= left) {
            return Err(Error::corruption("list", 0, "data block", "made to fail"));
        }
        let count = self.messages.len().min(1 + self.prng.index(5));
        let taken: Vec<Message> = match self.direction {
            Direction::Forward => self.messages.drain(..count).collect(),
            Direction::Backward => self.messages.split_off(self.messages.len() - count),
        };
        for (key, seq, kind, value) in &taken {
            chunk.push(key, *seq, *kind, value);
        }
        Ok(count > 0)
    }
}

/// Deals messages to `count` sources, newest first: each source has SeqNos above the next one's.
pub fn deal(
    messages: &[Message],
    count: usize,
    direction: Direction,
    prng: &mut Prng,
) -> Vec<Box<dyn Source>> {
    let top = messages.iter().map(|message| message.1.get()).max().unwrap_or(0);
    let mut cuts: Vec<u64> = (1..count).map(|_| prng.below(top + 1)).collect();
    cuts.extend([0, top]);
    cuts.sort_unstable();
    let sources = cuts.windows(2).rev().map(|ends| {
        let inside = |message: &&Message| ends[0] < message.1.get() && message.1.get() <= ends[1];
        let part = messages.iter().filter(inside).cloned().collect();
        Box::new(ListSource::new(part, direction, prng)) as Box<dyn Source>
    });
    sources.collect()
}

/// All entries of a visible merge.
pub fn read_all(mut merge: VisibleMerge) -> Result<Vec<(Vec<u8>, VisibleValue)>> {
    let mut entries = Vec::new();
    while merge.next()? {
        let value = merge.value().to_vec();
        let found = match merge.kind() {
            MessageKind::Put => VisibleValue::Value(value),
            MessageKind::PutRef => VisibleValue::Reference(value),
            other => panic!("{other:?} is not visible"),
        };
        entries.push((merge.key().to_vec(), found));
    }
    assert!(!merge.next()?, "a merge that ended stays so");
    assert_eq!(merge.stats().entries_out, entries.len() as u64);
    Ok(entries)
}

/// Options of a reader.
pub fn reader(snapshot: SeqNo, direction: Direction, deletes: RangeDeletes) -> VisibleOptions {
    VisibleOptions {
        direction,
        range_deletes: vec![deletes],
        update: Some(append_with_plus()),
        values: Some(Arc::new(Extents)),
        own: None,
        ..VisibleOptions::new(snapshot)
    }
}
