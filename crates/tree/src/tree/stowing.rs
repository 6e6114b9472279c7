//! Stowing: a tree that nothing uses keeps its trunk as a few bytes ([`Stowed`]), and the next
//! caller that needs the version opens it again. A database may have very many trees, of which few
//! are in use.
//!
//! ```text
//!                  stow: nothing refers to the version, and no work is due
//!   State::Open  ----------------------------------------------------------------->  State::Stowed
//!                <-----------------------------------------------------------------
//!                                   version(), or any change
//! ```
//!
//! Invariants. A stowed tree is listed, and neither dropped nor being loaded. Such a tree has no
//! message in a memtable, no large value, no running job, no work that the planner would choose now
//! or after snapshots end, and no noted damage. So a search for any of these among all trees skips
//! stowed trees ([`TreeCore::open_version`]), while [`TreeCore::version`] opens a stowed tree. Both
//! changes of the state are made under its lock. `stow` also holds the install lock: no install,
//! freeze or drop is in progress, and no reader has the version that it stows.

use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_trunk::Trunk;

use super::state::State;
use super::{InstallState, TreeCore};
use crate::stowed::{Stowed, Surroundings};
use crate::totals::TreeSizes;
use crate::version::Version;

impl TreeCore {
    /// Returns the newest version. Opens a stowed tree, which takes microseconds and no I/O.
    #[must_use]
    pub fn version(&self) -> Arc<Version> {
        let version = match &*self.state.read() {
            State::Open(version) => Some(Arc::clone(version)),
            State::Stowed(_) => None,
        };
        // Only the first reader writes, so that threads do not contend for a cache line.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        version.unwrap_or_else(|| self.open())
    }

    #[cold]
    fn open(&self) -> Arc<Version> {
        Arc::clone(self.opened(&mut self.state.write()))
    }

    /// Returns the newest version; `None` if the tree is stowed. For callers that visit all trees.
    #[must_use]
    pub fn open_version(&self) -> Option<Arc<Version>> {
        match &*self.state.read() {
            State::Open(version) => Some(Arc::clone(version)),
            State::Stowed(_) => None,
        }
    }

    /// Returns whether the tree is stowed at this moment.
    #[must_use]
    pub fn is_stowed(&self) -> bool {
        matches!(&*self.state.read(), State::Stowed(_))
    }

    /// Returns the state of the tree, without opening it.
    #[must_use]
    pub fn state(&self) -> State {
        self.state.read().clone()
    }

    /// Returns the number of bytes of the active memtable.
    #[must_use]
    pub fn active_bytes(&self) -> u64 {
        match &*self.state.read() {
            State::Open(version) => version.active.memtable.bytes(),
            State::Stowed(_) => 0,
        }
    }

    /// Returns whether the tree has frozen memtables or attached runs that are not flushed.
    #[must_use]
    pub fn has_frozen(&self) -> bool {
        match &*self.state.read() {
            State::Open(version) => !version.frozen.is_empty(),
            State::Stowed(_) => false,
        }
    }

    /// Returns the version in `state`, the state of this tree. Opens a stowed tree.
    pub(super) fn opened<'a>(&self, state: &'a mut State) -> &'a mut Arc<Version> {
        if let State::Stowed(stowed) = state {
            let version = stowed.open(&self.surroundings());
            // Only counted trees are stowed.
            self.recharge(
                TreeSizes::stowed_bytes(stowed.bytes()),
                TreeSizes::of(&version).memory_bytes(),
            );
            self.shared.totals.note_opened();
            *state = State::Open(Arc::new(version));
        }
        match state {
            State::Open(version) => version,
            State::Stowed(_) => unreachable!("the tree was opened"),
        }
    }

    /// Stows the tree unless something uses it, it was used since the last call, or `has_work`
    /// returns true for its trunk.
    pub fn stow_unused(&self, has_work: impl FnOnce(&Trunk) -> bool) {
        if !self.used.swap(false, Ordering::Relaxed) {
            self.stow(has_work);
        }
    }

    /// Stows the tree unless something uses it, or `has_work` returns true: its trunk has work now
    /// or when snapshots end. Returns whether the tree is stowed. Never waits for the install lock.
    pub fn stow(&self, has_work: impl FnOnce(&Trunk) -> bool) -> bool {
        let Some(mut install) = self.install.try_lock() else { return false };
        let InstallState { claimed, flushing, values, .. } = &*install;
        if !claimed.is_empty() || *flushing || !values.is_empty() || self.is_dropped() {
            return false;
        }
        let mut state = self.state.write();
        let State::Open(version) = &mut *state else { return true };
        // Succeeds only if no other thread has a reference; none can get one while `state` is
        // locked.
        let Some(version) = Arc::get_mut(version) else { return false };
        if !self.counted.load(Ordering::Relaxed) {
            return false;
        }
        let Some(stowed) = Stowed::of(version, &self.surroundings()) else { return false };
        if has_work(&version.trunk) {
            return false;
        }
        self.recharge(
            TreeSizes::of(version).memory_bytes(),
            TreeSizes::stowed_bytes(stowed.bytes()),
        );
        let old = std::mem::replace(&mut *state, State::Stowed(stowed));
        drop(state);
        // The next install counts the views again. Even empty collections may keep memory.
        (install.views, install.claimed) = Default::default();
        drop(install);
        drop(old);
        if let Some(locks) = self.locks.get() {
            locks.free_unused();
        }
        true
    }

    fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            tree: self.id,
            empty: &self.account().empty,
            env: &self.shared.runs,
            filter_prefix: self.options().trunk.filter_prefix(),
        }
    }
}
