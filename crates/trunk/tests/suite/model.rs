//! Random histories against a model: commits, flushes, every kind of plan started and installed in
//! random order with other steps in between, snapshots taken and released. After a quarter of the
//! steps, the readers of the trunk must see what the model says: lookups at every live snapshot,
//! scans in both directions at some of them.
//!
//! Without an engine, two jobs may work on the same node. So this tests the promise of rule 1 (a
//! job replaces exactly its inputs or is discarded) harder than an engine would.

use std::collections::{BTreeMap, HashSet, VecDeque};

use crate::support::lab::{Flushing, describe, get, scan, tiny};
use crate::support::messages::sort;
use crate::support::model::{Model, State, apply, apply_range};
use crate::support::{Entry, InFlight, Lab, Tags};
use frondb_core::prng::Prng;
use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::{Direction, MessageKind, RangeDelete, SeqNo};
use frondb_testkit::seed;
use frondb_trunk::install::Place;
use frondb_trunk::plan::{Plan, Reason, RunSummary, Summary, plan_node};
use frondb_trunk::{FilterPolicy, Node, Trunk, TrunkOptions};

/// How often each case occurred over all histories: a test that never exercises a case proves
/// nothing.
type Counts = BTreeMap<&'static str, u64>;

/// A frozen memtable, and what readers see once it is flushed.
struct Frozen {
    entries: Vec<Entry>,
    deletes: Vec<RangeDelete>,
    state: State,
    seq: SeqNo,
    beginnings: Vec<Vec<u8>>,
}

/// A reader that holds an older trunk.
struct Pin {
    trunk: Trunk,
    snapshot: SeqNo,
    state: State,
}

/// The random parameters of a history.
#[derive(Clone, Copy, Debug)]
struct Parameters {
    /// Number of keys that are written at random. Appended keys come after them.
    keys: u64,
    /// Percentages: range deletes of all commits; appends at the right end of the other commits;
    /// updates and references of the rest.
    appends: u64,
    updates: u64,
    refs: u64,
    range_deletes: u64,
    /// Most commits in a step of commits. After such a step the memtable is usually frozen.
    batch: u64,
    /// Whether plans run that the planner did not choose.
    forced: bool,
    /// Whether the first rows of leaves are deleted from time to time.
    truncates: bool,
}

struct History {
    prng: Prng,
    parameters: Parameters,
    lab: Lab,
    model: Model,
    /// Number of the next key that is appended; the first is `parameters.keys`.
    appended: u64,
    entries: Vec<Entry>,
    deletes: Vec<RangeDelete>,
    frozen: VecDeque<Frozen>,
    flushing: Option<(Flushing, State, SeqNo, Vec<Vec<u8>>)>,
    /// The model of the content of the trunk.
    flushed: (State, SeqNo),
    /// First keys of leaves whose first rows were deleted. Once the deletes are flushed, a
    /// truncation of these leaves is requested.
    beginnings: Vec<Vec<u8>>,
    jobs: Vec<InFlight>,
    pins: Vec<Pin>,
    refs_written: u64,
    refs_dropped: HashSet<Vec<u8>>,
    counts: Counts,
}

fn key(number: u64) -> Vec<u8> {
    format!("k{number:06}").into_bytes()
}

