//! redb as an implementation of the benchmark's traits: a copy-on-write B-tree in Rust.
//!
//! redb has no durability between "survives power loss" and "lost when the process dies", and
//! reuses no page before the next durable commit. So the adapter makes an unsynced commit durable
//! once a second. Unsynced commits of the other engines survive the end of the process; unsynced
//! commits of redb may be lost.

use std::path::Path;
use std::time::{Duration, Instant};

use frondb_core::sync::Mutex;
use redb::{
    Database, ReadOnlyTable, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction,
};

use crate::engine::{
    Batch, Change, Codec, Digest, Durability, Engine, EngineKind, EngineOptions, Reader,
};
use crate::error::{Error, Result};

/// The entry of redb in the registry.
pub const REDB: EngineKind = EngineKind {
    name: "redb",
    describe: |options| {
        format!(
            "redb 4: cache {} MiB, commits made durable once a second unless synced",
            options.memory_bytes >> 20
        )
    },
    codecs: &[Codec::Standard, Codec::None],
    open,
};

type Definition = TableDefinition<'static, &'static [u8], &'static [u8]>;
type Table = ReadOnlyTable<&'static [u8], &'static [u8]>;

const DURABLE_EVERY: Duration = Duration::from_secs(1);

struct Redb {
    db: Database,
    trees: Vec<Definition>,
    last_durable: Mutex<Instant>,
}

fn open(dir: &Path, options: &EngineOptions) -> Result<Box<dyn Engine>> {
    let memory = usize::try_from(options.memory_bytes).unwrap_or(usize::MAX);
    let db = Database::builder()
        .set_cache_size(memory)
        .create(dir.join("redb"))
        .map_err(Error::engine)?;
    let trees: Vec<Definition> =
        options.trees.iter().map(|tree| TableDefinition::new(tree.name)).collect();
    let txn = db.begin_write().map_err(Error::engine)?;
    for tree in &trees {
        txn.open_table(*tree).map_err(Error::engine)?;
    }
    txn.commit().map_err(Error::engine)?;
    Ok(Box::new(Redb { db, trees, last_durable: Mutex::new(Instant::now()) }))
}

impl Redb {
    fn begin(&self, durable: bool) -> Result<WriteTransaction> {
        let mut txn = self.db.begin_write().map_err(Error::engine)?;
        let durability = if durable { redb::Durability::Immediate } else { redb::Durability::None };
        txn.set_durability(durability).map_err(Error::engine)?;
        Ok(txn)
    }

    /// Returns whether this commit must be durable: the caller asked for it, or a second has passed
    /// since the last durable commit.
    fn is_due(&self, durability: Durability) -> bool {
        let mut last = self.last_durable.lock();
        let due = durability == Durability::Sync || last.elapsed() >= DURABLE_EVERY;
        if due {
            *last = Instant::now();
        }
        due
    }
}

impl Engine for Redb {
    fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        let txn = self.begin(self.is_due(durability))?;
        {
            let mut tables = Vec::with_capacity(self.trees.len());
            for tree in &self.trees {
                tables.push(txn.open_table(*tree).map_err(Error::engine)?);
            }
            for change in batch.changes() {
                match change {
                    Change::Put { tree, key, value } => {
                        tables[tree].insert(key, value).map_err(Error::engine)?;
                    }
                    Change::Delete { tree, key } => {
                        tables[tree].remove(key).map_err(Error::engine)?;
                    }
                }
            }
        }
        txn.commit().map_err(Error::engine)
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(RedbReader { engine: self }))
    }

    fn is_settled(&self) -> Result<bool> {
        Ok(true)
    }

    fn sync(&self) -> Result<()> {
        self.begin(true)?.commit().map_err(Error::engine)
    }

    fn stats(&self) -> String {
        String::new()
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct RedbReader<'a> {
    engine: &'a Redb,
}

impl RedbReader<'_> {
    fn table(&self, tree: usize) -> Result<Table> {
        let txn = self.engine.db.begin_read().map_err(Error::engine)?;
        txn.open_table(self.engine.trees[tree]).map_err(Error::engine)
    }
}

impl Reader for RedbReader<'_> {
    fn get(&mut self, tree: usize, key: &[u8], digest: &mut Digest) -> Result<bool> {
        let table = self.table(tree)?;
        let value = table.get(key).map_err(Error::engine)?;
        if let Some(value) = &value {
            digest.add(key, value.value());
        }
        Ok(value.is_some())
    }

    fn scan(&mut self, tree: usize, from: &[u8], limit: u64, digest: &mut Digest) -> Result<u64> {
        let table = self.table(tree)?;
        let mut range = table.range::<&[u8]>(from..).map_err(Error::engine)?;
        let mut items = 0;
        while items < limit {
            let Some(entry) = range.next() else { break };
            let (key, value) = entry.map_err(Error::engine)?;
            digest.add(key.value(), value.value());
            items += 1;
        }
        Ok(items)
    }

    fn first_key(&mut self, tree: usize) -> Result<Option<Vec<u8>>> {
        let table = self.table(tree)?;
        let first = table.first().map_err(Error::engine)?;
        Ok(first.map(|(key, _)| key.value().to_vec()))
    }

    fn last_key(&mut self, tree: usize) -> Result<Option<Vec<u8>>> {
        let table = self.table(tree)?;
        let last = table.last().map_err(Error::engine)?;
        Ok(last.map(|(key, _)| key.value().to_vec()))
    }
}
