//! [`Lab`]: a trunk, its runs, and the manifest that describes it. After every change the lab
//! checks that the manifest would restore the trunk.

use std::collections::{BTreeSet, HashMap, HashSet};

use frondb_block::Codec;
use frondb_cache::{Cache, CacheOptions};
use frondb_core::budget::Budget;
use frondb_core::clock::SystemClock;
use frondb_core::codec::Reader;
use frondb_core::message::SharedUpdateFn;
use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::wear::WriteCause;
use frondb_core::{Direction, NodeId, RangeDelete, RunId, SeqNo, TreeId};
use frondb_merge::{Lookup, VisibleMerge, VisibleOptions, VisibleValue};
use frondb_run::{Output, Run, RunEnv, RunWriter};
use frondb_space::{Class, Space, SpaceOptions};
use frondb_testkit::MemoryDevice;
use frondb_trunk::cut::flush_targets;
use frondb_trunk::install::{Change, Place, PlacedRun, RunsToAttach, VersionBuilder};
use frondb_trunk::job::{Job, JobEnv, JobInput, JobResult, Packing};
use frondb_trunk::plan::{Context, Plan};
use frondb_trunk::{
    CompactionHints, Node, NodeImage, Prepared, Scan, Trunk, TrunkOptions, prepare, restore,
    segment, verify,
};

use super::messages::{Entry, References, VecSource, sort};

const TREE: TreeId = TreeId(7);

/// Options so small that a few hundred messages make a tree of several levels.
pub(crate) fn tiny() -> TrunkOptions {
    TrunkOptions {
        base_codec: Codec::None,
        run_codec: Codec::None,
        base_block_bytes: 64,
        run_block_bytes: 100,
        fanout: 2,
        leaf_bytes_min: 600,
        leaf_bytes_max: 2000,
        slice_bytes_min: 250,
        ..TrunkOptions::default()
    }
}

/// A job that was started for a node.
pub(crate) struct InFlight {
    pub(crate) node: NodeId,
    pub(crate) plan: Plan,
    pub(crate) prepared: Prepared,
    pub(crate) oldest: Option<SeqNo>,
}

/// A memtable's flush that was started.
pub(crate) struct Flushing {
    pub(crate) job: Job,
    pub(crate) deletes: RangeDeletes,
    pub(crate) keep_hidden: Option<SeqNo>,
    pub(crate) leaf_target: u64,
}

pub(crate) struct Lab {
    pub(crate) device: MemoryDevice,
    pub(crate) env: JobEnv,
    pub(crate) trunk: Trunk,
    /// Key and value bytes that a usual flush brings, for the planner's [`Context`].
    pub(crate) flush_raw_bytes: u64,
    /// The content of the manifest.
    images: HashMap<NodeId, NodeImage>,
    root: NodeId,
    views: HashMap<RunId, u32>,
    pub(crate) runs: HashMap<RunId, Arc<Run>>,
    next_node: u64,
}

impl Lab {
    pub(crate) fn new(options: TrunkOptions, update: Option<SharedUpdateFn>) -> Self {
        let device = MemoryDevice::new();
        let space_options = SpaceOptions { slack_bytes: 0, ..SpaceOptions::default() };
        let space = Space::open(Arc::new(device.clone()), space_options, []).unwrap();
        let budget = Budget::new(16 << 20);
        let cache = Cache::new(Arc::clone(&budget), CacheOptions::default());
        let run_env = RunEnv::new(space, cache, budget, SystemClock::shared());
        let run_ids = Arc::new(AtomicU64::new(0));
        let env = JobEnv {
            cause: WriteCause::Merge,
            tree: TREE,
            options,
            run_env,
            run_ids,
            update,
            reads: 0,
            reserved: false,
            packing: Packing::Quick,
        };
        let root = Node::empty_leaf(NodeId(0), Arc::from([]), None);
        Self {
            device,
            env,
            images: HashMap::from([(root.id, NodeImage::of(&root))]),
            trunk: Trunk { tree: TREE, root },
            flush_raw_bytes: options.slice_bytes_min,
            root: NodeId(0),
            views: HashMap::new(),
            runs: HashMap::new(),
            next_node: 0,
        }
    }

