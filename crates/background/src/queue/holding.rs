//! Holding work back while the disk is full.

use frondb_core::NodeId;
use frondb_core::sync::Arc;
use frondb_tree::TreeCore;

use super::Queue;
use crate::jobs::Running;

/// The most attempts, of at least 200 ms each, for which work that frees space runs alone: by then
/// it has freed enough for other work to continue.
const ALONE_MAX: u32 = 5;

impl Queue {
    /// Holds work back because the disk is full. The first call holds all work that frees no space.
    /// A second call before the next attempt holds all work that writes; otherwise a flush that
    /// cannot succeed would be tried without a pause.
    ///
    /// `note` is called with the queue locked and notes that the disk is full. If another job could
    /// find space after `note` and before the hold, the disk would no longer count as full, and the
    /// work would stay held back.
    ///
    /// Returns the parked jobs that may not continue; the caller ends them like running jobs.
    pub fn hold(&self, note: impl FnOnce()) -> Vec<Running> {
        let mut state = self.state.lock();
        note();
        state.stuck = state.held;
        state.held = true;
        let parked = std::mem::take(&mut state.parked);
        let (parked, waiting): (Vec<_>, Vec<_>) =
            parked.into_iter().partition(Running::frees_space);
        state.parked = parked;
        state.running += waiting.len();
        self.changed.notify_all();
        waiting
    }

    /// Begins another attempt on a full disk. Work that frees space goes first, alone: other work,
    /// however urgent, could take the space that it needs, attempt after attempt. Once that work
    /// has ended, or has found no space, or after [`ALONE_MAX`] attempts, all work may run; then
    /// `note` is called with the queue locked.
    pub fn attempt(&self, note: impl FnOnce()) {
        let mut state = self.state.lock();
        let is_alone = match state.alone {
            0 => state.waiting_priority().is_some(),
            attempts => state.running > 0 && attempts < ALONE_MAX,
        };
        if state.held && is_alone {
            (state.stuck, state.alone) = (false, state.alone + 1);
        } else {
            note();
            (state.held, state.stuck, state.alone) = (false, false, 0);
        }
        self.changed.notify_all();
    }

    /// Lets the work that was held back run again. `note` is called with the queue locked and
    /// records the new state of the disk.
    pub fn release(&self, note: impl FnOnce()) {
        let mut state = self.state.lock();
        note();
        (state.held, state.stuck, state.alone) = (false, false, 0);
        self.changed.notify_all();
    }

    /// Notes a node whose plan failed because the disk was full.
    pub fn add_failed(&self, tree: &Arc<TreeCore>, node: NodeId) {
        self.state.lock().failed.push((Arc::clone(tree), node));
    }

    /// Takes the nodes whose plans have failed since the last call because the disk was full.
    pub fn take_failed(&self) -> Vec<(Arc<TreeCore>, NodeId)> {
        std::mem::take(&mut self.state.lock().failed)
    }
}
