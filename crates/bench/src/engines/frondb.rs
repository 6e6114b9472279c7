//! FronDB as an implementation of the benchmark's traits. The adapter uses only FronDB's public
//! interface.

use std::path::{Path, PathBuf};

use frondb::{Codec as TreeCodec, Cursor, Db, OptimizeOptions, Options, Tree, TreeOptions};
use frondb_core::sync::Mutex;

use crate::engine::{
    Batch, Change, Codec, Digest, Durability, Engine, EngineKind, EngineOptions, Reader, TreeSpec,
};
use crate::error::{Error, Result};
use crate::measure::disk::allocated_bytes;

/// FronDB's entry in a registry.
pub const FRONDB: EngineKind = EngineKind {
    name: "frondb",
    describe,
    codecs: &[
        Codec::Standard,
        Codec::Aggressive,
        Codec::None,
        Codec::Lz4,
        Codec::Zlib(6),
        Codec::Zstd(3),
        Codec::Zstd(9),
        Codec::Zstd(19),
        Codec::ZstdDictionary(9),
        Codec::Lzma(6),
    ],
    open,
};

/// The space that FronDB reserves for deletes on a full disk: its default, set here because reports
/// subtract it from the size on disk.
const RESERVE_BYTES: u64 = 24 << 20;

struct FronDb {
    db: Db,
    dir: PathBuf,
    trees: Vec<Tree>,
    /// Whether the trees have a slow codec, with which background work packs bases.
    is_packing: bool,
    /// Batches that no write uses now. A write takes and clears one, as an application would.
    batches: Mutex<Vec<frondb::Batch>>,
}

fn describe(options: &EngineOptions) -> String {
    let codec = match options.codec {
        Codec::Standard => "default codecs and blocks".to_owned(),
        codec => format!("codec {codec}"),
    };
    format!(
        "frondb {}: memory {} MiB, {codec}, else its defaults",
        env!("CARGO_PKG_VERSION"),
        options.memory_bytes >> 20
    )
}

fn open(dir: &Path, options: &EngineOptions) -> Result<Box<dyn Engine>> {
    let opening = Options::new().memory_bytes(options.memory_bytes).reserve_bytes(RESERVE_BYTES);
    let db = Db::open(dir, opening).map_err(Error::engine)?;
    let names = db.list_trees();
    let codec = tree_codec(options.codec)?;
    let tree = |tree: &TreeSpec| match names.iter().any(|name| name == tree.name) {
        true => db.open_tree(tree.name),
        false => db.create_tree(tree.name, tree_options(tree, options.codec, codec)),
    };
    let trees = options.trees.iter().map(tree).collect::<std::result::Result<_, _>>();
    Ok(Box::new(FronDb {
        trees: trees.map_err(Error::engine)?,
        dir: dir.to_path_buf(),
        is_packing: codec.is_some_and(TreeCodec::is_slow),
        batches: Mutex::default(),
        db,
    }))
}

/// Returns FronDB's codec of this name; `None` for FronDB's default.
fn tree_codec(codec: Codec) -> Result<Option<TreeCodec>> {
    match codec {
        Codec::Standard => Ok(None),
        codec => codec.to_string().parse().map(Some).map_err(Error::engine),
    }
}

fn tree_options(tree: &TreeSpec, name: Codec, codec: Option<TreeCodec>) -> TreeOptions {
    let Some(codec) = codec.filter(|_| name != Codec::Aggressive) else {
        return if name == Codec::Aggressive { TreeOptions::aggressive() } else { kind(tree) };
    };
    let options = kind(tree).codec(codec);
    // The command `frondb` sets the same size in trees that it creates.
    codec.preferred_block_bytes().map_or(options.clone(), |bytes| options.block_bytes(bytes))
}

fn kind(tree: &TreeSpec) -> TreeOptions {
    if tree.unique { TreeOptions::new() } else { TreeOptions::secondary() }
}