    pub(crate) fn context(&self, oldest_snapshot: Option<SeqNo>) -> Context {
        Context {
            options: self.env.options,
            tree_raw_bytes: self.trunk.root.totals.raw_bytes,
            flush_raw_bytes: self.flush_raw_bytes,
            value_bytes: 64 << 10,
            height: self.trunk.height(),
            oldest_snapshot,
            inputs_max: usize::MAX,
        }
    }

    pub(crate) fn nodes(&self) -> Vec<Arc<Node>> {
        let mut nodes = Vec::new();
        self.trunk.for_each(&mut |node| nodes.push(Arc::clone(node)));
        nodes
    }

    pub(crate) fn leaves(&self) -> Vec<Arc<Node>> {
        self.nodes().into_iter().filter(|node| node.is_leaf()).collect()
    }

    /// Starts the flush of a memtable with these messages, as an engine does.
    pub(crate) fn begin_flush(
        &self,
        entries: Vec<Entry>,
        deletes: Vec<RangeDelete>,
        snapshots: &[SeqNo],
    ) -> Flushing {
        let deletes = RangeDeletes::new(deletes);
        let newest_delete = deletes.iter().map(|rd| rd.seq).max().unwrap_or(SeqNo::MIN);
        let keep_hidden = snapshots.first().copied().filter(|s| *s < newest_delete);
        let leaf_target = self.context(snapshots.first().copied()).leaf_target();
        let targets = flush_targets(&self.trunk, self.trunk.root.max_key(), leaf_target);
        let seqs = || entries.iter().map(|entry| entry.seq);
        let raw_bytes =
            entries.iter().map(|entry| (entry.key.len() + entry.value.len()) as u64).sum();
        let input = JobInput {
            seqs: (seqs().min().unwrap_or(SeqNo::MIN), seqs().max().unwrap_or(SeqNo::MIN)),
            sources: vec![Box::new(VecSource::new(entries))],
            range_deletes: deletes.clone(),
            snapshots: snapshots.into(),
            has_updates: self.env.update.is_some(),
            at_base: self.trunk.root.is_empty(),
            raw_bytes,
            disk_bytes: raw_bytes,
            handover: Arc::default(),
        };
        let job = Job::new(self.env.clone(), input, targets, 1).unwrap();
        Flushing { job, deletes, keep_hidden, leaf_target }
    }

    pub(crate) fn install_flush(&mut self, flushing: Flushing) -> JobResult {
        let Flushing { job, deletes, keep_hidden, leaf_target } = flushing;
        let result = run(job);
        self.change(&result.new_runs, |builder| {
            builder.flush(&result.new_runs, &deletes, keep_hidden, leaf_target);
            true
        });
        result
    }

    /// Flushes a memtable in one step.
    pub(crate) fn flush(
        &mut self,
        entries: Vec<Entry>,
        deletes: Vec<RangeDelete>,
        snapshots: &[SeqNo],
    ) -> JobResult {
        let flushing = self.begin_flush(entries, deletes, snapshots);
        self.install_flush(flushing)
    }

    /// Writes messages as a run with local numbers and maps these to the given SeqNos, as a large
    /// commit does.
    pub(crate) fn private_run(
        &self,
        mut entries: Vec<Entry>,
        base: SeqNo,
        each: bool,
        are_base: bool,
    ) -> Arc<Run> {
        sort(&mut entries);
        let id = RunId(self.env.run_ids.fetch_add(1, Ordering::Relaxed) + 1);
        let options = if are_base { self.env.options.base() } else { self.env.options.run(1) };
        let space = Arc::clone(&self.env.run_env.space);
        let mut output = Output::new(space, WriteCause::Merge, Class::Merge, 0, false);
        let mut writer = RunWriter::new(id, TREE, options, each);
        for entry in entries {
            let local = SeqNo(entry.seq.get() - base.get());
            writer.add(&mut output, &entry.key, local, entry.kind, &entry.value).unwrap();
        }
        let meta = writer.finish(&mut output).unwrap().unwrap();
        output.finish().unwrap();
        Run::new(meta, self.env.options.filter_prefix(), Arc::clone(&self.env.run_env))
            .attached(base)
    }

