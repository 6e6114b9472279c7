//! Verifies a tree: reads all its data on disk and checks the data for damage.
//!
//! A verification reads every block of every run. It also reads, once, each large value to which a
//! message in a memtable or in a view of a run refers. Messages of a run outside its views no
//! longer belong to a tree, and their large values may have been freed.
//!
//! Writers continue during a verification. The verification holds the version that it reads, so the
//! extents of that version's runs and values are not reused before it ends.

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
use crate::value::{bad_reference, read_value};
use crate::version::Version;

/// What a verification read, and the faults that it found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Runs that were read.
    pub runs: u64,
    /// Messages in those runs.
    pub entries: u64,
    /// Large values that were read.
    pub values: u64,
    /// Bytes on disk of those runs and large values.
    pub bytes: u64,
    /// The faults: the first fault of the nodes, the first of each run, and all of the large
    /// values. A fault does not end the verification.
    pub faults: Vec<Error>,
}

/// Reads every block, index and filter of a tree's runs, and every large value. Checks the
/// checksums, the order and the counts, that the ranges of nodes nest, and that the tree owns the
/// extents of the values. Calls `progress` with the bytes read and the bytes to read, and is
/// cancelled if `progress` returns `false`.
///
/// # Errors
/// `Cancelled`. Damage on disk is not an error: the report lists it as a fault.
pub fn verify_tree(
    context: &ReadContext,
    tree: &TreeCore,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<VerifyReport> {
    // Read before the version is taken: the tree then owns the large values of all messages up to
    // `visible`.
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
        values.report_progress(&report)?;
        for reference in references {
            values.verify(&reference, &mut report)?;
        }
    }
    for (_, reference) in references_in_memory(&version, visible)? {
        values.verify(&reference, &mut report)?;
    }
    Ok(report)
}

/// Returns the runs of a version, attached runs included, each with its views.
pub(crate) fn runs_of(version: &Version) -> BTreeMap<RunId, (Arc<Run>, Vec<View>)> {
    let mut runs: BTreeMap<RunId, (Arc<Run>, Vec<View>)> = BTreeMap::new();
    version.trunk.for_each(&mut |node| {
        for view in node.views() {
            let entry = runs.entry(view.run.meta().id);
            entry.or_insert_with(|| (Arc::clone(&view.run), Vec::new())).1.push(view.clone());
        }
    });
    for run in version.sources().flat_map(|source| source.runs()) {
        let view = View::whole(Arc::clone(run), Key::from([]), None);
        runs.insert(run.meta().id, (Arc::clone(run), vec![view]));
    }
    runs
}

fn bytes_of(extents: &[Extent]) -> u64 {
    extents.iter().map(|extent| extent.bytes()).sum()
}

/// Returns the number of bytes on disk of all large values that the tree owns.
fn owned_bytes(tree: &TreeCore, version: &Version) -> u64 {
    let install = tree.install.lock();
    install.values.bytes() + version.sources().map(|source| source.value_bytes()).sum::<u64>()
}

/// Returns the references to large values in memtables, each preceded by its key.
pub(crate) fn references_in_memory(
    version: &Version,
    visible: SeqNo,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let (mut found, mut chunk) = (Vec::new(), Chunk::new());
    for memtable in version.memtables() {
        let (from, to) = (Bound::Unbounded, Bound::Unbounded);
        let mut cursor = memtable.cursor(Direction::Forward, from, to, visible);
        while cursor.next_chunk(&mut chunk)? {
            let refs = (0..chunk.len()).filter(|&i| chunk.kinds[i] == MessageKind::PutRef);
            found.extend(refs.map(|i| (chunk.key(i).to_vec(), chunk.value(i).to_vec())));
        }
    }
    Ok(found)
}

/// Verifies each large value once.
struct Values<'a> {
    context: &'a ReadContext,
    tree: &'a TreeCore,
    version: &'a Version,
    /// First extents of the values that were read.
    seen: HashSet<Extent>,
    /// Bytes that the verification has to read.
    to_do: u64,
    progress: &'a mut dyn FnMut(u64, u64) -> bool,
}

impl Values<'_> {
    /// Calls the callback with the bytes read and the bytes to read.
    ///
    /// # Errors
    /// `Cancelled` if the callback returns `false`.
    fn report_progress(&mut self, report: &VerifyReport) -> Result<()> {
        // `to_do` lacks large values that the tree released after the version was taken and before
        // `to_do` was computed.
        if (self.progress)(report.bytes, self.to_do.max(report.bytes)) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Cancelled, "verify was cancelled"))
    }

    /// Reads the value that an encoded reference names, unless it was read before.
    fn verify(&mut self, encoded: &[u8], report: &mut VerifyReport) -> Result<()> {
        let Ok(reference) = ValueRef::decode(encoded) else {
            report.faults.push(bad_reference());
            return Ok(());
        };
        let first = reference.extents[0];
        if !self.seen.insert(first) {
            return Ok(());
        }
        if !self.is_owned(&reference.extents) {
            let name = self.tree.name.read().clone();
            let message = format!("tree {name:?} does not own the extents of a value: {first:?}");
            let file = frondb_space::data_file_name(first.file);
            report.faults.push(Error::corruption(file, first.offset(), "value", message));
        }
        report.faults.extend(read_value(&self.context.runs, encoded).err());
        report.values += 1;
        report.bytes += bytes_of(&reference.extents);
        self.report_progress(report)
    }

    /// Returns whether the tree owns these extents now, through runs or memtables. Also `true` if
    /// the tree has released values since the version was taken, because these extents may be among
    /// them.
    fn is_owned(&self, extents: &[Extent]) -> bool {
        let Some(first) = extents.first() else { return false };
        let install = self.tree.install.lock();
        install.values.get(first).is_some_and(|value| **value == *extents)
            || self.version.sources().any(|source| source.owns_value(extents))
            || !Arc::ptr_eq(&self.tree.version().hold, &self.version.hold)
    }
}
