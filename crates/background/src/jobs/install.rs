//! The install, which changes the trunk of a tree for every flush, merge, attach and move. No other
//! code changes the trunk of a tree in use; only a drop, and a load that does not commit, empty a
//! trunk without an install.
//!
//! ```text
//!   edit latch -> install lock -> VersionBuilder -> edit appended -> version published     short
//!   locks released -> edit durable -> dropped runs and values freed -> nodes planned anew
//! ```
//!
//! Readers see the new version before the edit is durable. Until the edit is durable, nothing is
//! freed that recovery after a crash could need (rule 7).

use std::collections::HashSet;

use frondb_core::sync::Arc;
use frondb_core::{NodeId, Result};
use frondb_manifest::Ticket;
use frondb_records::Edit;
use frondb_run::Run;
use frondb_space::Extent;
use frondb_tree::{InstallState, MemSource, TreeCore, Version};
use frondb_trunk::format::NodeImage;
use frondb_trunk::install::{Change, PlacedRun, VersionBuilder};

use crate::context::JobContext;

/// Bytes of space that are reserved in the manifest before an install. Nearly every edit is
/// smaller; [`make_room_for`] reserves space for a larger one.
pub(crate) const EDIT_BYTES: u64 = 512 << 10;

/// The work that remains after an install, to be done without locks: see [`settle`](Self::settle).
pub struct Installed {
    ticket: Option<Ticket>,
    dead: Vec<Arc<Run>>,
    /// Nodes to plan again.
    pub touched: Vec<NodeId>,
    /// Bytes that the edit takes in the manifest.
    pub edit_bytes: u64,
    /// Extents of the large values to which the new version does not refer.
    orphans: Vec<Extent>,
    /// The version that was replaced, kept until the edit is durable.
    old: Option<Arc<Version>>,
}

impl Installed {
    /// Returns the result of an install that changed nothing.
    pub fn nothing() -> Self {
        Self {
            ticket: None,
            dead: Vec::new(),
            touched: Vec::new(),
            edit_bytes: 0,
            orphans: Vec::new(),
            old: None,
        }
    }

    /// Returns the result of an install that changed nothing, with nodes to plan again.
    #[must_use]
    pub fn nothing_but(touched: Vec<NodeId>) -> Self {
        Self { touched, ..Self::nothing() }
    }

    /// Waits until the edit is durable, then frees what the edit dropped (rule 7). Returns the
    /// nodes to plan again.
    ///
    /// If the edit drops something, a superblock must record the edit, because a manifest that lost
    /// the edit would name space that was reused. A manifest may lose an edit that drops nothing,
    /// because the log still has its messages.
    ///
    /// # Errors
    /// Errors of the manifest, after which the trunk in memory is ahead of the manifest.
    pub fn settle(self, context: &JobContext) -> Result<Vec<NodeId>> {
        let drops = !self.dead.is_empty() || !self.orphans.is_empty();
        match self.ticket {
            Some(ticket) if drops => context.edits.manifest.secure(ticket)?,
            Some(ticket) => context.edits.manifest.sync(ticket)?,
            None => {}
        }
        for run in &self.dead {
            run.kill();
        }
        if let Some(old) = &self.old {
            old.hold.add(self.orphans);
        }
        Ok(self.touched)
    }
}

/// The part of an install's edit that comes from the job.
#[derive(Default)]
pub struct InstallEnd<'a> {
    /// The memtable whose messages are in the trunk now.
    pub flushed: Option<&'a Arc<MemSource>>,
    /// Edits that the change of the trunk does not imply.
    pub edits: Vec<Edit>,
    /// Extents of large values to which no newer version refers.
    pub orphans: Vec<Extent>,
}