    /// Attaches the runs and range deletes of a commit.
    pub(crate) fn attach(
        &mut self,
        runs: &[Arc<Run>],
        deletes: Vec<RangeDelete>,
        snapshots: &[SeqNo],
        are_base: bool,
    ) {
        let deletes = RangeDeletes::new(deletes);
        let newest_delete = deletes.iter().map(|rd| rd.seq).max().unwrap_or(SeqNo::MIN);
        let keep_hidden = snapshots.first().copied().filter(|s| *s < newest_delete);
        let leaf_target = self.context(snapshots.first().copied()).leaf_target();
        let new_runs = runs.iter().map(|run| PlacedRun {
            run: Arc::clone(run),
            lo: Arc::from([]),
            hi: None,
            place: Place::Slice,
        });
        let new_runs: Vec<PlacedRun> = new_runs.collect();
        self.change(&new_runs, |builder| {
            let incoming = RunsToAttach { runs, deletes: &deletes, are_base };
            builder.attach(&incoming, keep_hidden, leaf_target);
            true
        });
    }

    /// Starts the job of a plan; `None` if the node is no longer there.
    pub(crate) fn begin(&self, node: NodeId, plan: Plan, snapshots: &[SeqNo]) -> Option<InFlight> {
        let found = self.trunk.find(node)?;
        if plan == Plan::TruncatePrefix {
            found.hints.truncate_prefix.store(0, Ordering::Relaxed);
        }
        let oldest = snapshots.first().copied();
        let leaf_target = self.context(oldest).leaf_target();
        let snapshots = snapshots.into();
        let prepared =
            prepare(self.env.clone(), &self.trunk, found, plan, leaf_target, snapshots).unwrap();
        Some(InFlight { node, plan, prepared, oldest })
    }

    /// Runs a job to its end and installs it; `None` if its inputs are no longer there and its
    /// result was discarded.
    pub(crate) fn install(&mut self, job: InFlight) -> Option<JobResult> {
        let InFlight { node, plan, prepared, oldest } = job;
        let Prepared { job, claimed, consumed, run_entries, runs } = prepared;
        let result = run(job);
        let below = |run: &Arc<Run>| {
            let rank = result.first_kept.as_ref().map_or(0, |key| run.rank(key).unwrap());
            (run.meta().id, rank)
        };
        let below = runs.iter().map(below).collect();
        let done = self.change(&result.new_runs, |builder| match plan {
            Plan::FlushNode => {
                builder.flush_node(node, &claimed, &consumed, &result.new_runs, oldest)
            }
            Plan::MergeRuns(_) | Plan::MergeForReaders(_) => {
                builder.merge_runs(node, &claimed, &result.new_runs)
            }
            Plan::MergeBase { .. } => builder.merge_base(node, &claimed, &result.new_runs),
            Plan::TruncatePrefix => {
                let kept = result.first_kept.as_ref();
                builder.truncate_prefix(node, &claimed, kept, &below, CompactionHints::default())
            }
            _ => {
                let met = result.stats.entries_in - result.stats.entries_out;
                let overlap = (met * 100 / run_entries.max(1)).min(100);
                builder.rewrite(node, &claimed, &consumed, &result.new_runs, oldest, overlap)
            }
        });
        done.then_some(result)
    }

    /// Starts and installs a job in one step.
    pub(crate) fn run(&mut self, node: NodeId, plan: Plan, snapshots: &[SeqNo]) -> JobResult {
        let job = self.begin(node, plan, snapshots).unwrap();
        self.install(job).unwrap()
    }

