//! The model, the random messages and the reading of cursors that the tests share.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use frondb_core::budget::Budget;
use frondb_core::prng::Prng;
use frondb_core::{Chunk, Direction, MessageKind, SeqNo, Source};
use frondb_memtable::Memtable;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Message {
    pub(crate) key: Vec<u8>,
    pub(crate) seq: SeqNo,
    pub(crate) kind: MessageKind,
    pub(crate) value: Vec<u8>,
}

pub(crate) fn table() -> Arc<Memtable> {
    Arc::new(Memtable::new(Budget::new(1 << 30)))
}

/// The parameters of random messages.
#[derive(Debug)]
pub(crate) struct Shape {
    /// Number of different keys.
    pub(crate) keys: u64,
    /// Number of messages in the largest batch.
    pub(crate) batch: u64,
    /// Whether most batches are small and some are large.
    pub(crate) skewed: bool,
    pub(crate) shared_prefix: bool,
    pub(crate) ascending: bool,
    /// Maximum number of cursors between two batches.
    pub(crate) readers: u64,
    pub(crate) next: AtomicU64,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            keys: 100,
            batch: 10,
            skewed: false,
            shared_prefix: false,
            ascending: false,
            readers: 0,
            next: AtomicU64::new(0),
        }
    }
}

impl Shape {
    pub(crate) fn batch_len(&self, prng: &mut Prng) -> usize {
        let most = if self.skewed { self.batch >> prng.below(11) } else { self.batch };
        1 + prng.below(most.max(1)) as usize
    }

    pub(crate) fn key(&self, prng: &mut Prng) -> Vec<u8> {
        if self.ascending {
            let next = self.next.fetch_add(1, Ordering::Relaxed);
            return format!("{next:012}").into_bytes();
        }
        let number = prng.below(self.keys);
        let mut key =
            if self.shared_prefix { b"a prefix of all keys".to_vec() } else { Vec::new() };
        // Lengths from nothing to beyond the prefix of a slot, zero bytes included.
        let bytes = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        key.extend_from_slice(&bytes[..(number % 9) as usize]);
        if number.is_multiple_of(3) {
            key.extend_from_slice(&[0; 5][..(number % 5) as usize]);
            key.extend_from_slice(&number.to_be_bytes());
        }
        key
    }
}

pub(crate) fn random_entry(shape: &Shape, seq: SeqNo, prng: &mut Prng) -> Message {
    let kind = *prng
        .pick(&[MessageKind::Put, MessageKind::Put, MessageKind::Delete, MessageKind::Update])
        .unwrap();
    let len = match prng.below(200) {
        0 => prng.below(40_000),
        n => n % 30,
    };
    let mut value = vec![0; if kind == MessageKind::Delete { 0 } else { len as usize }];
    prng.fill(&mut value);
    Message { key: shape.key(prng), seq, kind, value }
}

/// Key order, newest first within a key.
type Place = (Vec<u8>, Reverse<SeqNo>);

#[derive(Default)]
pub(crate) struct Model {
    messages: BTreeMap<Place, (MessageKind, Vec<u8>)>,
    last_seq: u64,
    deletes: u64,
    data_bytes: u64,
}

impl Model {
    pub(crate) fn insert(&mut self, m: Message) {
        self.last_seq = self.last_seq.max(m.seq.get());
        self.deletes += u64::from(m.kind == MessageKind::Delete);
        self.data_bytes += (m.key.len() + m.value.len()) as u64;
        self.messages.insert((m.key, Reverse(m.seq)), (m.kind, m.value));
    }

    pub(crate) fn last_seq(&self) -> u64 {
        self.last_seq
    }

    pub(crate) fn len(&self) -> u64 {
        self.messages.len() as u64
    }

    pub(crate) fn deletes(&self) -> u64 {
        self.deletes
    }

    pub(crate) fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    pub(crate) fn first_key(&self) -> Option<Vec<u8>> {
        self.messages.keys().next().map(|(key, _)| key.clone())
    }

    pub(crate) fn last_key(&self) -> Option<Vec<u8>> {
        self.messages.keys().next_back().map(|(key, _)| key.clone())
    }

    pub(crate) fn some_snapshot(&self, prng: &mut Prng) -> SeqNo {
        if prng.chance(1, 2) { SeqNo::MAX } else { SeqNo(prng.below(self.last_seq + 2)) }
    }

    pub(crate) fn versions(
        &self,
        key: &[u8],
        snapshot: SeqNo,
        limit: usize,
    ) -> Vec<(SeqNo, MessageKind, Vec<u8>)> {
        self.messages
            .range((key.to_vec(), Reverse(snapshot))..=(key.to_vec(), Reverse(SeqNo::MIN)))
            .map(|((_, seq), (kind, value))| (seq.0, *kind, value.clone()))
            .take(limit)
            .collect()
    }

    pub(crate) fn rank(&self, key: &[u8]) -> u64 {
        self.messages.range(..(key.to_vec(), Reverse(SeqNo::MAX))).count() as u64
    }

    pub(crate) fn range(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        snapshot: SeqNo,
    ) -> Vec<Message> {
        let after = |key: &[u8]| match from {
            Bound::Included(from) => key >= from,
            Bound::Excluded(from) => key > from,
            Bound::Unbounded => true,
        };
        let before = |key: &[u8]| match to {
            Bound::Included(to) => key <= to,
            Bound::Excluded(to) => key < to,
            Bound::Unbounded => true,
        };
        self.messages
            .iter()
            .filter(|((key, seq), _)| after(key) && before(key) && seq.0 <= snapshot)
            .map(|((key, seq), (kind, value))| Message {
                key: key.clone(),
                seq: seq.0,
                kind: *kind,
                value: value.clone(),
            })
            .collect()
    }
}

/// All messages of a source, ascending. Checks the contract of chunks.
pub(crate) fn collect(mut source: impl Source, direction: Direction) -> Vec<Message> {
    let mut pieces = Vec::new();
    let mut chunk = Chunk::new();
    while source.next_chunk(&mut chunk).unwrap() {
        assert!(!chunk.is_empty());
        let piece: Vec<Message> = (0..chunk.len())
            .map(|i| {
                let key = chunk.key(i).to_vec();
                assert_eq!(chunk.prefixes[i], frondb_core::chunk::key_prefix(&key));
                let value = chunk.value(i).to_vec();
                Message { key, seq: chunk.seqs[i], kind: chunk.kinds[i], value }
            })
            .collect();
        pieces.push(piece);
    }
    assert!(chunk.is_empty());
    if direction == Direction::Backward {
        pieces.reverse();
    }
    pieces.concat()
}
