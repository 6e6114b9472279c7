//! The one way in which the trunk of a tree changes: for flushes, merges, attached runs and moved runs
//! alike.
//!
//! ```text
//!   edit latch -> install lock -> VersionBuilder -> edit appended -> version published     short
//!   locks released -> edit durable -> dropped runs and values let go -> nodes planned anew
//! ```
//!
//! Readers see the new version before the edit is durable; nothing that they could lose by a crash is
//! let go before (rule 7).

use std::collections::HashSet;

use frondb_core::sync::Arc;
use frondb_core::{NodeId, Result};
use frondb_manifest::Ticket;
use frondb_records::Edit;
use frondb_run::Run;
use frondb_space::Extent;
use frondb_tree::{InstallState, MemSource, TreeCore, Version};
use frondb_trunk::install::{Change, Made, VersionBuilder};

use crate::context::JobContext;

/// More than the edit of an install takes.
pub(crate) const EDIT_BYTES: u64 = 512 << 10;

/// What an install leaves to do without locks.
pub struct Installed {
    ticket: Option<Ticket>,
    dead: Vec<Arc<Run>>,
    /// Nodes to plan anew.
    pub touched: Vec<NodeId>,
    /// Bytes of the edit.
    pub edit_bytes: u64,
    /// Large values that the new version does not refer to.
    orphans: Vec<Extent>,
    /// The version that was replaced, kept until the edit is durable.
    old: Option<Arc<Version>>,
}

impl Installed {
    /// Of an install that changed nothing.
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

    /// The same, with nodes to plan anew.
    #[must_use]
    pub fn nothing_but(touched: Vec<NodeId>) -> Self {
        Self { touched, ..Self::nothing() }
    }

    /// Waits until the edit is durable; then what it dropped may go (rule 7), which a superblock must
    /// know: a manifest that lost the edit would name space that was used again. An edit that drops
    /// nothing says what the log has too.
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

/// What the end of an install adds to its edit.
#[derive(Default)]
pub struct InstallEnd<'a> {
    /// The memtable that is in the trunk now.
    pub flushed: Option<&'a Arc<MemSource>>,
    /// Edits beside those of the change itself.
    pub edits: Vec<Edit>,
    /// Large values that nothing refers to from now on.
    pub orphans: Vec<Extent>,
}

/// Changes the trunk of a tree. `build` makes the change and says whether there is one; `end` sees the
/// finished change before readers do, notes it in the install state, and adds what else the edit says.
/// `None` if the tree was dropped or `build` found nothing to change: the caller gives back what it
/// made.
///
/// # Errors
/// Those of `end`: nothing was changed. Of the manifest: the database is poisoned.
pub fn install<'a>(
    context: &JobContext,
    tree: &TreeCore,
    made: &[Made],
    build: impl FnOnce(&mut VersionBuilder<'_>, &mut InstallState) -> bool,
    end: impl FnOnce(&Change, &mut InstallState) -> Result<InstallEnd<'a>>,
) -> Result<Option<Installed>> {
    let latch = context.edits.begin();
    let mut state = tree.install.lock();
    let old = tree.version();
    let mut next_id = || context.ids.next_node();
    let mut builder = VersionBuilder::new(old.trunk.clone(), &mut next_id);
    if tree.is_dropped() || !build(&mut builder, &mut state) {
        return Ok(None);
    }
    let change = builder.finish();
    let end = end(&change, &mut state)?;
    tree.note_values(&state);
    let dead = dead_runs(&mut state, &change, &old, made);
    let edits = edits_of(tree, &change, made, &dead, end.edits);
    // It changes what readers see before it is durable: after an error nothing was changed but the
    // counts of views, and no edit may follow this one.
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

fn edits_of(
    tree: &TreeCore,
    change: &Change,
    made: &[Made],
    dead: &[Arc<Run>],
    mut edits: Vec<Edit>,
) -> Vec<Edit> {
    let tree = tree.id;
    edits.extend(made.iter().map(|made| Edit::AddRun(made.run.meta().clone())));
    edits.extend(change.images.iter().map(|node| Edit::PutNode { tree, node: node.clone() }));
    edits.extend(change.dropped.iter().map(|&node| Edit::DropNode { tree, node }));
    edits.extend(change.root.map(|root| Edit::SetRoot { tree, root }));
    edits.extend(dead.iter().map(|run| Edit::DropRun { tree, run: run.meta().id }));
    edits
}

/// Counts views and returns the runs that have none left.
pub fn dead_runs(
    install: &mut InstallState,
    change: &Change,
    old: &Version,
    made: &[Made],
) -> Vec<Arc<Run>> {
    let mut gone = HashSet::new();
    for (&run, &delta) in &change.views {
        let count = install.views.entry(run).or_insert(0);
        *count = u32::try_from(i64::from(*count) + delta).unwrap_or(0);
        if *count == 0 {
            install.views.remove(&run);
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
    // A run that no node took (all of it beyond a pivot of now) dies unborn.
    let unborn = made.iter().filter(|made| !install.views.contains_key(&made.run.meta().id));
    dead.extend(unborn.map(|made| Arc::clone(&made.run)));
    dead
}

/// Runs that will not be installed give their extents back.
pub fn discard(made: &[Made]) {
    for made in made {
        made.run.kill();
    }
}
