//! Random histories of a write set against a model: writes, range deletes, updates, large values,
//! savepoints, spills; gets and scans in both directions after each. A failure prints its seed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use frondb_block::Codec;
use frondb_cache::{Cache, CacheOptions};
use frondb_core::budget::Budget;
use frondb_core::clock::SystemClock;
use frondb_core::message::UpdateFn;
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicUsize, Ordering};
use frondb_core::{Direction, ErrorKind, MessageKind, Result, SeqNo, Source, TreeId};
use frondb_filter::FilterKind;
use frondb_merge::{Lookup, OwnMessages, VisibleMerge, VisibleOptions, VisibleValue};
use frondb_run::format::ValueRef;
use frondb_run::{FILTER_PART_KEYS, INDEX_PART_BLOCKS, RunEnv, RunOptions};
use frondb_space::{Class, Space, SpaceOptions};
use frondb_testkit::MemoryDevice;
use frondb_testkit::functions::Append;
use frondb_writeset::{OWN_SEQS, SavepointId, SpillEnv, TreeSpill, WriteSet};

const TREES: u32 = 3;

/// The keys that the write set has written: a deleted key maps to `None`; a key that was not
/// written is absent.
type Model = BTreeMap<(u32, Vec<u8>), Option<Vec<u8>>>;

/// The committed value below the own writes.
fn committed(key: &[u8]) -> Option<Vec<u8>> {
    (key[0].is_multiple_of(2)).then(|| b"c".to_vec())
}

struct World {
    rng: Prng,
    space: Arc<Space>,
    env: SpillEnv,
    set: WriteSet,
    model: Model,
    savepoints: Vec<(SavepointId, Model)>,
    keys: Vec<Vec<u8>>,
}

fn world(seed: u64) -> World {
    let device = MemoryDevice::new();
    let options = SpaceOptions { reserve_bytes: 0, slack_bytes: 0, ..SpaceOptions::default() };
    let space = Space::open(Arc::new(device), options, []).unwrap();
    let budget = Budget::new(64 << 20);
    let cache = Cache::new(Arc::clone(&budget), CacheOptions::default());
    let runs = RunEnv::new(Arc::clone(&space), cache, budget, SystemClock::shared());
    let env = SpillEnv {
        runs,
        run_ids: Arc::default(),
        index_budget: Budget::new(u64::MAX),
        runs_max: Arc::new(AtomicUsize::new(5)),
    };
    World {
        rng: Prng::new(seed),
        space,
        env,
        set: WriteSet::new(),
        model: Model::new(),
        savepoints: Vec::new(),
        keys: (0..40).map(|i| vec![i, i ^ 7]).collect(),
    }
}

fn spill_of(tree: TreeId) -> Result<TreeSpill> {
    let options = RunOptions {
        codec: Codec::None,
        block_bytes: 64,
        tree_block_bytes: 64,
        filter: FilterKind::BlockedBloom,
        filter_prefix: None,
        filter_part_keys: FILTER_PART_KEYS,
        index_part_blocks: INDEX_PART_BLOCKS,
        writes: 1,
    };
    Ok(TreeSpill { options, update: update_of(tree) })
}

/// The update function of a tree; only trees 0 and 1 take updates.
fn update_of(tree: TreeId) -> Option<Arc<dyn UpdateFn>> {
    (tree.get() < 2).then(|| Arc::new(Append) as Arc<dyn UpdateFn>)
}

impl World {
    fn key(&mut self) -> Vec<u8> {
        self.rng.pick(&self.keys).unwrap().clone()
    }

    fn step(&mut self) {
        let tree = TreeId(self.rng.below(u64::from(TREES)) as u32);
        match self.rng.below(100) {
            0..50 => self.write(tree),
            50..58 => self.delete_range(tree),
            58..63 => self.write_large(tree),
            63..72 => {
                let id = self.set.set_savepoint();
                self.savepoints.push((id, self.model.clone()));
            }
            72..80 => self.roll_back(),
            80..84 => {
                if !self.savepoints.is_empty() {
                    let at = self.rng.index(self.savepoints.len());
                    self.set.release(self.savepoints[at].0).unwrap();
                    self.savepoints.truncate(at);
                }
            }
            84..93 => self.set.spill_largest(&self.env, &spill_of).unwrap(),
            _ => self.check_scans(),
        }
        self.check_gets();
    }

