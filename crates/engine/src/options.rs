//! Options of the engine and of a tree, and how a tree's are kept in the manifest.

use std::collections::BTreeMap;
use std::time::Duration;

use frondb_block::Codec;
use frondb_core::codec::{Reader, Truncated, put_bytes, put_varint};
use frondb_core::message::{SharedUpdateFn, UpdateFn};
use frondb_core::sync::Arc;
use frondb_core::{Error, Result};
use frondb_trunk::{FilterPolicy, TrunkOptions};
use frondb_wal::{SyncMode, WalOptions};

use crate::memory::Memory;

/// When a commit returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[non_exhaustive]
pub enum Durability {
    /// When it survives power loss (as far as [`EngineOptions::sync`] says so).
    #[default]
    Sync,
    /// When the operating system has it: it survives the end of the process, not power loss.
    NoSync,
}

/// Update functions by name and version, given before the log is replayed (rule 16).
#[derive(Clone, Default)]
pub struct UpdateFns(BTreeMap<(String, u32), SharedUpdateFn>);

impl UpdateFns {
    /// Registers a function under its name and version, beside other versions of it.
    pub fn register(&mut self, function: SharedUpdateFn) {
        self.0.insert((function.name().to_owned(), function.version()), function);
    }

    /// The function of this name and version.
    ///
    /// # Errors
    /// `Invalid` if it was not registered.
    pub fn find(&self, name: &str, version: u32) -> Result<SharedUpdateFn> {
        let found = self.0.get(&(name.to_owned(), version));
        found.map(Arc::clone).ok_or_else(|| Error::invalid(self.missing(name, version)))
    }

    /// The function, or one that stands in for it: it applies nothing and says why. So merges
    /// leave its operands as they are, and only who must resolve one fails.
    pub(crate) fn find_or_stand_in(&self, name: &str, version: u32) -> SharedUpdateFn {
        self.find(name, version).unwrap_or_else(|_| {
            Arc::new(StandIn { name: name.into(), version, why: self.missing(name, version) })
        })
    }

    fn missing(&self, name: &str, version: u32) -> String {
        let others: Vec<String> = self
            .0
            .keys()
            .filter(|(other, _)| other == name)
            .map(|(_, version)| version.to_string())
            .collect();
        match &others[..] {
            [] => format!("update function {name:?} is not registered"),
            others => format!(
                "update function {name:?} is registered as version {}, the tree needs {version}",
                others.join(", ")
            ),
        }
    }
}

/// Stands in for an update function that is not registered.
struct StandIn {
    name: String,
    version: u32,
    why: String,
}

impl UpdateFn for StandIn {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn apply(&self, _: &[u8], _: Option<&[u8]>, _: &[u8]) -> Result<Vec<u8>, String> {
        Err(self.why.clone())
    }

    fn combine(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

impl std::fmt::Debug for UpdateFns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Options of an open engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// The one memory budget, bytes: cache, memtables, filters, indexes and work buffers.
    /// At least 16 MiB; without background threads 4 MiB.
    pub memory_bytes: u64,
    /// Memtable bytes at which the largest is frozen and flushed; 0 for a quarter of the memory, of little
    /// memory less (rule 4); else 16 KiB to half of the memory.
    pub write_buffer_bytes: u64,
    /// Make a new database if the directory has none.
    pub create: bool,
    /// Fail if the directory has a database already.
    pub create_new: bool,
    /// Open without writing a byte: see [`Engine::open`](crate::Engine::open).
    pub read_only: bool,
    /// What [`Durability::Sync`] waits for, until it is changed.
    pub sync: SyncMode,
    /// A file of the log is closed before it grows beyond so many bytes: 64 KiB to 1 GiB; 0 for a
    /// quarter of the write buffer, at most 100 MiB.
    pub wal_segment_bytes: u64,
    /// Compress log records with lz4 where it pays.
    pub wal_compression: bool,
    /// Threads for flushes and merges; 0 runs all of it inside the calls that need it, for
    /// deterministic tests.
    pub background_threads: usize,
    /// Bypass the operating system's cache for data files where the file system can.
    pub direct_io: bool,
    /// Disk space kept for deletes and one merge on a full disk (rule 25), bytes; at most 256 MiB.
    pub reserve_bytes: u64,
    /// How long a record of the log may be the only place of its messages, about; zero for as long as
    /// the log is short enough. At most a year.
    pub checkpoint_period: Duration,
    /// Bytes a second that flushes and merges may write; 0 for no limit.
    pub background_bytes_per_second: u64,
    /// Update functions that trees may name.
    pub update_fns: UpdateFns,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            memory_bytes: 256 << 20,
            write_buffer_bytes: 0,
            create: true,
            create_new: false,
            read_only: false,
            sync: SyncMode::Always,
            wal_segment_bytes: 0,
            wal_compression: false,
            background_threads: 2,
            direct_io: true,
            reserve_bytes: 24 << 20,
            checkpoint_period: Duration::ZERO,
            background_bytes_per_second: 0,
            update_fns: UpdateFns::default(),
        }
    }
}

