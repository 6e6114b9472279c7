//! Runs on an in-memory device, and entries to put into them.
#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use frondb_block::Codec;
use frondb_cache::{Cache, CacheOptions};
use frondb_core::budget::Budget;
use frondb_core::clock::{SharedClock, SystemClock};
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::wear::WriteCause;
use frondb_core::{Chunk, Direction, MessageKind, RunId, SeqNo, Source, TreeId};
use frondb_device::SharedDevice;
use frondb_filter::FilterKind;
use frondb_run::{
    FILTER_PART_KEYS, INDEX_PART_BLOCKS, Output, ReadMode, Run, RunCursor, RunEnv, RunMeta,
    RunOptions, RunWriter,
};
use frondb_space::{Class, Space, SpaceOptions};
use frondb_testkit::MemoryDevice;

/// A message as tests write it down.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    pub(crate) seq: SeqNo,
    pub(crate) kind: MessageKind,
    pub(crate) value: Vec<u8>,
}

pub(crate) fn put(key: &[u8], seq: u64, value: &[u8]) -> Entry {
    Entry { key: key.into(), seq: SeqNo(seq), kind: MessageKind::Put, value: value.into() }
}

/// Options for blocks of `block_bytes` without compression, and for a Bloom filter.
pub(crate) fn options(block_bytes: usize) -> RunOptions {
    RunOptions {
        codec: Codec::None,
        block_bytes,
        tree_block_bytes: block_bytes,
        filter: FilterKind::BlockedBloom,
        filter_prefix: None,
        filter_part_keys: FILTER_PART_KEYS,
        index_part_blocks: INDEX_PART_BLOCKS,
        writes: 1,
    }
}

pub(crate) struct Fixture {
    pub(crate) device: MemoryDevice,
    pub(crate) env: Arc<RunEnv>,
    next_id: AtomicU64,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with_memory(64 << 20)
    }

    pub(crate) fn with_memory(bytes: u64) -> Self {
        Self::wrapping(bytes, |device| device)
    }

    /// A fixture whose runs are read through a wrapper of the device in memory.
    pub(crate) fn wrapping(bytes: u64, wrap: impl FnOnce(SharedDevice) -> SharedDevice) -> Self {
        Self::with_clock(bytes, SystemClock::shared(), wrap)
    }

    /// As [`wrapping`](Self::wrapping); `clock` measures the reads.
    pub(crate) fn with_clock(
        bytes: u64,
        clock: SharedClock,
        wrap: impl FnOnce(SharedDevice) -> SharedDevice,
    ) -> Self {
        let device = MemoryDevice::new();
        let options = SpaceOptions { reserve_bytes: 0, slack_bytes: 0, ..SpaceOptions::default() };
        let space = Space::open(wrap(Arc::new(device.clone())), options, []).unwrap();
        let budget = Budget::new(bytes);
        let cache = Cache::new(Arc::clone(&budget), CacheOptions::default());
        let env = RunEnv::new(space, cache, budget, clock);
        Self { device, env, next_id: AtomicU64::new(1) }
    }

    pub(crate) fn used_bytes(&self) -> u64 {
        self.env.space.stats().used_bytes
    }

    pub(crate) fn output(&self, expected_bytes: u64) -> Output {
        Output::new(
            Arc::clone(&self.env.space),
            WriteCause::Merge,
            Class::Merge,
            expected_bytes,
            false,
        )
    }

    pub(crate) fn next_id(&self) -> RunId {
        RunId(self.next_id.fetch_add(1, Ordering::Relaxed))
    }

    /// Writes `entries` as the next run of `output`.
    pub(crate) fn write_to(
        &self,
        output: &mut Output,
        options: RunOptions,
        per_entry_seqs: bool,
        entries: &[Entry],
    ) -> RunMeta {
        let mut writer = RunWriter::new(self.next_id(), TreeId(3), options, per_entry_seqs);
        for entry in entries {
            writer.add(output, &entry.key, entry.seq, entry.kind, &entry.value).unwrap();
            assert_eq!(writer.last_key(), &entry.key[..]);
        }
        writer.finish(output).unwrap().unwrap()
    }

    pub(crate) fn open(&self, meta: RunMeta, filter_prefix: Option<u16>) -> Arc<Run> {
        Run::new(meta, filter_prefix, Arc::clone(&self.env))
    }

    /// Writes a run with an output of its own, and opens it.
    pub(crate) fn run(
        &self,
        options: RunOptions,
        per_entry_seqs: bool,
        entries: &[Entry],
    ) -> Arc<Run> {
        let mut output = self.output(0);
        let meta = self.write_to(&mut output, options, per_entry_seqs, entries);
        output.finish().unwrap();
        self.open(meta, options.filter_prefix)
    }
}

/// Message `i` of a chunk.
pub(crate) fn entry_of(chunk: &Chunk, i: usize) -> Entry {
    Entry {
        key: chunk.key(i).into(),
        seq: chunk.seqs[i],
        kind: chunk.kinds[i],
        value: chunk.value(i).into(),
    }
}

/// The entries that `source` returns, in the order of its direction.
pub(crate) fn drain(
    source: &mut dyn Source,
    direction: Direction,
) -> frondb_core::Result<Vec<Entry>> {
    let (mut found, mut chunk) = (Vec::new(), Chunk::new());
    while source.next_chunk(&mut chunk)? {
        assert!(!chunk.is_empty());
        let entry = |i: usize| entry_of(&chunk, i);
        match direction {
            Direction::Forward => found.extend((0..chunk.len()).map(entry)),
            Direction::Backward => found.extend((0..chunk.len()).rev().map(entry)),
        }
    }
    assert!(chunk.is_empty() && !source.next_chunk(&mut chunk)?);
    Ok(found)
}

/// All entries of a run between two bounds.
pub(crate) fn scan(
    run: &Arc<Run>,
    direction: Direction,
    mode: ReadMode,
    lo: Option<&[u8]>,
    hi: Option<&[u8]>,
) -> frondb_core::Result<Vec<Entry>> {
    let mut cursor = RunCursor::new(Arc::clone(run), direction, lo, hi, mode)?;
    drain(&mut cursor, direction)
}

/// The versions of a key that a snapshot sees, newest first.
pub(crate) fn get(run: &Run, key: &[u8], snapshot: u64) -> frondb_core::Result<Vec<Entry>> {
    let mut found = Vec::new();
    run.get(key, SeqNo(snapshot), &mut |seq, kind, value| {
        found.push(Entry { key: key.into(), seq, kind, value: value.into() });
        Ok(true)
    })?;
    Ok(found)
}
