//! Records data that background work cannot read. Each damaged run of a node is reported once, to
//! the log of the process and to the listener. No job on the node reads it again before a restart
//! or, if the device could not read it, an optimize.
//!
//! A merge fails if it reads a damaged block, or a block that the device cannot read. The node
//! stays as it is, and no more work that reads the block's run is planned for the node
//! ([`frondb_trunk::NodeDamage`]). Statements that need the data fail. All other work continues:
//! flushes into the node, which do not read its data, and work on other nodes and other trees. No
//! commit waits for the node, because work that is not planned adds no debt.

use std::collections::HashSet;

use frondb_core::events::Event;
use frondb_core::sync::Arc;
use frondb_core::{Error, NodeId, RunId};
use frondb_run::Run;
use frondb_tree::TreeCore;
use frondb_trunk::{Node, Trunk};

use crate::context::JobContext;
use crate::counters::add;

/// Bytes of a key that an error message shows.
const KEY_BYTES_SHOWN: usize = 40;

impl JobContext {
    /// Records that a merge of this node has failed because of its data. Returns whether the error
    /// shows new damage; the caller must then plan the node again, without the damaged run.
    pub(crate) fn note_failed_merge(&self, tree: &TreeCore, node: NodeId, error: &Error) -> bool {
        add(&self.counters.job_failures, 1);
        let version = tree.version();
        let Some(node) = version.trunk.find(node) else { return false };
        let error = error.clone().context(format_args!(
            "tree {:?}, keys {}",
            *tree.name.read(),
            keys(&node.lo, node.hi.as_deref())
        ));
        let Some(run) = damaged_run(node, &error) else {
            if node.hints.damage.note_failure(&error) {
                tracing::error!(%error, "a node could not be merged and stays as it is");
                self.events.tell(Event::JobFailed(&error));
            }
            return false;
        };
        if !node.hints.damage.note_run(run, &error) {
            return false;
        }
        self.damaged.lock().insert(tree.id);
        tracing::error!(
            %error,
            "background work leaves this data alone from now on, and everything else goes on; \
             verify the database, and restore a backup or save the rest with a salvage"
        );
        self.events.tell(Event::JobFailed(&error));
        true
    }

    /// Returns the number of runs that background work has found damaged and does not touch any
    /// more. Walks all nodes of the trees with damage.
    #[must_use]
    pub fn damaged_runs(&self) -> u64 {
        let mut runs = HashSet::new();
        self.damaged.lock().retain(|tree| {
            let before = runs.len();
            // A tree with damage is not stowed.
            if let Some(version) = self.trees.get(*tree).and_then(|tree| tree.open_version()) {
                version.trunk.for_each(&mut |node| runs.extend(node.damaged_runs()));
            }
            runs.len() > before
        });
        runs.len() as u64
    }

    /// Records that a move could not read its run, which stays where it is.
    pub(crate) fn note_unmovable(&self, tree: &TreeCore, run: &Arc<Run>, error: &Error) {
        add(&self.counters.job_failures, 1);
        self.unmovable.lock().insert(run.meta().id);
        tracing::error!(%error, tree = %*tree.name.read(), "a run could not be moved and stays where it is");
        self.events.tell(Event::JobFailed(error));
    }

    /// Forgets which runs of a tree the device could not read for a merge, and which runs a move
    /// could not read, so that merges and moves try to read them again.
    pub(crate) fn forget_unreadable(&self, trunk: &Trunk) {
        let mut unmovable = self.unmovable.lock();
        trunk.for_each(&mut |node| {
            node.hints.damage.forget_unreadable();
            if !unmovable.is_empty() {
                for view in node.views() {
                    unmovable.remove(&view.run.meta().id);
                }
            }
        });
    }

    /// Whether a move could not read the run.
    pub(crate) fn is_unmovable(&self, run: RunId) -> bool {
        self.unmovable.lock().contains(&run)
    }
}

/// Returns the run of the node that contains the place of the error; `None` if the error has no
/// place, or a place outside of the node's runs.
fn damaged_run(node: &Node, error: &Error) -> Option<RunId> {
    let place = error.place()?;
    node.views().find(|view| view.run.holds(place)).map(|view| view.run.meta().id)
}

/// Describes a range of keys in words, for a message.
pub(crate) fn keys(lo: &[u8], hi: Option<&[u8]>) -> String {
    let shown = |key: &[u8]| {
        let end = if key.len() > KEY_BYTES_SHOWN { "..." } else { "" };
        format!("\"{}\"{end}", key[..key.len().min(KEY_BYTES_SHOWN)].escape_ascii())
    };
    match (lo, hi) {
        ([], None) => "of all rows".into(),
        ([], Some(hi)) => format!("below {}", shown(hi)),
        (lo, None) => format!("from {} on", shown(lo)),
        (lo, Some(hi)) => format!("from {} to below {}", shown(lo), shown(hi)),
    }
}