impl History {
    fn new(seed: u64) -> Self {
        let mut prng = Prng::new(seed);
        let parameters = Parameters {
            keys: *prng.pick(&[20, 150, 400]).unwrap(),
            appends: *prng.pick(&[0, 20, 60, 95]).unwrap(),
            updates: *prng.pick(&[0, 0, 30]).unwrap(),
            refs: *prng.pick(&[0, 0, 0, 5]).unwrap(),
            range_deletes: *prng.pick(&[0, 2, 2, 10, 40]).unwrap(),
            batch: *prng.pick(&[15, 60, 120]).unwrap(),
            forced: prng.chance(3, 4),
            truncates: seed.is_multiple_of(3),
        };
        // All keys share four bytes, and ten keys share six.
        let prefix = FilterPolicy::Prefix(if seed.is_multiple_of(2) { 4 } else { 6 });
        let policies = [FilterPolicy::None, FilterPolicy::Full, FilterPolicy::Runs, prefix];
        let leaf_bytes_min = *prng.pick(&[600, 600, 4000]).unwrap();
        let options = TrunkOptions {
            leaf_bytes_min,
            leaf_bytes_max: 3 * leaf_bytes_min,
            fanout: *prng.pick(&[2, 3, 5]).unwrap(),
            slice_bytes_min: *prng.pick(&[100, 400, 900]).unwrap(),
            filter: *prng.pick(&policies).unwrap(),
            writes_before_base: *prng.pick(&[1, 2, 3]).unwrap(),
            growth_percent: *prng.pick(&[50, 100, 400]).unwrap(),
            ..tiny()
        };
        let update = (parameters.updates > 0).then(|| Arc::new(Tags) as _);
        Self {
            lab: Lab::new(options, update),
            prng,
            parameters,
            model: Model::default(),
            appended: parameters.keys,
            entries: Vec::new(),
            deletes: Vec::new(),
            frozen: VecDeque::new(),
            flushing: None,
            flushed: (State::new(), SeqNo::MIN),
            beginnings: Vec::new(),
            jobs: Vec::new(),
            pins: Vec::new(),
            refs_written: 0,
            refs_dropped: HashSet::new(),
            counts: Counts::new(),
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_insert(0) += 1;
    }

    // --- Commits ---

    fn random_key(&mut self) -> Vec<u8> {
        let recent = self.appended > self.parameters.keys && self.prng.chance(1, 3);
        let number = match recent {
            // Appended rows are read and written again while they are young.
            true => {
                self.appended - 1 - self.prng.below((self.appended - self.parameters.keys).min(30))
            }
            false if self.parameters.appends > 50 => self.prng.below(self.appended),
            false => self.prng.below(self.parameters.keys),
        };
        key(number)
    }

    fn commit(&mut self) {
        let roll = self.prng.below(100);
        if roll < self.parameters.range_deletes {
            return self.commit_range_delete();
        }
        let seq = self.model.next_seq();
        let appends = self.prng.chance(self.parameters.appends, 100);
        let key = if appends {
            self.appended += 1;
            key(self.appended - 1)
        } else {
            self.random_key()
        };
        let mut value = seq.get().to_string().into_bytes();
        value.resize(value.len() + self.prng.index(12), b'.');
        let roll = self.prng.below(100);
        let kind = if appends {
            MessageKind::Put
        } else if roll < self.parameters.refs {
            self.refs_written += 1;
            MessageKind::PutRef
        } else if roll < self.parameters.refs + self.parameters.updates {
            MessageKind::Update
        } else if roll >= 75 {
            value.clear();
            MessageKind::Delete
        } else {
            MessageKind::Put
        };
        let entry = Entry { key, seq, kind, value };
        apply(&mut self.model.now, &entry);
        self.entries.push(entry);
    }

    /// Deletes the first keys of a leaf, which may then be truncated.
    fn commit_deletes_of_a_leafs_prefix(&mut self) {
        let leaf = Arc::clone(self.prng.pick(&self.lab.leaves()).unwrap());
        let n = 1 + self.prng.index(6);
        let first = self.model.now.range(leaf.lo.to_vec()..).take(n);
        let keys: Vec<Vec<u8>> = first.map(|(key, _)| key.clone()).collect();
        for key in keys {
            let (seq, kind) = (self.model.next_seq(), MessageKind::Delete);
            let entry = Entry { key, seq, kind, value: Vec::new() };
            apply(&mut self.model.now, &entry);
            self.entries.push(entry);
        }
        self.beginnings.push(leaf.lo.to_vec());
    }

    fn commit_range_delete(&mut self) {
        let seq = self.model.next_seq();
        let end = self.appended + 5;
        let (lo, hi) = match self.prng.below(10) {
            // From the first key on, as old rows are deleted.
            0..4 => (0, Some(self.prng.below(end))),
            4..9 => {
                let lo = self.prng.below(end);
                (lo, Some(lo + self.prng.below(20)))
            }
            _ => (self.prng.below(end), None),
        };
        let delete = RangeDelete {
            lo: if lo == 0 { Box::default() } else { key(lo).into() },
            hi: hi.map(|hi| key(hi).into()),
            seq,
        };
        apply_range(&mut self.model.now, &delete);
        self.deletes.push(delete);
    }

    fn freeze(&mut self) {
        if !self.entries.is_empty() || !self.deletes.is_empty() {
            self.frozen.push_back(Frozen {
                entries: std::mem::take(&mut self.entries),
                deletes: std::mem::take(&mut self.deletes),
                state: self.model.now.clone(),
                seq: self.model.seq,
                beginnings: std::mem::take(&mut self.beginnings),
            });
        }
    }

    // --- Flushes and jobs ---

    fn begin_flush(&mut self) {
        if self.flushing.is_some() {
            return;
        }
        let Some(Frozen { entries, deletes, state, seq, beginnings }) = self.frozen.pop_front()
        else {
            return;
        };
        let live = self.model.live();
        if self.prng.chance(1, 5) && !entries.is_empty() {
            self.attach(entries, deletes, &live);
            self.flushed = (state, seq);
            return;
        }
        let flushing = self.lab.begin_flush(entries, deletes, &live);
        self.flushing = Some((flushing, state, seq, beginnings));
    }

    /// The messages arrive as the runs of one commit instead of a memtable.
    fn attach(&mut self, entries: Vec<Entry>, deletes: Vec<RangeDelete>, live: &[SeqNo]) {
        let (first, last) = (entries[0].seq, entries[entries.len() - 1].seq);
        let base = SeqNo(first.get().min(deletes.first().map_or(u64::MAX, |rd| rd.seq.get())) - 1);
        let each = self.parameters.updates > 0
            || self.parameters.refs > 0
            || live.iter().any(|s| first <= *s && *s < last)
            || self.prng.chance(1, 2);
        let part = entries.len().div_ceil(1 + self.prng.index(4));
        let mut runs = Vec::new();
        for part in entries.chunks(part) {
            let mut kept: Vec<Entry> = part.to_vec();
            if !each {
                let max = kept[kept.len() - 1].seq;
                let set = RangeDeletes::new(deletes.iter().filter(|rd| rd.seq < max).cloned());
                kept.retain(|entry| !set.hides(&entry.key, entry.seq, SeqNo::MAX));
                sort(&mut kept);
                kept.dedup_by(|a, b| a.key == b.key);
            }
            runs.push(self.lab.private_run(kept, base, each, false));
        }
        runs.reverse();
        let leaves = self.lab.leaves().len();
        self.lab.attach(&runs, deletes, live, false);
        self.count("attached");
        if self.lab.leaves().len() > leaves {
            self.count("attached as a leaf");
        }
    }

    fn install_flush(&mut self) {
        let Some((flushing, state, seq, beginnings)) = self.flushing.take() else { return };
        let leaves = self.lab.leaves().len();
        let result = self.lab.install_flush(flushing);
        if result.new_runs.iter().any(|placed| placed.place == Place::Append) {
            self.count("append");
        }
        if result.new_runs.iter().any(|placed| placed.place == Place::Base) {
            self.count("base from flush");
        }
        if self.lab.leaves().len() < leaves {
            self.count("leaves dropped by a range delete");
        }
        self.flushed = (state, seq);
        self.note_refs(result.dropped_refs);
        for key in beginnings {
            let mut node = &self.lab.trunk.root;
            while let Some(child) = node.child_for(&key) {
                node = child;
            }
            node.hints.request_prefix_truncation();
        }
    }

    fn begin_plan(&mut self) {
        let nodes = self.lab.nodes();
        let root = self.lab.trunk.root.id;
        let live = self.model.live();
        let context = self.lab.context(live.first().copied());
        let summary = |node: &Node| Summary::of(node, node.id == root);
        let (node, plan) = if self.parameters.forced && self.prng.chance(1, 8) {
            let node = self.prng.pick(&nodes).unwrap();
            let Some(plan) = self.forced_plan(&summary(node)) else { return };
            (Arc::clone(node), plan)
        } else {
            let planned = nodes.iter().filter_map(|node| {
                let planned = plan_node(&summary(node), &context)?;
                assert_eq!(planned.node, node.id);
                Some((Arc::clone(node), planned.plan))
            });
            // Idle work would leave nothing to the other kinds of plans.
            let idle = self.prng.chance(1, 6);
            let planned = planned.filter(|(_, plan)| idle || name_of(*plan) != "idle");
            let planned: Vec<_> = planned.collect();
            let Some((node, plan)) = self.prng.pick(&planned).cloned() else { return };
            self.count(name_of(plan));
            (node, plan)
        };
        match plan {
            Plan::Regroup => {
                let fanout = self.lab.env.options.fanout;
                let height = self.lab.trunk.height();
                if self.lab.change(&[], |builder| builder.regroup(node.id, fanout))
                    && self.lab.trunk.height() < height
                {
                    self.count("a level removed");
                }
            }
            Plan::Join(i) => {
                let (a, b) = (node.children()[i].id, node.children()[i + 1].id);
                if !node.children()[i].is_leaf() {
                    self.count("inner nodes joined");
                }
                assert!(self.lab.change(&[], |builder| builder.join(node.id, a, b)));
            }
            _ => self.jobs.extend(self.lab.begin(node.id, plan, &live)),
        }
    }

    /// A plan that is possible, whether or not the planner wants it.
    fn forced_plan(&mut self, node: &Summary) -> Option<Plan> {
        let runs = node.runs.len();
        if node.children.is_empty() {
            let pieces = 1 + self.prng.below(4);
            let truncates = node.old_refs == 0 && self.parameters.refs == 0;
            let views = node.base_views.len();
            return match self.prng.below(5) {
                0 if runs > 0 && truncates => Some(Plan::TruncatePrefix),
                2 if views >= 2 => Some(self.forced_merge_of_base(&node.base_views)),
                0 | 1 if runs >= 2 => Some(Plan::MergeRuns(2 + self.prng.index(runs - 1))),
                _ => Some(Plan::Rewrite(Reason::Idle, pieces)),
            };
        }
        let last = node.children.len() - 1;
        match self.prng.below(6) {
            0 => Some(Plan::Regroup),
            1 if last > 0 => Some(Plan::Join(self.prng.index(last))).filter(|plan| {
                let Plan::Join(i) = *plan else { return false };
                (node.children[i].children == 0) == (node.children[i + 1].children == 0)
            }),
            _ if node.is_root => None,
            2 if runs >= 2 => Some(Plan::MergeRuns(2 + self.prng.index(runs - 1))),
            _ => Some(Plan::FlushNode),
        }
    }

    /// Returns a merge of neighbouring views of a base. No run has views both inside and outside
    /// the merge, because a job claims runs whole (rule 1).
    fn forced_merge_of_base(&mut self, views: &[RunSummary]) -> Plan {
        let is_whole = |from: usize, end: usize| {
            let outside = || views[..from].iter().chain(&views[end..]);
            views[from..end].iter().all(|view| outside().all(|other| other.id != view.id))
        };
        let from = self.prng.index(views.len() - 1);
        let end = from + 2 + self.prng.index(views.len() - from - 1);
        let (from, end) = if is_whole(from, end) { (from, end) } else { (0, views.len()) };
        self.count("merge of a part of a base");
        Plan::MergeBase { from, views: end - from }
    }

    fn install_job(&mut self) {
        if self.jobs.is_empty() {
            return;
        }
        let at = self.prng.index(self.jobs.len());
        let mut job = self.jobs.swap_remove(at);
        if self.prng.chance(1, 15) {
            job.prepared.job.step().unwrap();
            return self.count("job dropped");
        }
        let plan = job.plan;
        let is_rewrite = matches!(plan, Plan::Rewrite(..));
        let leaves = self.lab.leaves().len();
        match self.lab.install(job) {
            None => self.count("thrown away"),
            Some(result) => {
                if plan == Plan::TruncatePrefix {
                    self.count(if self.model.live().is_empty() {
                        "trimmed"
                    } else {
                        "truncated under a snapshot"
                    });
                }
                if is_rewrite && self.lab.leaves().len() > leaves {
                    self.count("leaf split");
                }
                self.note_refs(result.dropped_refs);
            }
        }
    }

    /// Records the references that an installed job reported as no longer needed.
    fn note_refs(&mut self, dropped: Vec<Box<[u8]>>) {
        self.refs_dropped.extend(dropped.into_iter().map(Vec::from));
    }

    // --- Checks ---

    /// The live snapshots that are not newer than the last flush, and the state of the last flush,
    /// each with what a reader sees.
    fn readable(&self) -> Vec<(SeqNo, State)> {
        let seen = self.model.snapshots.iter().filter(|(seq, _)| **seq <= self.flushed.1);
        let mut all: Vec<_> = seen.map(|(seq, state)| (*seq, state.clone())).collect();
        all.push((SeqNo::MAX, self.flushed.0.clone()));
        all
    }

    fn check(&mut self) {
        let readable = self.readable();
        for round in 0..2 {
            let (snapshot, state) = match round {
                0 => readable.last().unwrap(),
                _ => self.prng.pick(&readable).unwrap(),
            };
            check_scans(&mut self.prng, &self.lab.trunk, &self.lab, *snapshot, state);
        }
        for (snapshot, state) in &readable {
            for _ in 0..20 {
                let key = key(self.prng.below(self.appended + 2));
                let found = self.lab.get(&key, *snapshot);
                assert_eq!(found.as_ref(), state.get(&key), "{key:?} at {snapshot}");
            }
            for reference in state.values().filter(|value| value.starts_with(b"<")) {
                let end = reference.iter().position(|&b| b == b'>').unwrap();
                let dropped = self.refs_dropped.contains(&reference[1..end]);
                assert!(!dropped, "the value of a visible reference was freed: {reference:?}");
            }
        }
        for node in self.lab.leaves() {
            node.hints.add_scan_debt(100);
            node.hints.add_run_debt(100);
            // Choose by id, because a random number would change the later history of the seed.
            if node.id.get() % 61 == 0 {
                node.request_optimize();
            }
        }
    }

    fn pin(&mut self) {
        if let Some(at) = (self.pins.len() > 2).then(|| self.prng.index(self.pins.len())) {
            let pin = self.pins.swap_remove(at);
            check_scans(&mut self.prng, &pin.trunk, &self.lab, pin.snapshot, &pin.state);
        }
        let (snapshot, state) = self.prng.pick(&self.readable()).unwrap().clone();
        self.pins.push(Pin { trunk: self.lab.trunk.clone(), snapshot, state });
    }

    fn step(&mut self) {
        match self.prng.below(20) {
            0..4 => {
                for _ in 0..1 + self.prng.below(self.parameters.batch) {
                    self.commit();
                    if self.parameters.truncates && self.prng.chance(1, 20) {
                        self.commit_deletes_of_a_leafs_prefix();
                    }
                    if self.prng.chance(1, 150) {
                        self.model.take_snapshot();
                    }
                }
                if self.prng.chance(2, 3) {
                    self.freeze();
                }
            }
            4..7 => self.begin_flush(),
            7..10 => self.install_flush(),
            10..14 if self.jobs.len() < 4 => self.begin_plan(),
            10..17 => self.install_job(),
            17 if self.prng.chance(1, 2) => self.model.take_snapshot(),
            17 | 18 => {
                let live = self.model.live();
                if let Some(gone) = self.prng.pick(&live) {
                    self.model.snapshots.remove(gone);
                }
            }
            _ => self.pin(),
        }
        if self.prng.chance(1, 100) {
            self.prng.pick(&self.lab.leaves()).unwrap().hints.request_tombstone_compaction();
        }
    }

    fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            self.step();
            if self.prng.chance(1, 4) {
                self.check();
            }
            let height = self.lab.trunk.height();
            if height >= 4 {
                self.count("height 4");
            }
        }
        self.finish();
    }

    /// Executes everything that the planner plans, including idle work. This must end, whatever
    /// snapshots are live: work that causes the same work again would keep an engine busy forever.
    fn run_all_plans(&mut self) {
        let live = self.model.live();
        let mut left = 50 + 6 * self.lab.nodes().len();
        loop {
            let context = self.lab.context(live.first().copied());
            let root = self.lab.trunk.root.id;
            let planned = self.lab.nodes().into_iter().find_map(|node| {
                plan_node(&Summary::of(&node, node.id == root), &context).map(|p| (node, p.plan))
            });
            let Some((node, plan)) = planned else { return };
            assert!(left > 0, "{plan:?} again and again\n{}", describe(&self.lab.trunk));
            left -= 1;
            match plan {
                Plan::Regroup => {
                    let fanout = self.lab.env.options.fanout;
                    assert!(self.lab.change(&[], |builder| builder.regroup(node.id, fanout)));
                }
                Plan::Join(i) => {
                    let (a, b) = (node.children()[i].id, node.children()[i + 1].id);
                    assert!(self.lab.change(&[], |builder| builder.join(node.id, a, b)));
                }
                Plan::TruncatePrefix => {
                    let job = self.lab.begin(node.id, plan, &live).unwrap();
                    // The job is discarded if a reader sees the first key of the leaf.
                    let result = self.lab.install(job);
                    assert!(result.is_none_or(|result| result.dropped_refs.is_empty()));
                }
                _ => {
                    let result = self.lab.run(node.id, plan, &live);
                    self.note_refs(result.dropped_refs);
                }
            }
        }
    }

    /// Flushes and consolidates everything. Then checks that the runs have only what readers see.
    fn finish(&mut self) {
        self.freeze();
        while self.flushing.is_some() || !self.frozen.is_empty() {
            self.install_flush();
            self.begin_flush();
        }
        self.check();
        self.jobs.clear();
        self.pins.clear();
        self.run_all_plans();
        self.check();
        self.model.snapshots.clear();
        self.run_all_plans();
        self.check();
        let buffers = |node: &Arc<Node>| {
            !node.is_leaf() && (!node.runs.is_empty() || !node.range_deletes.is_empty())
        };
        while let Some(node) = self.lab.nodes().into_iter().find(buffers) {
            let result = self.lab.run(node.id, Plan::FlushNode, &[]);
            self.note_refs(result.dropped_refs);
        }
        for leaf in self.lab.leaves() {
            let result = self.lab.run(leaf.id, Plan::Rewrite(Reason::Idle, 1), &[]);
            self.note_refs(result.dropped_refs);
        }
        self.check();
        let (mut entries, mut others) = (0, 0);
        for run in self.lab.runs.values() {
            entries += run.meta().entries;
            others += run.meta().deletes + run.meta().updates;
        }
        let plain = self.parameters.refs == 0 || self.parameters.updates == 0;
        if plain {
            assert_eq!(others, 0, "deletes and updates that no reader needs");
            assert_eq!(entries, self.flushed.0.len() as u64);
        }
        if self.parameters.updates == 0 {
            let live = self.flushed.0.values().filter(|value| value.starts_with(b"<")).count();
            let dropped = self.refs_dropped.len() as u64;
            assert_eq!(self.refs_written, dropped + live as u64, "references are freed once");
        }
        assert_eq!(self.lab.leaked_bytes(), 0);
    }
}

