//! Reading all that a tree has on disk, to see whether it is what was written.
//!
//! Runs are read block by block, and every large value once: those that a run's views show, and
//! those of memtables. What a run holds outside of its views is of no tree any more, and a value
//! that only such a message names may be gone.
//!
//! Goes on beside writers. It holds the version that it reads, so nothing that it follows is
//! released meanwhile.

use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;

use frondb_core::sync::Arc;
use frondb_core::{Chunk, Direction, Error, ErrorKind, MessageKind, Result, RunId, SeqNo, Source};
use frondb_run::Run;
use frondb_run::format::ValueRef;
use frondb_space::Extent;
use frondb_trunk::{Key, View};

use crate::context::ReadContext;
use crate::tree::TreeCore;
use crate::value::read_value;
use crate::version::Version;

/// What a verification found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Runs read.
    pub runs: u64,
    /// Messages in them.
    pub entries: u64,
    /// Large values read.
    pub values: u64,
    /// Bytes of runs and large values on disk.
    pub bytes: u64,
    /// Every fault found, of each run the first; the rest was read all the same.
    pub faults: Vec<Error>,
}

/// Reads every block, index and filter of a tree's runs and every large value, and checks
/// checksums, order and counts, that nodes nest, and that the tree owns the values' extents.
/// `progress` is given bytes done and to do, and stops the work by returning `false`.
pub fn verify_tree(
    context: &ReadContext,
    tree: &TreeCore,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<VerifyReport> {
    // Values of messages up to here are noted as their tree's.
    let visible = context.oracle.visible();
    let version = tree.version();
    let mut report = VerifyReport::default();
    if let Err(fault) = frondb_trunk::verify(&version.trunk) {
        report.faults.push(fault);
    }
    let runs = runs_of(&version);
    let to_do = runs.values().map(|(run, _)| run.meta().disk_bytes()).sum::<u64>()
        + owned_bytes(tree, &version);
    let mut values =
        Values { context, tree, version: &version, seen: HashSet::new(), to_do, progress };
    for (run, views) in runs.values() {
        let mut references = Vec::new();
        let verified = run.verify_with(&mut |key, reference| {
            if views.iter().any(|view| view.covers(key)) {
                references.push(reference.to_vec());
            }
        });
        report.faults.extend(verified.err());
        report.runs += 1;
        report.entries += run.meta().entries;
        report.bytes += run.meta().disk_bytes();
        values.go_on(&report)?;
        for reference in references {
            values.verify(&reference, &mut report)?;
        }
    }
    for (_, reference) in references_in_memory(&version, visible)? {
        values.verify(&reference, &mut report)?;
    }
    Ok(report)
}

/// The runs of a version, those above its trunk too, each with its views.
pub(crate) fn runs_of(version: &Version) -> BTreeMap<RunId, (Arc<Run>, Vec<View>)> {
    let mut runs: BTreeMap<RunId, (Arc<Run>, Vec<View>)> = BTreeMap::new();
    version.trunk.for_each(&mut |node| {
        for view in node.views() {
            let entry = runs.entry(view.run.meta().id);
            entry.or_insert_with(|| (Arc::clone(&view.run), Vec::new())).1.push(view.clone());
        }
    });
    for run in version.sources().flat_map(|slot| slot.runs()) {
        let view = View::whole(Arc::clone(run), Key::from([]), None);
        runs.insert(run.meta().id, (Arc::clone(run), vec![view]));
    }
    runs
}

fn bytes_of(extents: &[Extent]) -> u64 {
    extents.iter().map(|extent| extent.bytes()).sum()
}

/// Bytes of all large values that the tree owns.
fn owned_bytes(tree: &TreeCore, version: &Version) -> u64 {
    let install = tree.install.lock();
    let in_runs: u64 = install.values.values().map(|value| bytes_of(value)).sum();
    in_runs + version.sources().map(|slot| slot.value_bytes()).sum::<u64>()
}

/// References that the messages in memtables hold, each with its key.
pub(crate) fn references_in_memory(
    version: &Version,
    visible: SeqNo,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let (mut found, mut chunk) = (Vec::new(), Chunk::new());
    for memtable in version.memtables() {
        let all = (Bound::Unbounded, Bound::Unbounded);
        let mut source = memtable.cursor(Direction::Forward, all.0, all.1, visible);
        while source.next_chunk(&mut chunk)? {
            let refs = (0..chunk.len()).filter(|&i| chunk.kinds[i] == MessageKind::PutRef);
            found.extend(refs.map(|i| (chunk.key(i).to_vec(), chunk.value(i).to_vec())));
        }
    }
    Ok(found)
}

/// The large values of one verification.
struct Values<'a> {
    context: &'a ReadContext,
    tree: &'a TreeCore,
    version: &'a Version,
    /// First extents of those read.
    seen: HashSet<Extent>,
    to_do: u64,
    progress: &'a mut dyn FnMut(u64, u64) -> bool,
}

impl Values<'_> {
    fn go_on(&mut self, report: &VerifyReport) -> Result<()> {
        // What is written meanwhile is read too.
        if (self.progress)(report.bytes, self.to_do.max(report.bytes)) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Cancelled, "verify was cancelled"))
    }

    /// Reads the value that an encoded reference names, unless it was read before.
    fn verify(&mut self, encoded: &[u8], report: &mut VerifyReport) -> Result<()> {
        let Ok(reference) = ValueRef::decode(encoded) else {
            report.faults.push(Error::internal("a reference to a value cannot be decoded"));
            return Ok(());
        };
        let first = reference.extents.first().copied();
        if first.is_some_and(|first| !self.seen.insert(first)) {
            return Ok(());
        }
        if !self.is_owned(&reference.extents) {
            let name = self.tree.name.read().clone();
            let message = format!("tree {name:?} does not own the extents of a value: {first:?}");
            report.faults.push(Error::internal(message));
        }
        report.faults.extend(read_value(&self.context.runs.space, encoded).err());
        report.values += 1;
        report.bytes += bytes_of(&reference.extents);
        self.go_on(report)
    }

    /// Whether the tree owns these extents: runs or memtables do, or did when the version was the
    /// newest and have let go of values since.
    fn is_owned(&self, extents: &[Extent]) -> bool {
        let Some(first) = extents.first() else { return false };
        let install = self.tree.install.lock();
        install.values.get(first).is_some_and(|value| **value == *extents)
            || self.version.sources().any(|slot| slot.owns_value(extents))
            || !Arc::ptr_eq(&self.tree.version().hold, &self.version.hold)
    }
}