impl Engine for FronDb {
    fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        let mut held = self.batches.lock().pop().unwrap_or_default();
        held.clear();
        for change in batch.changes() {
            match change {
                Change::Put { tree, key, value } => held.put(&self.trees[tree], key, value),
                Change::Delete { tree, key } => held.delete(&self.trees[tree], key),
            }
        }
        let durability = match durability {
            Durability::NoSync => frondb::Durability::NoSync,
            Durability::Sync => frondb::Durability::Sync,
        };
        let written = self.db.write(&held, durability);
        self.batches.lock().push(held);
        written.map_err(Error::engine)
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(FronDbReader { trees: &self.trees }))
    }

    fn is_settled(&self) -> Result<bool> {
        Ok(self.db.is_settled())
    }

    fn sync(&self) -> Result<()> {
        self.db.sync().map_err(Error::engine)
    }

    fn log_syncs(&self) -> Option<u64> {
        Some(self.db.stats().wal_syncs)
    }

    fn packed_bytes(&self) -> Option<u64> {
        self.is_packing.then(|| self.db.stats().packed_bytes)
    }

    fn pack(&self) -> Result<bool> {
        for tree in &self.trees {
            tree.optimize(OptimizeOptions::new(), &mut |_, _| true).map_err(Error::engine)?;
        }
        self.db.checkpoint().map_err(Error::engine)?;
        // `Bench::pack` has already timed FronDB's packing in the background.
        Ok(false)
    }

    fn free_bytes(&self) -> u64 {
        let stats = self.db.stats();
        stats.data_allocated_bytes.saturating_sub(stats.data_used_bytes)
    }

    fn reserved_bytes(&self) -> Result<u64> {
        let log = allocated_bytes(&self.dir.join("wal"))?;
        let passed = log.saturating_sub(self.db.stats().wal_replay_bytes);
        Ok(self.free_bytes().min(RESERVE_BYTES) + passed)
    }

    fn stats(&self) -> String {
        self.db.stats().to_string()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.db.close().map_err(Error::engine)
    }
}

/// A cursor shows the tree as it was when the cursor was created, so every scan creates a cursor.
struct FronDbReader<'a> {
    trees: &'a [Tree],
}

impl FronDbReader<'_> {
    fn cursor(&self, tree: usize) -> Result<Cursor> {
        self.trees[tree].cursor().map_err(Error::engine)
    }
}

impl Reader for FronDbReader<'_> {
    fn get(&mut self, tree: usize, key: &[u8], digest: &mut Digest) -> Result<bool> {
        let value = self.trees[tree].get(key).map_err(Error::engine)?;
        if let Some(value) = &value {
            digest.add(key, value);
        }
        Ok(value.is_some())
    }

    fn multi_get(&mut self, tree: usize, keys: &[&[u8]], digest: &mut Digest) -> Result<u64> {
        let values = self.trees[tree].multi_get(keys).map_err(Error::engine)?;
        let mut found = 0;
        for (key, value) in keys.iter().zip(&values) {
            if let Some(value) = value {
                digest.add(key, value);
                found += 1;
            }
        }
        Ok(found)
    }

    fn scan(&mut self, tree: usize, from: &[u8], limit: u64, digest: &mut Digest) -> Result<u64> {
        let mut cursor = self.cursor(tree)?;
        let mut there = limit > 0 && cursor.seek(from).map_err(Error::engine)?;
        let mut items = 0;
        while there {
            digest.bytes(cursor.key());
            digest.bytes(cursor.value().map_err(Error::engine)?);
            items += 1;
            there = items < limit && cursor.next().map_err(Error::engine)?;
        }
        Ok(items)
    }

    fn first_key(&mut self, tree: usize) -> Result<Option<Vec<u8>>> {
        let mut cursor = self.cursor(tree)?;
        let there = cursor.first().map_err(Error::engine)?;
        Ok(there.then(|| cursor.key().to_vec()))
    }

    fn last_key(&mut self, tree: usize) -> Result<Option<Vec<u8>>> {
        let mut cursor = self.cursor(tree)?;
        let there = cursor.last().map_err(Error::engine)?;
        Ok(there.then(|| cursor.key().to_vec()))
    }
}