    fn write(&mut self, tree: TreeId) {
        let key = self.key();
        let value = vec![b'a' + self.rng.below(26) as u8; self.rng.below(4) as usize];
        let slot = (tree.get(), key.clone());
        let writes = self.set.tree(tree);
        match self.rng.below(4) {
            0 => {
                writes.write(MessageKind::Delete, &key, b"");
                self.model.insert(slot, None);
            }
            1 if tree.get() < 2 => {
                writes.write(MessageKind::Update, &key, &value);
                let old = self.model.get(&slot).cloned().unwrap_or_else(|| committed(&key));
                let new = [old.unwrap_or_default(), value].concat();
                self.model.insert(slot, Some(new));
            }
            _ => {
                writes.write(MessageKind::Put, &key, &value);
                self.model.insert(slot, Some(value));
            }
        }
    }

    /// Writes a large value without content. The model has the encoded reference as the value,
    /// because nothing reads the extents.
    fn write_large(&mut self, tree: TreeId) {
        let key = self.key();
        let extent = self.space.acquire(1, Class::Blob).unwrap();
        let reference = ValueRef { len: 1, checksum: self.rng.next_u64(), extents: vec![extent] };
        let mut encoded = Vec::new();
        reference.encode(&mut encoded);
        // Use the tree without updates: an update of the key would have to read the large value.
        let tree = TreeId(TREES - 1).max(tree);
        self.set.tree(tree).write_large(&key, &encoded, 1, vec![extent]);
        self.model.insert((tree.get(), key), Some(encoded));
    }

    fn delete_range(&mut self, tree: TreeId) {
        let (a, b) = (self.key(), self.key());
        let (lo, hi) = (a.clone().min(b.clone()), a.max(b));
        let hi = (lo < hi && self.rng.chance(9, 10)).then_some(hi);
        self.set.tree(tree).write_range_delete(&lo, hi.as_deref());
        for key in
            self.keys.iter().filter(|key| **key >= lo && hi.as_ref().is_none_or(|h| *key < h))
        {
            self.model.insert((tree.get(), key.clone()), None);
        }
    }

    fn roll_back(&mut self) {
        if self.savepoints.is_empty() {
            return;
        }
        let at = self.rng.index(self.savepoints.len());
        let (id, model) = self.savepoints[at].clone();
        self.set.roll_back_to(id, &self.env, &spill_of).unwrap();
        self.savepoints.truncate(at + 1);
        self.model = model;
    }

    fn expected(&self, tree: u32, key: &[u8]) -> Option<Vec<u8>> {
        self.model.get(&(tree, key.to_vec())).cloned().unwrap_or_else(|| committed(key))
    }

    fn check_gets(&mut self) {
        let (tree, key) = (self.rng.below(u64::from(TREES)) as u32, self.key());
        let mut lookup = Lookup::new();
        if let Some(writes) = self.set.find(TreeId(tree)) {
            writes.get(&key, &mut lookup, &self.env.index_budget).unwrap();
        }
        if lookup.wants_more()
            && let Some(value) = committed(&key)
        {
            lookup.feed(SeqNo(7), MessageKind::Put, &value);
        }
        let update = update_of(TreeId(tree));
        let found =
            lookup.finish(&key, update.as_deref(), None).unwrap().map(|found| match found {
                VisibleValue::Value(value) | VisibleValue::Reference(value) => value,
            });
        assert_eq!(found, self.expected(tree, &key), "tree {tree} key {key:?}");
    }

    fn check_scans(&mut self) {
        for tree in 0..TREES {
            for direction in [Direction::Forward, Direction::Backward] {
                let found = self.scan(tree, direction);
                let expected = self.keys.iter();
                let expected =
                    expected.filter_map(|key| Some((key.clone(), self.expected(tree, key)?)));
                let mut expected: Vec<_> = expected.collect();
                if direction == Direction::Backward {
                    expected.reverse();
                }
                assert_eq!(found, expected, "tree {tree} {direction:?}");
            }
        }
    }