impl EngineOptions {
    /// Smallest budget accepted, bytes: the smallest that the whole process keeps to.
    pub const MEMORY_BYTES_MIN: u64 = 16 << 20;
    /// The same without background threads, for tests: there the parts keep to it.
    pub const MEMORY_BYTES_MIN_WITHOUT_THREADS: u64 = 4 << 20;
    /// Largest reserve accepted, bytes.
    pub const RESERVE_BYTES_MAX: u64 = 256 << 20;
    /// Smallest segment of the log, bytes.
    pub const WAL_SEGMENT_BYTES_MIN: u64 = 64 << 10;
    /// Largest segment of the log, bytes.
    pub const WAL_SEGMENT_BYTES_MAX: u64 = 1 << 30;

    /// Checks the ranges.
    ///
    /// # Errors
    /// `Invalid`, naming the option and its range.
    pub fn check(&self) -> Result<()> {
        self.memory().check()?;
        if self.background_threads > 256 {
            return Err(Error::invalid(format!(
                "background_threads is {}; it must be 0 to 256",
                self.background_threads
            )));
        }
        if self.reserve_bytes > Self::RESERVE_BYTES_MAX {
            return Err(Error::invalid(format!(
                "the reserve is {} bytes; it must be at most {}",
                self.reserve_bytes,
                Self::RESERVE_BYTES_MAX
            )));
        }
        let segment = self.wal_segment_bytes;
        let range = Self::WAL_SEGMENT_BYTES_MIN..=Self::WAL_SEGMENT_BYTES_MAX;
        if segment != 0 && !range.contains(&segment) {
            return Err(Error::invalid(format!(
                "the log's segment is {segment} bytes; it must be 0 (a quarter of the write \
                 buffer) or {} to {}",
                range.start(),
                range.end()
            )));
        }
        crate::period::check(self.checkpoint_period)?;
        self.sync.check()
    }

    /// How the log is written.
    pub(crate) fn wal(&self) -> WalOptions {
        let segment_bytes = match self.wal_segment_bytes {
            0 => (self.memory().write_buffer_bytes() / 4)
                .clamp(Self::WAL_SEGMENT_BYTES_MIN, 100 << 20),
            bytes => bytes,
        };
        let others = WalOptions::default();
        WalOptions {
            segment_bytes,
            sync: self.sync,
            compression: self.wal_compression,
            reserve_bytes: others.reserve_bytes.min(segment_bytes),
            ..others
        }
    }

    /// How the memory is shared out when it is opened.
    pub(crate) fn memory(&self) -> Memory {
        self.memory_of(self.memory_bytes)
    }

    /// The same if it were so much.
    pub(crate) fn memory_of(&self, bytes: u64) -> Memory {
        Memory::new(bytes, self)
    }
}

