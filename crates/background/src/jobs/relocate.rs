//! Moves runs away from the end of a data file that is mostly free, so that the file can be
//! truncated. So space returns to the file system after deletes without a command of the user.
//!
//! A move copies the run unchanged under a new id, and the copy replaces the old run in every view.
//! Idle maintenance moves one run at a time. The nodes that refer to the run are claimed until the
//! copy is installed, so that no job works on them.

use std::collections::BTreeSet;

use frondb_core::limits::PAGE_BYTES;
use frondb_core::mem::Buf;
use frondb_core::sync::Arc;
use frondb_core::wear::WriteCause;
use frondb_core::{Error, NodeId, Result, RunId};
use frondb_run::{Run, RunMeta};
use frondb_space::{Extent, Space, TailMove};
use frondb_trunk::install::{Place, PlacedRun, VersionBuilder};

use frondb_tree::{InstallState, State, TreeCore};

use crate::context::JobContext;
use crate::jobs::install::{InstallEnd, discard, install};
use crate::planning::replan;
use crate::queue::Queue;

/// Bytes copied at a time.
const PIECE_BYTES: usize = 256 * 1024;

/// Moves one run out of `tail`. Returns `false` if no run could be moved. Returns `true` also if
/// the run was unreadable; later calls skip that run.
///
/// # Errors
/// Errors of reading and writing the data file, and of the install.
pub fn move_one(context: &JobContext, queue: &Queue, tail: TailMove) -> Result<bool> {
    for tree in context.trees.all() {
        let Some((run, nodes)) = claim(context, &tree, tail) else { continue };
        let moved = move_run(context, &tree, &run, tail);
        let mut install = tree.install.lock();
        for node in &nodes {
            install.claimed.remove(node);
        }
        drop(install);
        // Plan these nodes again: a job that tried to begin during the move found them claimed.
        replan(context, queue, &tree, &nodes);
        return moved;
    }
    Ok(false)
}

/// Finds a run in `tail` and claims the nodes that refer to the run. `None` if there is no such
/// run, or if a job has claimed one of the nodes.
fn claim(context: &JobContext, tree: &TreeCore, tail: TailMove) -> Option<(Arc<Run>, Vec<NodeId>)> {
    if let State::Stowed(stowed) = tree.state() {
        let runs = stowed.parts().runs;
        let mut extents = runs.iter().flat_map(|run| &run.extents);
        if !extents.any(|extent| tail.concerns(*extent)) {
            return None;
        }
    }
    let mut install = tree.install.lock();
    if tree.is_dropped() {
        return None;
    }
    let version = tree.version();
    let mut busy: BTreeSet<RunId> = BTreeSet::new();
    let mut found: Option<Arc<Run>> = None;
    version.trunk.for_each(&mut |node| {
        for view in node.views() {
            let meta = view.run.meta();
            if install.claimed.contains(&node.id) {
                busy.insert(meta.id);
            } else if meta.extents.iter().any(|extent| tail.concerns(*extent))
                && !context.is_unmovable(meta.id)
            {
                found.get_or_insert_with(|| Arc::clone(&view.run));
            }
        }
    });
    let run = found.filter(|run| !busy.contains(&run.meta().id))?;
    let mut nodes = Vec::new();
    version.trunk.for_each(&mut |node| {
        if node.views().any(|view| view.run.meta().id == run.meta().id) {
            nodes.push(node.id);
        }
    });
    install.claimed.extend(nodes.iter().copied());
    Some((run, nodes))
}

/// Copies a run and installs the copy in its place.
fn move_run(context: &JobContext, tree: &TreeCore, run: &Arc<Run>, tail: TailMove) -> Result<bool> {
    let space = &context.space;
    let extents = match copy(space, run.meta(), tail) {
        Ok(Copied::Whole(extents)) => extents,
        Ok(Copied::NoRoom) => return Ok(false),
        // Report success, so that the caller continues with the next run.
        Ok(Copied::Unreadable(error)) => {
            context.note_unmovable(tree, run, &error);
            return Ok(true);
        }
        Err(error) => return Err(error),
    };
    let id = context.ids.next_run();
    let meta = RunMeta { id, extents, ..run.meta().clone() };
    let new = Run::new(meta, tree.options().trunk.filter_prefix(), Arc::clone(&context.reads.runs));
    if let Err(error) = space.sync() {
        new.kill();
        return Err(error);
    }
    let old = run.meta().id;
    let lo = Arc::from(&*run.meta().first_key);
    let new_runs = [PlacedRun { run: new, lo, hi: None, place: Place::Slice }];
    let build = |builder: &mut VersionBuilder<'_>, state: &mut InstallState| {
        let is_used = state.views.of(&tree.version().trunk).contains_key(&old);
        if is_used {
            builder.relocate(old, &new_runs[0].run);
        }
        is_used
    };
    let installed = install(context, tree, &new_runs, build, |_, _| Ok(InstallEnd::default()));
    match installed.inspect_err(|_| discard(&new_runs))? {
        Some(installed) => installed.settle(context).map(|_| true),
        None => {
            discard(&new_runs);
            Ok(false)
        }
    }
}

/// The result of copying a run.
enum Copied {
    Whole(Vec<Extent>),
    NoRoom,
    /// The run could not be read.
    Unreadable(Error),
}

/// Copies the data of a run to extents below `tail`.
///
/// # Errors
/// Errors of writing.
fn copy(space: &Space, meta: &RunMeta, tail: TailMove) -> Result<Copied> {
    let mut copied = Vec::with_capacity(meta.extents.len());
    let mut buf = Buf::paged(PIECE_BYTES);
    let mut all = || -> Result<Option<Copied>> {
        for from in &meta.extents {
            let mut done = 0;
            while done < from.pages {
                let Some(to) = space.acquire_below(from.pages - done, tail)? else {
                    return Ok(Some(Copied::NoRoom));
                };
                copied.push(to);
                let source = u64::from(done) * PAGE_BYTES as u64;
                if let Err(error) = copy_extent(space, *from, source, to, &mut buf)? {
                    return Ok(Some(Copied::Unreadable(error)));
                }
                done += to.pages;
            }
        }
        Ok(None)
    };
    let end = all();
    if let Ok(None) = end {
        return Ok(Copied::Whole(copied));
    }
    for extent in copied {
        space.release(extent);
    }
    end.map(|end| end.unwrap_or(Copied::NoRoom))
}

/// Fills `to` with the bytes of `from` that begin at offset `at`. The outer result is an error of
/// writing, the inner one an error of reading.
fn copy_extent(
    space: &Space,
    from: Extent,
    at: u64,
    to: Extent,
    buf: &mut Buf,
) -> Result<Result<()>> {
    let mut offset = 0;
    while offset < to.bytes() {
        let n = (to.bytes() - offset).min(PIECE_BYTES as u64) as usize;
        if let Err(error) = space.read(from, at + offset, &mut buf[..n]) {
            return Ok(Err(error));
        }
        space.write(WriteCause::Relocation, to, offset, &buf[..n])?;
        offset += n as u64;
    }
    Ok(Ok(()))
}