    /// Changes the trunk and checks the change; `false` if there was none.
    pub(crate) fn change(
        &mut self,
        new_runs: &[PlacedRun],
        operate: impl FnOnce(&mut VersionBuilder<'_>) -> bool,
    ) -> bool {
        let next_node = &mut self.next_node;
        let mut next_id = || {
            *next_node += 1;
            NodeId(*next_node)
        };
        let mut builder = VersionBuilder::new(self.trunk.clone(), &mut next_id);
        let done = operate(&mut builder);
        let change = builder.finish();
        if done {
            self.apply(change, new_runs);
        } else {
            assert!(change.images.is_empty() && change.views.is_empty());
            assert!(change.dropped.is_empty() && change.root.is_none());
            new_runs.iter().for_each(|placed| placed.run.kill());
        }
        done
    }

    /// Applies a change as an engine and its manifest do. Checks that the manifest would restore
    /// the same trunk, and that the counts of views are correct.
    fn apply(&mut self, change: Change, new_runs: &[PlacedRun]) {
        if let Err(error) = verify(&change.trunk) {
            panic!("{error}\n{}changed from\n{}", describe(&change.trunk), describe(&self.trunk));
        }
        for placed in new_runs {
            placed.run.verify().unwrap();
            self.runs.insert(placed.run.meta().id, Arc::clone(&placed.run));
        }
        let true_views = count_views(&change.trunk);
        for (run, delta) in &change.views {
            assert_ne!(*delta, 0, "{run:?} is listed without a change");
            let count = self.views.entry(*run).or_insert(0);
            *count = u32::try_from(i64::from(*count) + delta).unwrap();
        }
        self.views.retain(|_, count| *count > 0);
        assert_eq!(self.views, true_views, "counts of views");

        for image in change.images {
            let mut bytes = Vec::new();
            image.encode(&mut bytes);
            let mut reader = Reader::new(&bytes);
            assert_eq!(NodeImage::decode(&mut reader).as_ref(), Ok(&image));
            assert!(reader.is_empty());
            assert!(!change.dropped.contains(&image.id));
            self.images.insert(image.id, image);
        }
        for node in change.dropped {
            assert!(self.images.remove(&node).is_some(), "{node} was dropped but never existed");
        }
        self.root = change.root.unwrap_or(self.root);
        self.trunk = change.trunk;
        self.check_manifest();

        let views = &self.views;
        self.runs.retain(|id, run| {
            let alive = views.contains_key(id);
            if !alive {
                run.kill();
            }
            alive
        });
    }

    /// Checks that a restart would find the current trunk.
    fn check_manifest(&self) {
        let mut run_for = |id| self.runs.get(&id).map(Arc::clone);
        let restored = restore(TREE, self.root, &self.images, &mut run_for).unwrap();
        assert_eq!(restored.views, self.views);
        let mut ids = BTreeSet::new();
        for (found, expected) in nodes_of(&restored.trunk).iter().zip(nodes_of(&self.trunk)) {
            assert_eq!(NodeImage::of(found), NodeImage::of(&expected));
            assert_eq!(found.totals, expected.totals);
            ids.insert(found.id);
        }
        let kept: BTreeSet<NodeId> = self.images.keys().copied().collect();
        assert_eq!(ids, kept, "the manifest holds an unreachable node");
    }

    /// Bytes in extents that belong to no run of the trunk.
    pub(crate) fn leaked_bytes(&self) -> u64 {
        let held = self.runs.values().flat_map(|run| &run.meta().extents).map(|e| e.bytes());
        self.env.run_env.space.stats().used_bytes - held.sum::<u64>()
    }

    pub(crate) fn get(&self, key: &[u8], snapshot: SeqNo) -> Option<Vec<u8>> {
        get(&self.trunk, &self.env, key, snapshot)
    }

    pub(crate) fn scan(
        &self,
        direction: Direction,
        lo: &[u8],
        hi: Option<&[u8]>,
        snapshot: SeqNo,
    ) -> Vec<(Vec<u8>, Vec<u8>)> {
        scan(&self.trunk, &self.env, direction, lo, hi, snapshot)
    }
}

/// Finishes a job, and checks that its runs are in key order and have disjoint ranges.
fn run(mut job: Job) -> JobResult {
    while !job.step().unwrap() {}
    let result = job.finish().unwrap();
    for placed in &result.new_runs {
        let meta = placed.run.meta();
        assert!(*placed.lo <= *meta.first_key);
        assert!(placed.hi.as_ref().is_none_or(|hi| *meta.last_key < **hi));
    }
    for pair in result.new_runs.windows(2) {
        assert!(pair[0].hi.as_ref().is_some_and(|hi| *hi <= pair[1].lo));
    }
    result
}

fn nodes_of(trunk: &Trunk) -> Vec<Arc<Node>> {
    let mut nodes = Vec::new();
    trunk.for_each(&mut |node| nodes.push(Arc::clone(node)));
    nodes
}

fn count_views(trunk: &Trunk) -> HashMap<RunId, u32> {
    let mut views = HashMap::new();
    trunk.for_each(&mut |node| {
        for view in node.views() {
            *views.entry(view.run.meta().id).or_insert(0) += 1;
        }
    });
    views
}

/// The value of a key. References are replaced by the values that they name.
pub(crate) fn get(trunk: &Trunk, env: &JobEnv, key: &[u8], snapshot: SeqNo) -> Option<Vec<u8>> {
    let mut lookup = Lookup::new();
    trunk.get(key, snapshot, &mut lookup).unwrap();
    match lookup.finish(key, env.update.as_deref(), Some(&References)).unwrap() {
        None => None,
        Some(VisibleValue::Value(value)) => Some(value),
        Some(VisibleValue::Reference(reference)) => Some([b"<", &reference[..], b">"].concat()),
    }
}

/// Scans leaf by leaf, as a cursor does. Returns the entries in the order of the scan.
pub(crate) fn scan(
    trunk: &Trunk,
    env: &JobEnv,
    direction: Direction,
    lo: &[u8],
    hi: Option<&[u8]>,
    snapshot: SeqNo,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    let mut at = match direction {
        Direction::Forward => Some(lo.to_vec()),
        Direction::Backward => hi.map(<[u8]>::to_vec),
    };
    loop {
        let scan = Scan { direction, at: at.as_deref(), lo, hi, snapshot, expected: 0 };
        let part = segment(trunk, &scan, &[]).unwrap();
        let options = VisibleOptions {
            direction,
            range_deletes: part.range_deletes,
            update: env.update.clone(),
            values: Some(Arc::new(References)),
            own: None,
            ..VisibleOptions::new(snapshot)
        };
        let mut merge = VisibleMerge::new(part.sources, options);
        while merge.next().unwrap() {
            let value = match merge.kind() {
                frondb_core::MessageKind::PutRef => [b"<", merge.value(), b">"].concat(),
                _ => merge.value().to_vec(),
            };
            found.push((merge.key().to_vec(), value));
        }
        let next = match direction {
            Direction::Forward => part.hi.filter(|end| hi.is_none_or(|hi| **end < *hi)),
            Direction::Backward => Some(part.lo).filter(|start| **start > *lo),
        };
        match next {
            Some(next) => at = Some(next.to_vec()),
            None => return found,
        }
    }
}

/// Ids of the runs that a node holds, newest first, base last.
pub(crate) fn run_ids(node: &Node) -> Vec<u64> {
    node.views().map(|view| view.run.meta().id.get()).collect()
}

/// Ids of the runs that a node holds, as a set, for claims that a test makes itself.
pub(crate) fn claim(node: &Node) -> HashSet<RunId> {
    node.views().map(|view| view.run.meta().id).collect()
}

/// The trunk as text, for failures and text scripts.
pub(crate) fn describe(trunk: &Trunk) -> String {
    let mut out = String::new();
    describe_node(&trunk.root, 0, &mut out);
    out
}

fn describe_node(node: &Node, depth: usize, out: &mut String) {
    use std::fmt::Write;
    let text = |key: &[u8]| key.escape_ascii().to_string();
    let bounds = |lo: &[u8], hi: Option<&[u8]>| {
        format!("[{} .. {})", text(lo), hi.map_or_else(|| "end".into(), text))
    };
    let indent = "  ".repeat(depth);
    let kind = if node.is_leaf() { "leaf" } else { "inner" };
    let range = bounds(&node.lo, node.hi.as_deref());
    writeln!(out, "{indent}{kind} {} {range}", node.id).unwrap();
    for delete in node.range_deletes.iter() {
        let range = bounds(&delete.lo, delete.hi.as_deref());
        writeln!(out, "{indent}  delete {range} at {}", delete.seq).unwrap();
    }
    for (what, views) in [("run", &node.runs[..]), ("base", node.base())] {
        for view in views {
            let meta = view.run.meta();
            let range = bounds(&view.lo, view.hi.as_deref());
            let keys = bounds(&meta.first_key, Some(&meta.last_key));
            let per_entry = if meta.per_entry_seqs { " each" } else { "" };
            let writes = if (2..u8::MAX).contains(&meta.writes) {
                format!(", written {} times", meta.writes)
            } else {
                String::new()
            };
            writeln!(
                out,
                "{indent}  {what} {} {range} of {keys} seqs {}-{}{per_entry}, {} entries{writes}",
                meta.id, meta.min_seq, meta.max_seq, meta.entries
            )
            .unwrap();
        }
    }
    for child in node.children() {
        describe_node(child, depth + 1, out);
    }
}