/// Options of one tree, fixed when it is made.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TreeOptions {
    /// Shape and encoding.
    pub trunk: TrunkOptions,
    /// Name and version of the update function, if it has one.
    pub update_fn: Option<(String, u32)>,
}

impl TreeOptions {
    /// Checks the ranges.
    ///
    /// # Errors
    /// `Invalid`, naming the option and its range.
    pub fn check(&self) -> Result<()> {
        let t = &self.trunk;
        t.base_codec.validate()?;
        t.run_codec.validate()?;
        let within = |name: &str, value: u64, min: u64, max: u64| {
            if (min..=max).contains(&value) {
                return Ok(());
            }
            Err(Error::invalid(format!("{name} is {value}; it must be {min} to {max}")))
        };
        within("fanout", t.fanout as u64, 2, 1024)?;
        within("base_block_bytes", t.base_block_bytes as u64, 256, 4 << 20)?;
        within("run_block_bytes", t.run_block_bytes as u64, 256, 4 << 20)?;
        within("leaf_bytes_max", t.leaf_bytes_max, 4 << 10, 4 << 30)?;
        within("leaf_bytes_min", t.leaf_bytes_min, 4 << 10, t.leaf_bytes_max)?;
        within("slice_bytes_min", t.slice_bytes_min, 256, 64 << 20)?;
        within("writes_before_base", u64::from(t.writes_before_base), 1, 4)?;
        within("growth_percent", t.growth_percent, 10, 1000)?;
        within("garbage_percent", t.garbage_percent, 5, 95)
    }

    /// Appends the encoding: codecs as text, numbers as varints.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let t = &self.trunk;
        put_bytes(out, t.base_codec.to_string().as_bytes());
        put_bytes(out, t.run_codec.to_string().as_bytes());
        let (filter, prefix) = match t.filter {
            FilterPolicy::None => (0, 0),
            FilterPolicy::Full => (1, 0),
            FilterPolicy::Runs => (2, 0),
            FilterPolicy::Prefix(n) => (3, n),
        };
        for number in [
            filter,
            u64::from(prefix),
            t.base_block_bytes as u64,
            t.run_block_bytes as u64,
            t.fanout as u64,
            t.leaf_bytes_min,
            t.leaf_bytes_max,
            t.slice_bytes_min,
            u64::from(t.writes_before_base),
            t.growth_percent,
            t.garbage_percent,
        ] {
            put_varint(out, number);
        }
        match &self.update_fn {
            None => put_varint(out, 0),
            Some((name, version)) => {
                put_varint(out, u64::from(*version) + 1);
                put_bytes(out, name.as_bytes());
            }
        }
    }

    /// Decodes what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// [`Truncated`] if the bytes are cut short or out of range.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, Truncated> {
        let base_codec = codec(input)?;
        let run_codec = codec(input)?;
        let filter = input.varint()?;
        let prefix = u16::try_from(input.varint()?).map_err(|_| Truncated)?;
        let filter = match filter {
            0 => FilterPolicy::None,
            1 => FilterPolicy::Full,
            2 => FilterPolicy::Runs,
            3 => FilterPolicy::Prefix(prefix),
            _ => return Err(Truncated),
        };
        let trunk = TrunkOptions {
            base_codec,
            run_codec,
            filter,
            base_block_bytes: input.varint_u32()? as usize,
            run_block_bytes: input.varint_u32()? as usize,
            fanout: input.varint_u32()? as usize,
            leaf_bytes_min: input.varint()?,
            leaf_bytes_max: input.varint()?,
            slice_bytes_min: input.varint()?,
            writes_before_base: u8::try_from(input.varint()?).map_err(|_| Truncated)?,
            growth_percent: input.varint()?,
            garbage_percent: input.varint()?,
        };
        let update_fn = match input.varint()? {
            0 => None,
            n => {
                let version = u32::try_from(n - 1).map_err(|_| Truncated)?;
                let name = std::str::from_utf8(input.bytes()?).map_err(|_| Truncated)?;
                Some((name.to_owned(), version))
            }
        };
        let options = Self { trunk, update_fn };
        options.check().map_err(|_| Truncated)?;
        Ok(options)
    }
}