fn check_scans(prng: &mut Prng, trunk: &Trunk, lab: &Lab, snapshot: SeqNo, state: &State) {
    let (a, b) = (prng.below(500), prng.below(500));
    let (lo, hi) = (key(a.min(b)), key(a.max(b)));
    // A range of ten keys with one prefix, for which filters of prefixes may exclude runs.
    let ten = a / 10 * 10;
    let (prefix, next) = (key(ten)[..6].to_vec(), key(ten + 10)[..6].to_vec());
    for (lo, hi) in [(Vec::new(), None), (lo, Some(hi)), (prefix, Some(next))] {
        for direction in [Direction::Forward, Direction::Backward] {
            let found = scan(trunk, &lab.env, direction, &lo, hi.as_deref(), snapshot);
            let inside =
                state.range(lo.clone()..).filter(|(k, _)| hi.as_ref().is_none_or(|h| *k < h));
            let mut expected: Vec<_> = inside.map(|(k, v)| (k.clone(), v.clone())).collect();
            if direction == Direction::Backward {
                expected.reverse();
            }
            assert_same(&found, &expected, &format!("{direction:?} at {snapshot}"), trunk);
        }
    }
    for _ in 0..5 {
        let key = key(prng.below(500));
        assert_eq!(get(trunk, &lab.env, &key, snapshot).as_ref(), state.get(&key));
    }
}