/// Changes the trunk of a tree. `build` makes the change and returns `false` if there is none.
/// `end` gets the finished change before readers see it, updates the install state, and returns
/// what the edit must contain besides the change. `new_runs` are the runs that the job wrote.
/// `None` if the tree was dropped or `build` returned `false`; then the caller discards its runs.
///
/// # Errors
/// Errors of `end`, and `NoSpace` if the manifest cannot grow for the edit: the version and the
/// manifest are unchanged, and the caller must discard the new runs. Errors of the manifest: the
/// database is poisoned.
pub fn install<'a>(
    context: &JobContext,
    tree: &TreeCore,
    new_runs: &[PlacedRun],
    build: impl FnOnce(&mut VersionBuilder<'_>, &mut InstallState) -> bool,
    end: impl FnOnce(&Change, &mut InstallState) -> Result<InstallEnd<'a>>,
) -> Result<Option<Installed>> {
    context.edits.wear.tick(context.reads.now());
    let latch = context.edits.begin();
    let mut state = tree.install.lock();
    let old = tree.version();
    let mut next_id = || context.ids.next_node();
    let mut builder = VersionBuilder::new(old.trunk.clone(), &mut next_id);
    if tree.is_dropped() || !build(&mut builder, &mut state) {
        return Ok(None);
    }
    let change = builder.finish();
    make_room_for(context, &change)?;
    let end = end(&change, &mut state)?;
    tree.note_values(&state);
    let dead = dead_runs(&mut state, &change, &old, new_runs);
    let edits = edits_of(tree, &change, new_runs, &dead, end.edits);
    // Append first: after an error, only the install state has changed, and no later edit may
    // follow. Readers then see the change before the edit is durable.
    let (ticket, edit_bytes) = latch.append_final(&edits)?;
    let touched = change.touched();
    let old = tree.publish(change.trunk, end.flushed, !end.orphans.is_empty());
    Ok(Some(Installed {
        ticket: Some(ticket),
        dead,
        touched,
        edit_bytes,
        orphans: end.orphans,
        old: Some(old),
    }))
}

/// If the images of a change could exceed the space that every install reserves, reserves more
/// space in the manifest, if necessary from the reserve for a full disk. A node that many range
/// deletes have cut into views has a large image: the image stores two keys for each view.
fn make_room_for(context: &JobContext, change: &Change) -> Result<()> {
    let bytes: u64 = change.images.iter().map(NodeImage::bytes_max).sum();
    if bytes <= EDIT_BYTES / 2 {
        return Ok(());
    }
    let bytes = bytes + EDIT_BYTES;
    if !context.edits.manifest.make_room(bytes)? {
        context.space.lend_reserve(bytes)?;
    }
    context.reserve_edit(bytes)
}

/// Returns the given `edits`, followed by the edits of a change of the trunk.
fn edits_of(
    tree: &TreeCore,
    change: &Change,
    new_runs: &[PlacedRun],
    dead: &[Arc<Run>],
    mut edits: Vec<Edit>,
) -> Vec<Edit> {
    let tree = tree.id;
    edits.extend(new_runs.iter().map(|placed| Edit::AddRun(placed.run.meta().clone())));
    edits.extend(change.images.iter().map(|node| Edit::PutNode { tree, node: node.clone() }));
    edits.extend(change.dropped.iter().map(|&node| Edit::DropNode { tree, node }));
    edits.extend(change.root.map(|root| Edit::SetRoot { tree, root }));
    edits.extend(dead.iter().map(|run| Edit::DropRun { tree, run: run.meta().id }));
    edits
}

/// Updates the counts of views. Returns the runs to which no node refers any more.
pub fn dead_runs(
    install: &mut InstallState,
    change: &Change,
    old: &Version,
    new_runs: &[PlacedRun],
) -> Vec<Arc<Run>> {
    let mut gone = HashSet::new();
    let counts = install.views.of(&old.trunk);
    for (&run, &delta) in &change.views {
        let count = counts.entry(run).or_insert(0);
        *count = u32::try_from(i64::from(*count) + delta).unwrap_or(0);
        if *count == 0 {
            counts.remove(&run);
            gone.insert(run);
        }
    }
    let mut dead = Vec::new();
    if !gone.is_empty() {
        old.trunk.for_each(&mut |node| {
            for view in node.views() {
                if gone.remove(&view.run.meta().id) {
                    dead.push(Arc::clone(&view.run));
                }
            }
        });
    }
    // Also discard new runs to which no node refers: all of their keys lie beyond a pivot that has
    // moved.
    let unborn = new_runs.iter().filter(|placed| !counts.contains_key(&placed.run.meta().id));
    dead.extend(unborn.map(|placed| Arc::clone(&placed.run)));
    dead
}

/// Frees the extents of runs that will not be installed.
pub fn discard(new_runs: &[PlacedRun]) {
    for placed in new_runs {
        placed.run.kill();
    }
}
