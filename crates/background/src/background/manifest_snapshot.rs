//! Writes a snapshot of the manifest. A snapshot contains everything that the edits recorded. It is
//! written from immutable versions while other threads append new edits.

use frondb_commit::PendingState;
use frondb_core::sync::Arc;
use frondb_core::{Lsn, NodeId, Result, RunId, SeqNo, TreeId};
use frondb_manifest::Manifest;
use frondb_records::{Edit, TreeOptions, encode_edit};
use frondb_space::Extent;
use frondb_tree::{State, StowedParts, TreeCore};
use frondb_trunk::NodeImage;

use super::Background;
use crate::counters::add;

/// Bytes. The edits of the manifest are replaced by a snapshot when they are larger than this and
/// larger than the last snapshot.
const MANIFEST_LOG_BYTES: u64 = 4 << 20;

/// Bytes of edits that are written to the file at a time.
const PIECE_BYTES: usize = 256 * 1024;

impl Background {
    /// Replaces the edits of the manifest by a snapshot if they have grown long, or if `force` is
    /// set. Returns whether a snapshot was written.
    ///
    /// # Errors
    /// Errors of the manifest.
    pub fn rotate_manifest(&self, force: bool) -> Result<bool> {
        let is_due = |manifest: &Manifest| {
            force || manifest.log_bytes() > MANIFEST_LOG_BYTES.max(manifest.snapshot_bytes())
        };
        let rotated = self.edits.snapshot(
            is_due,
            || SnapshotState::capture(self),
            |state, writer| {
                let mut bytes = Vec::new();
                state.encode(&mut |edit| {
                    encode_edit(&mut bytes, edit);
                    if bytes.len() > PIECE_BYTES {
                        writer.write(&bytes)?;
                        bytes.clear();
                    }
                    Ok(())
                })?;
                writer.write(&bytes)
            },
        )?;
        if rotated {
            add(&self.counters.manifest_rotations, 1);
        }
        Ok(rotated)
    }
}

/// The state of the database at one moment, as recovery needs it.
#[derive(Debug)]
pub struct Cut {
    /// The contents of a snapshot of the manifest.
    pub manifest: Vec<u8>,
    /// The beginning of the log that belongs to this state: the first record that recovery needs.
    pub start: Lsn,
    /// The end of that log: it is durable up to this position.
    pub end: Lsn,
}

impl Background {
    /// Captures the current state of the database, which includes all records that are durable in
    /// the log.
    ///
    /// # Errors
    /// Errors of encoding an edit.
    pub fn cut(&self) -> Result<Cut> {
        let state = self.edits.capture(|| SnapshotState::capture(self));
        let (start, end) = state.log;
        let mut manifest = Vec::new();
        state.encode(&mut |edit| {
            encode_edit(&mut manifest, edit);
            Ok(())
        })?;
        Ok(Cut { manifest, start, end })
    }
}

/// The contents of a snapshot. Immutable versions keep its parts consistent.
struct SnapshotState {
    trees: Vec<TreeState>,
    pending: PendingState,
    /// The first position of the log that recovery needs, and the position up to which the log is
    /// durable.
    log: (Lsn, Lsn),
    ids: Edit,
}

/// The state of one tree in a snapshot.
struct TreeState {
    tree: Arc<TreeCore>,
    name: String,
    options: Arc<TreeOptions>,
    state: State,
    flushed: SeqNo,
    values: Vec<Vec<Extent>>,
}

impl SnapshotState {
    /// Captures the state of the database. REQUIRES: no edit is under way.
    fn capture(background: &Background) -> Self {
        let trees = background.trees.all();
        let trees = trees.into_iter().map(|tree| {
            let install = tree.install.lock();
            let state = TreeState {
                name: tree.name.read().clone(),
                options: tree.options(),
                state: tree.state(),
                flushed: install.flushed,
                values: install.values.iter().cloned().collect(),
                tree: Arc::clone(&tree),
            };
            drop(install);
            state
        });
        let trees = trees.collect();
        // Read `durable` after `start`: `start` may be a record with which a memtable was logged
        // again and that has just become durable, and `start` must not lie above `durable`.
        let start = background.log_start();
        let durable = background.log.wal.durable_lsn();
        let start = start.min(durable);
        let largest = background.jobs.ids.largest();
        let pending = {
            let mut pending = background.edits.pending();
            pending.log_begins(start);
            pending.clone()
        };
        Self {
            trees,
            pending,
            log: (start, durable),
            ids: Edit::Ids {
                tree: TreeId(largest.tree),
                run: RunId(largest.run),
                node: NodeId(largest.node),
                seq: background.reads.oracle.visible(),
            },
        }
    }

    /// Calls `put` with each edit of the snapshot.
    fn encode(&self, put: &mut dyn FnMut(&Edit) -> Result<()>) -> Result<()> {
        put(&self.ids)?;
        let (start, durable) = self.log;
        put(&Edit::Log { start, durable })?;
        for state in &self.trees {
            let tree = state.tree.id;
            let (name, options) = (state.name.clone(), TreeOptions::clone(&state.options));
            let begin = |root: NodeId| -> Result<()> {
                put(&Edit::CreateTree { tree, name, options, root })?;
                put(&Edit::Flushed { tree, seq: state.flushed })?;
                let mut values = state.values.iter().cloned();
                values.try_for_each(|extents| put(&Edit::AddValue { tree, extents }))
            };
            let trunk = match &state.state {
                State::Open(version) => &version.trunk,
                State::Stowed(stowed) => {
                    let StowedParts { root, runs, .. } = stowed.parts();
                    begin(root.id)?;
                    runs.into_iter().try_for_each(|run| put(&Edit::AddRun(run)))?;
                    put(&Edit::PutNode { tree, node: root })?;
                    continue;
                }
            };
            begin(trunk.root.id)?;
            let mut seen = std::collections::HashSet::new();
            let mut result = Ok(());
            trunk.for_each(&mut |node| {
                for view in node.views() {
                    let meta = view.run.meta();
                    if result.is_ok() && seen.insert(meta.id) {
                        result = put(&Edit::AddRun(meta.clone()));
                    }
                }
                if result.is_ok() {
                    result = put(&Edit::PutNode { tree, node: NodeImage::of(node) });
                }
            });
            result?;
        }
        self.pending.edits().try_for_each(|edit| put(&edit))
    }
}
