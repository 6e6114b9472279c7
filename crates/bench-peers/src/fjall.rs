//! fjall as an implementation of the benchmark's traits: a log-structured merge tree in Rust.
//!
//! Half of the memory is the block cache, and half are the write buffers. Each tree gets an equal
//! share of the buffers, and fills one half of the share while the other half is flushed.

use std::path::Path;

use fjall::config::CompressionPolicy;
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use frondb_bench::engine::{
    Batch, Change, Codec, Digest, Durability, Engine, EngineKind, EngineOptions, Reader,
};
use frondb_bench::{Error, Result};
use frondb_core::sync::atomic::{AtomicUsize, Ordering};

/// The entry of fjall in the registry.
pub(crate) const FJALL: EngineKind =
    EngineKind { name: "fjall", describe, codecs: &[Codec::Standard, Codec::None], open };

const WORKERS: usize = 3;

struct Fjall {
    db: Database,
    trees: Vec<Keyspace>,
    compactions: AtomicUsize,
}

/// Returns the bytes of the block cache and of one write buffer.
fn shares(options: &EngineOptions) -> (u64, u64) {
    let half = options.memory_bytes / 2;
    (half, half / (2 * options.trees.len().max(1) as u64))
}

fn describe(options: &EngineOptions) -> String {
    let (cache, buffer) = shares(options);
    let codec = if options.codec == Codec::None { "no compression" } else { "lz4" };
    format!(
        "fjall 3: {codec}, block cache {} MiB, write buffers of {} MiB, {WORKERS} workers, else its \
         defaults",
        cache >> 20,
        buffer >> 20
    )
}

fn open(dir: &Path, options: &EngineOptions) -> Result<Box<dyn Engine>> {
    let (cache, buffer) = shares(options);
    let db = Database::builder(dir.join("fjall"))
        .cache_size(cache)
        .worker_threads(WORKERS)
        .open()
        .map_err(Error::engine)?;
    let create = || {
        let create = KeyspaceCreateOptions::default().max_memtable_size(buffer);
        match options.codec {
            Codec::None => {
                create.data_block_compression_policy(CompressionPolicy::all(CompressionType::None))
            }
            _ => create,
        }
    };
    let trees = options.trees.iter().map(|tree| db.keyspace(tree.name, create));
    let trees = trees.collect::<std::result::Result<_, _>>().map_err(Error::engine)?;
    Ok(Box::new(Fjall { db, trees, compactions: AtomicUsize::new(0) }))
}

impl Engine for Fjall {
    fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        let mode = match durability {
            Durability::NoSync => PersistMode::Buffer,
            Durability::Sync => PersistMode::SyncAll,
        };
        let mut write = self.db.batch().durability(Some(mode));
        for change in batch.changes() {
            match change {
                Change::Put { tree, key, value } => write.insert(&self.trees[tree], key, value),
                Change::Delete { tree, key } => write.remove(&self.trees[tree], key),
            }
        }
        write.commit().map_err(Error::engine)
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(FjallReader { engine: self }))
    }

    /// Returns whether no flush is outstanding and no compaction runs. fjall does not report queued
    /// compactions, so the engine counts as settled only if no compaction has ended since the last
    /// call either.
    fn is_settled(&self) -> Result<bool> {
        let completed = self.db.compactions_completed();
        let quiet = self.compactions.swap(completed, Ordering::Relaxed) == completed;
        Ok(quiet && self.db.outstanding_flushes() == 0 && self.db.active_compactions() == 0)
    }

    fn sync(&self) -> Result<()> {
        self.db.persist(PersistMode::SyncAll).map_err(Error::engine)
    }

    fn stats(&self) -> String {
        format!("{} compactions\n", self.db.compactions_completed())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct FjallReader<'a> {
    engine: &'a Fjall,
}

impl Reader for FjallReader<'_> {
    fn get(&mut self, tree: usize, key: &[u8], digest: &mut Digest) -> Result<bool> {
        let value = self.engine.trees[tree].get(key).map_err(Error::engine)?;
        if let Some(value) = &value {
            digest.add(key, value);
        }
        Ok(value.is_some())
    }

    fn scan(&mut self, tree: usize, from: &[u8], limit: u64, digest: &mut Digest) -> Result<u64> {
        let mut range = self.engine.trees[tree].range::<&[u8], _>(from..);
        let mut items = 0;
        while items < limit {
            let Some(entry) = range.next() else { break };
            let (key, value) = entry.into_inner().map_err(Error::engine)?;
            digest.add(&key, &value);
            items += 1;
        }
        Ok(items)
    }

    fn first_key(&mut self, tree: usize) -> Result<Option<Vec<u8>>> {
        let first = self.engine.trees[tree].first_key_value().map(|entry| entry.key());
        Ok(first.transpose().map_err(Error::engine)?.map(|key| key.to_vec()))
    }

    fn last_key(&mut self, tree: usize) -> Result<Option<Vec<u8>>> {
        let last = self.engine.trees[tree].last_key_value().map(|entry| entry.key());
        Ok(last.transpose().map_err(Error::engine)?.map(|key| key.to_vec()))
    }
}
