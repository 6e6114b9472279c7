//! Holds work back while the disk is full.

use frondb_core::NodeId;
use frondb_core::sync::Arc;
use frondb_tree::TreeCore;

use super::Queue;
use crate::jobs::Running;

/// Most attempts, of at least 200 ms each, in which only work that frees space runs. By then that
/// work has had time to free space for other work.
const ALONE_MAX: u32 = 5;

impl Queue {
    /// Holds work back because the disk is full. The first call holds back all work that frees no
    /// space. A second call before the next attempt holds back all work that writes; otherwise a
    /// flush that cannot succeed would be tried again and again without a pause.
    ///
    /// `note`, called with the queue locked, records that the disk is full. Without the lock,
    /// another job could find space between `note` and the hold: the disk would no longer count as
    /// full, and the work would stay held back.
    ///
    /// Returns the parked jobs that may not continue. They count as running, and the caller must
    /// end them.
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

    /// Begins another attempt on a full disk. First, only work that frees space may run, because
    /// other work, however urgent, could take the space that this work needs, attempt after
    /// attempt. All work may run once the work that frees space has ended or has found no space, or
    /// after [`ALONE_MAX`] attempts; then `note` is called with the queue locked, and may record
    /// that the disk is not full.
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

    /// Lets all work run again. `note`, called with the queue locked, records that the disk is not
    /// full.
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