    fn scan(&mut self, tree: u32, direction: Direction) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut sources: Vec<Box<dyn Source>> = Vec::new();
        let mut options = VisibleOptions { direction, ..VisibleOptions::new(SeqNo(9)) };
        options.update = update_of(TreeId(tree));
        if let Some(writes) = self.set.find(TreeId(tree)) {
            let own = writes.own(&self.env).unwrap();
            sources = own.sources(direction, b"", None).unwrap();
            let range_deletes = Arc::clone(own.range_deletes());
            options.own = Some(OwnMessages {
                from: OWN_SEQS,
                seen_from: OWN_SEQS,
                upto: own.upto(),
                range_deletes,
            });
        }
        let memtable = frondb_memtable::Memtable::new(Budget::new(u64::MAX));
        let entries: Vec<(Vec<u8>, Vec<u8>)> =
            self.keys.iter().filter_map(|key| Some((key.clone(), committed(key)?))).collect();
        let mut seq = 0;
        for (above, shift) in [(false, 0), (true, 100)] {
            for (key, value) in &entries {
                seq += 1;
                let value = if above { b"unseen" } else { &**value };
                memtable.insert_batch(&[frondb_memtable::Entry {
                    key,
                    seq: SeqNo(seq + shift),
                    kind: MessageKind::Put,
                    value,
                }]);
            }
        }
        options.snapshot = SeqNo(entries.len() as u64);
        let bounds = (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
        sources.push(Box::new(memtable.cursor(direction, bounds.0, bounds.1, SeqNo::MAX)));
        let mut merge = VisibleMerge::new(sources, options);
        let mut found = Vec::new();
        while merge.next().unwrap() {
            found.push((merge.key().to_vec(), merge.value().to_vec()));
        }
        found
    }
}

#[test]
fn histories_agree_with_the_model() {
    for seed in 0..400 {
        let mut world = world(seed);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..150 {
                world.step();
            }
            world.check_scans();
            // Nothing is lost and nothing is left over.
            world.set.discard(&world.env);
            assert_eq!(world.space.stats().used_bytes, 0, "leaked space");
        }));
        assert!(result.is_ok(), "seed {seed}");
    }
}

/// A commit takes the writes to a tree from disk if the tree has spilled, and else from memory.
#[test]
fn sealed_trees_are_on_disk_or_in_memory() {
    let mut world = world(1);
    let (a, b, c) = (TreeId(0), TreeId(1), TreeId(2));
    for i in 0..100_u8 {
        world.set.tree(a).write(MessageKind::Put, &[i], b"first");
        if i % 10 == 9 {
            world.set.spill_largest(&world.env, &spill_of).unwrap();
        }
    }
    world.set.tree(b).write_range_delete(b"x", None);
    world.set.tree(c).write(MessageKind::Put, b"k", b"v");
    world.set.tree(a).write(MessageKind::Put, b"k", b"v");
    world.set.seal(&world.env, &spill_of).unwrap();
    let sealed = world.set.sealed();
    assert_eq!(sealed.len(), 1);
    assert_eq!((sealed[0].tree, sealed[0].numbers), (a, 101));
    assert!(sealed[0].runs.len() < 8, "runs of one size are merged");
    let newest_first =
        |pair: &[Arc<frondb_run::Run>]| pair[0].meta().min_seq > pair[1].meta().max_seq;
    assert!(sealed[0].runs.windows(2).all(newest_first));
    let counts: Vec<u64> = world.set.trees().iter().map(|writes| writes.count()).collect();
    assert_eq!(counts, [0, 1, 1]);
    for run in &sealed[0].runs {
        run.kill();
    }
}

/// If a commit attaches runs of one tree, another tree that would fill a memtable becomes a run,
/// too.
#[test]
fn large_trees_in_memory_are_sealed_with_spilled_ones() {
    let mut world = world(3);
    let (spilled, large, small) = (TreeId(0), TreeId(1), TreeId(2));
    for i in 0..5_000_u32 {
        world.set.tree(large).write(MessageKind::Put, &i.to_be_bytes(), &[7; 1_000]);
    }
    world.set.tree(small).write(MessageKind::Put, b"k", b"v");
    world.set.seal(&world.env, &spill_of).unwrap();
    assert!(world.set.sealed().is_empty(), "nothing has spilled");
    for i in 0..6_000_u32 {
        world.set.tree(spilled).write(MessageKind::Put, &i.to_be_bytes(), &[7; 1_000]);
    }
    world.set.spill_largest(&world.env, &spill_of).unwrap();
    world.set.seal(&world.env, &spill_of).unwrap();
    let sealed = world.set.sealed();
    assert_eq!(sealed.iter().map(|sealed| sealed.tree).collect::<Vec<_>>(), [spilled, large]);
    assert_eq!(sealed[1].runs.iter().map(|run| run.meta().entries).sum::<u64>(), 5_000);
    let in_memory: Vec<u64> = world.set.trees().iter().map(|writes| writes.count()).collect();
    assert_eq!(in_memory.iter().sum::<u64>(), 1);
    for run in sealed.iter().flat_map(|sealed| &sealed.runs) {
        run.kill();
    }
}