/// Reports the first difference between two lists, and what the trunk holds.
fn assert_same(
    found: &[(Vec<u8>, Vec<u8>)],
    expected: &[(Vec<u8>, Vec<u8>)],
    what: &str,
    trunk: &Trunk,
) {
    if found == expected {
        return;
    }
    let at = found.iter().zip(expected).take_while(|(a, b)| a == b).count();
    let text = |list: &[(Vec<u8>, Vec<u8>)]| {
        list.get(at).map(|(key, value)| {
            (String::from_utf8_lossy(key).into_owned(), String::from_utf8_lossy(value).into_owned())
        })
    };
    let (a, b) = (text(found), text(expected));
    panic!("{what}: entry {at} is {a:?}, expected {b:?}\n{}", describe(trunk));
}

fn name_of(plan: Plan) -> &'static str {
    match plan {
        Plan::FlushNode => "flush node",
        Plan::MergeRuns(_) | Plan::MergeForReaders(_) => "merge runs",
        Plan::MergeBase { .. } => "merge base",
        Plan::TruncatePrefix => "trim",
        Plan::Regroup => "regroup",
        Plan::Join(_) => "join",
        Plan::Rewrite(reason, _) => match reason {
            Reason::Tombstones => "clean",
            Reason::Runs => "runs",
            Reason::RangeDeletes => "range deletes",
            Reason::Growth => "growth",
            Reason::Garbage => "garbage",
            Reason::ScanDebt => "scan debt",
            Reason::Optimize => "optimize",
            Reason::Values => "values",
            Reason::Idle => "idle",
            Reason::Pack => "pack",
        },
    }
}

