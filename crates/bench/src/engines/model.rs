//! An engine that keeps each tree in a `BTreeMap`. The benchmark's tests run on it. On the command
//! line it measures the cost of the benchmark itself.
//!
//! The model's answers are right by construction, so tests compare the digests of other engines
//! with the model's. The model writes nothing to disk, so its durability and its written bytes mean
//! nothing.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;

use frondb_core::sync::RwLock;

use crate::engine::{
    Batch, Change, Codec, Digest, Durability, Engine, EngineKind, EngineOptions, Reader,
};
use crate::error::Result;

/// The model's entry in a registry.
pub const MODEL: EngineKind = EngineKind {
    name: "model",
    describe: |_| "model: a BTreeMap in memory".to_owned(),
    codecs: &[Codec::Standard, Codec::None],
    open,
};

type Tree = BTreeMap<Box<[u8]>, Box<[u8]>>;

struct Model {
    trees: RwLock<Vec<Tree>>,
}

fn open(_: &Path, options: &EngineOptions) -> Result<Box<dyn Engine>> {
    let trees = options.trees.iter().map(|_| Tree::new()).collect();
    Ok(Box::new(Model { trees: RwLock::new(trees) }))
}

impl Engine for Model {
    fn write(&self, batch: &Batch, _: Durability) -> Result<()> {
        let mut trees = self.trees.write();
        for change in batch.changes() {
            match change {
                Change::Put { tree, key, value } => {
                    trees[tree].insert(key.into(), value.into());
                }
                Change::Delete { tree, key } => {
                    trees[tree].remove(key);
                }
            }
        }
        Ok(())
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(ModelReader { model: self }))
    }

    fn is_settled(&self) -> Result<bool> {
        Ok(true)
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn stats(&self) -> String {
        let trees = self.trees.read();
        trees
            .iter()
            .enumerate()
            .map(|(i, tree)| format!("tree {i}: {} keys\n", tree.len()))
            .collect()
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct ModelReader<'a> {
    model: &'a Model,
}

impl Reader for ModelReader<'_> {
    fn get(&mut self, tree: usize, key: &[u8], digest: &mut Digest) -> Result<bool> {
        let trees = self.model.trees.read();
        let value = trees[tree].get(key);
        if let Some(value) = value {
            digest.add(key, value);
        }
        Ok(value.is_some())
    }

    fn scan(&mut self, tree: usize, from: &[u8], limit: u64, digest: &mut Digest) -> Result<u64> {
        let trees = self.model.trees.read();
        let range = trees[tree].range::<[u8], _>((Bound::Included(from), Bound::Unbounded));
        let mut items = 0;
        for (key, value) in range.take(usize::try_from(limit).unwrap_or(usize::MAX)) {
            digest.add(key, value);
            items += 1;
        }
        Ok(items)
    }

    fn first_key(&mut self, tree: usize) -> Result<Option<Vec<u8>>> {
        Ok(self.model.trees.read()[tree].first_key_value().map(|(key, _)| key.to_vec()))
    }

    fn last_key(&mut self, tree: usize) -> Result<Option<Vec<u8>>> {
        Ok(self.model.trees.read()[tree].last_key_value().map(|(key, _)| key.to_vec()))
    }
}