fn codec(input: &mut Reader<'_>) -> Result<Codec, Truncated> {
    let text = std::str::from_utf8(input.bytes()?).map_err(|_| Truncated)?;
    text.parse().map_err(|_| Truncated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use frondb_core::prng::Prng;

    fn codec(prng: &mut Prng) -> Codec {
        let level = prng.below(24) as u8;
        let all =
            [Codec::None, Codec::Lz4, Codec::Zstd(level), Codec::Zlib(level), Codec::Lzma(level)];
        all[prng.index(all.len())]
    }

    /// `at` or a neighbour of it, now and then anything at all.
    fn around(prng: &mut Prng, at: &[u64]) -> u64 {
        if prng.chance(1, 40) {
            return prng.next_u64();
        }
        at[prng.index(at.len())].saturating_add(prng.below(3)).saturating_sub(1)
    }

    /// Options within the ranges, at their ends, and just outside.
    fn random(prng: &mut Prng) -> TreeOptions {
        let filter = match prng.below(4) {
            0 => FilterPolicy::None,
            1 => FilterPolicy::Full,
            2 => FilterPolicy::Runs,
            _ => FilterPolicy::Prefix(around(prng, &[1, 300, 65_534]) as u16),
        };
        let block = &[300, 16 << 10, 4 << 20];
        let trunk = TrunkOptions {
            base_codec: codec(prng),
            run_codec: codec(prng),
            filter,
            base_block_bytes: around(prng, block) as usize,
            run_block_bytes: around(prng, block) as usize,
            fanout: around(prng, &[3, 16, 1024]) as usize,
            leaf_bytes_min: around(prng, &[5 << 10, 1 << 20]),
            leaf_bytes_max: around(prng, &[1 << 20, 4 << 30]),
            slice_bytes_min: around(prng, &[300, 64 << 10, 64 << 20]),
            writes_before_base: around(prng, &[2, 3, 4]) as u8,
            growth_percent: around(prng, &[11, 100, 1000]),
            garbage_percent: around(prng, &[6, 50, 95]),
        };
        let name: String = (0..prng.below(20)).map(|i| char::from(b'a' + i as u8)).collect();
        let version = around(prng, &[1, u64::from(u32::MAX)]).min(u64::from(u32::MAX)) as u32;
        TreeOptions { trunk, update_fn: prng.chance(1, 2).then_some((name, version)) }
    }

    /// What one `create_tree` accepted, the next open of the database must be able to read.
    #[test]
    fn what_is_accepted_decodes_to_itself() {
        let mut prng = Prng::new(6);
        let (mut accepted, mut refused) = (0, 0);
        for i in 0..100_000 {
            let options = random(&mut prng);
            if options.check().is_err() {
                refused += 1;
                continue;
            }
            accepted += 1;
            let mut bytes = Vec::new();
            options.encode(&mut bytes);
            let mut input = Reader::new(&bytes);
            assert_eq!(TreeOptions::decode(&mut input).ok().as_ref(), Some(&options), "case {i}");
            assert!(input.is_empty(), "case {i}: bytes are left of {options:?}");
        }
        assert!(accepted > 1000 && refused > 1000, "{accepted} accepted, {refused} refused");
    }

    #[test]
    fn a_codec_level_that_does_not_exist_is_named() {
        for codec in [Codec::Zstd(0), Codec::Zstd(20), Codec::Zlib(0), Codec::Lzma(10)] {
            for of_runs in [false, true] {
                let mut options = TreeOptions::default();
                let which = if of_runs {
                    &mut options.trunk.run_codec
                } else {
                    &mut options.trunk.base_codec
                };
                *which = codec;
                let error = options.check().unwrap_err();
                assert_eq!(error.kind(), frondb_core::ErrorKind::Invalid);
                assert!(error.to_string().contains("levels"), "{error}");
            }
        }
    }
}