/// Cases that must have occurred at least once.
const EXPECTED: [&str; 29] = [
    "trim",
    "trimmed",
    "truncated under a snapshot",
    "flush node",
    "merge runs",
    "merge of a part of a base",
    "regroup",
    "join",
    "clean",
    "runs",
    "range deletes",
    "growth",
    "garbage",
    "scan debt",
    "optimize",
    "idle",
    "append",
    "attached",
    "attached as a leaf",
    "base from flush",
    "leaves dropped by a range delete",
    "a level removed",
    "inner nodes joined",
    "thrown away",
    "job dropped",
    "leaf split",
    "height 4",
    "refs",
    "updates",
];

#[test]
fn readers_agree_with_the_model_at_every_step() {
    let first = seed::from_env("FRONDB_TRUNK_SEED", 1u64);
    let rounds = seed::from_env("FRONDB_TRUNK_ROUNDS", 40u64);
    let steps = seed::from_env("FRONDB_TRUNK_STEPS", 500u64);
    let mut counts = Counts::new();
    for seed in first..first + rounds {
        let mut history = History::new(seed);
        println!("FRONDB_TRUNK_SEED={seed} FRONDB_TRUNK_ROUNDS=1: {:?}", history.parameters);
        history.run(steps);
        for (what, count) in &history.counts {
            *counts.entry(what).or_insert(0) += count;
        }
        *counts.entry("refs").or_insert(0) += history.refs_dropped.len() as u64;
        *counts.entry("updates").or_insert(0) += u64::from(history.parameters.updates > 0);
    }
    println!("{counts:#?}");
    if rounds >= 40 {
        let missing: Vec<_> = EXPECTED.iter().filter(|what| !counts.contains_key(**what)).collect();
        assert!(missing.is_empty(), "never happened: {missing:?}");
    }
}
