//! How far the log is needed, and the manifest's snapshot.
//!
//! The log is needed from the first record whose messages are in a memtable only. A small
//! memtable that pins an old record is logged again (rule 10): so the log stays within twice the
//! write buffer, and thousands of idle trees cost no flush.

use frondb_core::sync::Arc;
use frondb_core::{Lsn, Result, RunId, SeqNo, TreeId};
use frondb_trunk::NodeImage;

use crate::env::Env;
use crate::prepared;
use crate::stats::Counters;
use frondb_commit::Committer;
use frondb_commit::PendingState;
use frondb_manifest::Manifest;
use frondb_records::{Edit, encode_edit};
use frondb_tree::{TreeCore, Version};

/// So few trees are flushed whole rather than logged again: the log is short then.
pub(crate) const FEW_TREES: usize = 64;

/// Memtables of less memory than this are logged again rather than flushed.
pub(crate) const RELOG_BYTES_MAX: u64 = 64 * 1024;

/// The manifest's log is replaced by a snapshot when it is larger than this and than the snapshot.
const MANIFEST_LOG_BYTES: u64 = 4 << 20;

/// Lets go of the log that is no longer needed, if that is worth an edit.
pub(crate) fn trim_log_if_long(env: &Env) -> Result<()> {
    let gain = env.log_start().get().saturating_sub(env.log.from().get());
    if gain < env.memory().write_buffer_bytes() / 16 {
        return Ok(());
    }
    trim_log(env)
}

/// Makes durable how far the log is needed, and lets go of what is not.
pub(crate) fn trim_log(env: &Env) -> Result<()> {
    let start = env.log_start();
    let durable = env.log.wal.durable_lsn();
    let start = Lsn(start.get().min(durable.get()));
    let said = (env.log.from().get(), env.log.known().get());
    if said == (start.get(), durable.get()) {
        return Ok(());
    }
    let ticket = env.edits.begin().append(&[Edit::Log { start, durable }])?;
    // A manifest that lost this edit would need log that is no more.
    env.edits.manifest.secure(ticket)?;
    env.log.note_trimmed(start, durable);
    env.log.wal.recycle(start)
}

/// Whether the log has grown so long that what pins it must move: early enough that it has moved
/// before the log has twice the length of the write buffer (rule 10), at which writers wait.
pub(crate) fn log_is_long(env: &Env) -> bool {
    env.log.replay_bytes() > env.memory().write_buffer_bytes() * 3 / 2
}

/// Moves what pins a long log: what pins its first half. Trees it froze are handed to `flush`.
pub(crate) fn shorten_log(
    env: &Env,
    committer: &Committer,
    flush: &mut dyn FnMut(&Arc<TreeCore>),
) -> Result<()> {
    let limit = env.log.wal.end_lsn().get().saturating_sub(env.memory().write_buffer_bytes());
    move_log(env, committer, (Lsn(limit), RELOG_BYTES_MAX), flush)
}

/// Moves what pins the log below `limit`: logs memtables of less than `relog_below` bytes again,
/// freezes others, which are handed to `flush`.
pub(crate) fn move_log(
    env: &Env,
    committer: &Committer,
    (limit, relog_below): (Lsn, u64),
    flush: &mut dyn FnMut(&Arc<TreeCore>),
) -> Result<()> {
    let relogs = committer.relogs();
    prepared::move_to_manifest(env, committer, limit)?;
    while let Some(tree) = unpin_log(env, committer, limit, relog_below)? {
        flush(&tree);
    }
    if committer.relogs() != relogs {
        // What was logged again is needed at its old place until it is durable at the new one.
        env.log.wal.sync_to(env.log.wal.end_lsn())?;
        trim_log_if_long(env)?;
    }
    Ok(())
}

/// Whether something still needs the log below `limit`.
pub(crate) fn pinned_below(env: &Env, limit: Lsn) -> bool {
    env.log_start() < limit
}

/// Moves what pins the log below `limit`: logs small memtables again; freezes a large one
/// and returns its tree, for flushing. `None` when none is left, or flushes that are
/// under way will do.
fn unpin_log(
    env: &Env,
    committer: &Committer,
    limit: Lsn,
    relog_below: u64,
) -> Result<Option<Arc<TreeCore>>> {
    for tree in env.trees.all() {
        let version = tree.version();
        let pins = version.active.first_lsn().is_some_and(|lsn| lsn < limit);
        if !pins {
            continue;
        }
        if version.active.memtable.bytes() >= relog_below {
            let froze = committer.exclusive(|_| tree.freeze());
            if froze {
                return Ok(Some(tree));
            }
        } else {
            committer.exclusive(|latch| latch.relog(&tree))?;
        }
    }
    Ok(None)
}

/// Replaces the manifest's log by a snapshot if it has grown long. Returns whether it did.
pub(crate) fn rotate_manifest(env: &Env, force: bool) -> Result<bool> {
    let is_due = |manifest: &Manifest| {
        force || manifest.log_bytes() > MANIFEST_LOG_BYTES.max(manifest.snapshot_bytes())
    };
    let rotated = env.edits.snapshot(
        is_due,
        || State::capture(env),
        |state, writer| {
            let mut bytes = Vec::new();
            state.encode(&mut |edit| {
                encode_edit(&mut bytes, edit);
                if bytes.len() > 256 * 1024 {
                    writer.write(&bytes)?;
                    bytes.clear();
                }
                Ok(())
            })?;
            writer.write(&bytes)
        },
    )?;
    if rotated {
        Counters::add(&env.counters.manifest_rotations, 1);
    }
    Ok(rotated)
}

/// All that a manifest's snapshot says, held together by immutable versions.
struct State {
    trees: Vec<TreeState>,
    pending: PendingState,
    log: Edit,
    ids: Edit,
}

struct TreeState {
    tree: Arc<TreeCore>,
    name: String,
    version: Arc<Version>,
    flushed: SeqNo,
    values: Vec<Vec<frondb_space::Extent>>,
}

impl State {
    /// REQUIRES: no edit is under way.
    fn capture(env: &Env) -> Self {
        let trees = env.trees.all();
        let trees = trees.into_iter().map(|tree| {
            let install = tree.install.lock();
            let state = TreeState {
                name: tree.name.read().clone(),
                version: tree.version(),
                flushed: install.flushed,
                values: install.values.values().cloned().collect(),
                tree: Arc::clone(&tree),
            };
            drop(install);
            state
        });
        let trees = trees.collect();
        let durable = env.log.wal.durable_lsn();
        let start = Lsn(env.log_start().get().min(durable.get()));
        let largest = env.ids.largest();
        let pending = {
            let mut pending = env.edits.pending();
            pending.log_begins(start);
            pending.clone()
        };
        Self {
            trees,
            pending,
            log: Edit::Log { start, durable },
            ids: Edit::Ids {
                tree: TreeId(largest.tree),
                run: RunId(largest.run),
                node: frondb_core::NodeId(largest.node),
                seq: env.oracle.visible(),
            },
        }
    }

    fn encode(&self, put: &mut dyn FnMut(&Edit) -> Result<()>) -> Result<()> {
        put(&self.ids)?;
        put(&self.log)?;
        for state in &self.trees {
            let tree = state.tree.id;
            let trunk = &state.version.trunk;
            let options = state.tree.options.clone();
            put(&Edit::CreateTree {
                tree,
                name: state.name.clone(),
                options,
                root: trunk.root.id,
            })?;
            put(&Edit::Flushed { tree, seq: state.flushed })?;
            for extents in &state.values {
                put(&Edit::AddValue { tree, extents: extents.clone() })?;
            }
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