/// Rule 17: a large value that the transaction itself overwrote or deleted is freed when no message
/// refers to it. A commit does not take the value over, because no merge would drop its reference.
#[test]
fn a_large_value_is_freed_with_its_last_reference() {
    let mut world = world(2);
    let tree = TreeId(TREES - 1);
    let extents: Vec<_> = (0..3).map(|_| world.space.acquire(1, Class::Blob).unwrap()).collect();
    for (key, extent) in [b"a", b"a", b"b"].into_iter().zip(&extents) {
        let reference = ValueRef { len: 1, checksum: 0, extents: vec![*extent] };
        let mut encoded = Vec::new();
        reference.encode(&mut encoded);
        world.set.tree(tree).write_large(key, &encoded, 1, vec![*extent]);
    }
    world.set.spill_largest(&world.env, &spill_of).unwrap();
    assert_eq!(world.set.sealed()[0].values, [[extents[1]], [extents[2]]]);
    // A merge of runs frees such a value too.
    for n in 0..world.env.runs_max.load(Ordering::Relaxed) {
        world.set.tree(tree).write(MessageKind::Delete, b"b", &[]);
        world.set.tree(tree).write(MessageKind::Put, &[n as u8], b"v");
        world.set.spill_largest(&world.env, &spill_of).unwrap();
    }
    assert_eq!(world.set.sealed()[0].values, [[extents[1]]]);
    world.set.discard(&world.env);
    assert_eq!(world.space.stats().used_bytes, 0, "leaked space");
}

/// A spill that fails after it has written its run frees the run, because the messages stay in
/// memory.
#[test]
fn a_spill_that_fails_frees_its_run() {
    let mut world = world(4);
    let tree = TreeId(TREES - 1);
    world.set.tree(tree).write(MessageKind::PutRef, b"k", b"x");
    world.set.tree(tree).write(MessageKind::Put, b"k", b"v");
    let error = world.set.spill_largest(&world.env, &spill_of).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal, "\"x\" is no reference to a value");
    assert_eq!(world.space.stats().used_bytes, 0, "leaked space");
    assert_eq!(world.set.tree(tree).count(), 2);
    world.set.discard(&world.env);
}

/// A full disk accepts only commits that free space (rule 25): undone puts and updates do not
/// count.
#[test]
fn undone_writes_take_no_space() {
    for spills in [false, true] {
        let mut world = world(1);
        let (a, b) = (TreeId(0), TreeId(1));
        world.set.tree(a).write(MessageKind::Delete, b"k", b"");
        let savepoint = world.set.set_savepoint();
        world.set.tree(a).write(MessageKind::Put, b"k", b"v");
        world.set.tree(b).write(MessageKind::Update, b"k", b"v");
        assert!(!world.set.frees_space());
        if spills {
            world.set.spill_largest(&world.env, &spill_of).unwrap();
        }
        world.set.roll_back_to(savepoint, &world.env, &spill_of).unwrap();
        assert!(world.set.frees_space(), "deletes are left; spilled: {spills}");
        world.set.tree(b).write_range_delete(b"a", None);
        let later = world.set.set_savepoint();
        world.set.roll_back_to(later, &world.env, &spill_of).unwrap();
        assert!(world.set.frees_space(), "a savepoint without later writes");
        world.set.tree(b).write(MessageKind::Put, b"k", b"v");
        let last = world.set.set_savepoint();
        world.set.tree(b).write(MessageKind::Put, b"l", b"v");
        world.set.roll_back_to(last, &world.env, &spill_of).unwrap();
        assert!(!world.set.frees_space(), "a put from before the savepoint stays");
        world.set.discard(&world.env);
    }
}
