//! The options under which a history is executed. None of them may change an answer.

use std::sync::Arc;

use frondb::testing::TestDb;
use frondb::{Codec, Db, FilterPolicy, Options, Result, SyncMode, TreeOptions};
use frondb_core::clock::{ManualClock, SharedClock};
use frondb_core::prng::Prng;
use frondb_device::SharedDevice;
use frondb_testkit::MemoryDevice;

use crate::functions::{Append, Function, Mix};

/// Options of the database and of all its trees.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Memory budget, bytes.
    pub memory_bytes: u64,
    /// Write buffer, bytes; 0 for the default.
    pub write_buffer_bytes: u64,
    /// Background threads; 0 makes the whole run deterministic.
    pub threads: usize,
    /// Whether to compress the log.
    pub wal_compression: bool,
    /// The durability of a synced commit. In any mode but `Always` a crash may lose such commits.
    pub sync: SyncMode,
    /// Codec of bases.
    pub codec: Codec,
    /// Which runs get filters.
    pub filter: FilterPolicy,
    /// Key and value bytes of a block: of bases, and of other runs.
    pub block_bytes: (usize, usize),
    /// Children of inner nodes.
    pub fanout: usize,
    /// Smallest and largest leaf target, bytes.
    pub leaf_bytes: (u64, u64),
    /// Smallest slice, bytes.
    pub slice_bytes_min: u64,
    /// Most writes of a message before it reaches the base; each level of inner nodes adds one.
    pub writes_before_base: u8,
    /// Whether to stow all unused trees after each operation.
    pub stow: bool,
}

impl Setup {
    /// Returns small sizes, so that few rows make leaves split and inner nodes buffer: leaves of 8
    /// KiB, fan-out 2, a write buffer of 64 KiB.
    #[must_use]
    pub fn tiny() -> Self {
        Self {
            memory_bytes: 4 << 20,
            write_buffer_bytes: 64 << 10,
            threads: 0,
            wal_compression: false,
            sync: SyncMode::Always,
            codec: Codec::Lz4,
            filter: FilterPolicy::Full,
            block_bytes: (1 << 10, 2 << 10),
            fanout: 2,
            leaf_bytes: (8 << 10, 8 << 10),
            slice_bytes_min: 512,
            writes_before_base: 2,
            stow: true,
        }
    }

    /// Like [`tiny`](Self::tiny), but with leaves and slices of 4 KiB, a write buffer of 32 KiB and
    /// no stowing: trees get inner nodes from 20 KiB on.
    #[must_use]
    pub fn tall() -> Self {
        Self {
            slice_bytes_min: 4 << 10,
            leaf_bytes: (4 << 10, 4 << 10),
            write_buffer_bytes: 32 << 10,
            stow: false,
            ..Self::tiny()
        }
    }

    /// Returns random options that fit any history.
    #[must_use]
    pub fn random(prng: &mut Prng) -> Self {
        let filters = [
            FilterPolicy::None,
            FilterPolicy::Full,
            FilterPolicy::Runs,
            FilterPolicy::Prefix(2),
            FilterPolicy::Prefix(9),
        ];
        let pick = |prng: &mut Prng, of: &[u64]| of[prng.index(of.len())];
        let leaf_min = pick(prng, &[4, 8, 16, 64, 512]) << 10;
        Self {
            memory_bytes: pick(prng, &[4, 8, 64]) << 20,
            write_buffer_bytes: pick(prng, &[16 << 10, 64 << 10, 256 << 10, 0]),
            threads: 0,
            wal_compression: prng.chance(1, 2),
            sync: SyncMode::Always,
            codec: any_codec(prng.next_u64()),
            filter: filters[prng.index(filters.len())],
            block_bytes: (
                pick(prng, &[256, 1 << 10, 16 << 10]) as usize,
                pick(prng, &[256, 4 << 10, 32 << 10]) as usize,
            ),
            fanout: pick(prng, &[2, 3, 4, 16]) as usize,
            leaf_bytes: (leaf_min, leaf_min * pick(prng, &[1, 4, 32])),
            slice_bytes_min: pick(prng, &[256, 512, 4096, 64 << 10]),
            writes_before_base: pick(prng, &[1, 2, 3, 4]) as u8,
            stow: prng.chance(1, 2),
        }
    }

    /// Returns the options for opening the database.
    #[must_use]
    pub fn options(&self) -> Options {
        Options::new()
            // With background threads the engine needs at least 16 MiB. The write buffer stays the
            // same.
            .memory_bytes(self.memory_bytes.max(if self.threads > 0 { 16 << 20 } else { 0 }))
            .write_buffer_bytes(self.write_buffer_bytes)
            .background_threads(self.threads)
            .log_compression(self.wal_compression)
            .sync(self.sync)
            .reserve_bytes(0)
            .update_fn(Append)
            .update_fn(Mix)
    }

    /// Returns the options for creating a tree.
    #[must_use]
    pub fn tree_options(&self, function: Function) -> TreeOptions {
        let options = TreeOptions::new()
            .codec(self.codec)
            .filter(self.filter)
            .fanout(self.fanout)
            .block_bytes(self.block_bytes.0)
            .shape(|shape| {
                shape.run_block_bytes = self.block_bytes.1;
                (shape.leaf_bytes_min, shape.leaf_bytes_max) = self.leaf_bytes;
                shape.slice_bytes_min = self.slice_bytes_min;
                shape.writes_before_base = self.writes_before_base;
            });
        match function {
            Function::None => options,
            Function::Append => options.update_fn("append", 1),
            Function::Mix => options.update_fn("mix", 3),
        }
    }
}

/// A fast codec is drawn this many times as often as a slow one.
const QUICK_WEIGHT: usize = 10;

/// Returns the codec that a random number chooses: each codec at each level, slow ones rarely, so
/// that tests stay short.
#[must_use]
pub fn any_codec(number: u64) -> Codec {
    let (slow, quick): (Vec<Codec>, Vec<Codec>) = Codec::all().partition(|codec| codec.is_slow());
    let at = (number % (slow.len() + QUICK_WEIGHT * quick.len()) as u64) as usize;
    slow.get(at).copied().unwrap_or_else(|| quick[(at - slow.len()) / QUICK_WEIGHT])
}

/// Opens a database on `device` with the options of a setup and the given clock.
///
/// # Errors
/// Like [`Db::open`].
pub fn open(device: &MemoryDevice, setup: &Setup, clock: &SharedClock) -> Result<Db> {
    open_shared(Arc::new(device.clone()), setup, clock)
}

pub(crate) fn open_shared(device: SharedDevice, setup: &Setup, clock: &SharedClock) -> Result<Db> {
    TestDb::on(device).options(setup.options()).clock(Arc::clone(clock)).open()
}

/// Returns a clock for one simulation. A sleep advances it without blocking, as `advance` does.
#[must_use]
pub fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::stepping())
}
