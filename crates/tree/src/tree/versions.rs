//! How the version of a tree is replaced: by a freeze, by the runs of a large commit, or by an
//! install.

use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_trunk::Trunk;

use super::{State, TreeCore};
use crate::source::MemSource;
use crate::totals::TreeSizes;
use crate::version::Version;

impl TreeCore {
    /// Returns the active memtable, for the messages of a commit. Creates one for an idle tree.
    /// REQUIRES: the commit lock, or that no other thread uses the tree yet.
    #[must_use]
    pub fn active_for_commit(&self) -> Arc<MemSource> {
        let active = match &*self.state.read() {
            State::Open(version) => Some(Arc::clone(&version.active)),
            State::Stowed(_) => None,
        };
        match active {
            Some(active) if !Arc::ptr_eq(&active, &self.account().empty) => active,
            _ => self.activate(),
        }
    }

    /// Publishes a version with an active memtable of its own.
    #[cold]
    fn activate(&self) -> Arc<MemSource> {
        let mut state = self.state.write();
        let version = self.opened(&mut state);
        let active = MemSource::new(&self.account().budget);
        let new = Version {
            active: Arc::clone(&active),
            frozen: version.frozen.clone(),
            trunk: version.trunk.clone(),
            hold: Arc::clone(&version.hold),
            flushes: version.flushes,
        };
        self.replace(version, new);
        active
    }

    /// Replaces the active memtable. REQUIRES: no other thread uses the tree yet.
    pub fn set_active(&self, active: Arc<MemSource>) {
        let mut state = self.state.write();
        let version = self.opened(&mut state);
        let (trunk, hold) = (version.trunk.clone(), Arc::clone(&version.hold));
        let (frozen, flushes) = (version.frozen.clone(), version.flushes);
        self.replace(version, Version { active, frozen, trunk, hold, flushes });
    }

    /// Replaces the version, and with it the tree's share of the totals. Returns the old version.
    pub(super) fn replace(&self, version: &mut Arc<Version>, new: Version) -> Arc<Version> {
        if self.counted.load(Ordering::Relaxed) {
            self.change_sizes(TreeSizes::of(version), TreeSizes::of(&new));
        }
        std::mem::replace(version, Arc::new(new))
    }

    /// Freezes the active memtable and returns `true`; does nothing and returns `false` if the
    /// memtable is empty. REQUIRES: the commit lock.
    pub fn freeze(&self) -> bool {
        let _install = self.install.lock();
        // A stowed tree has no message in a memtable.
        let State::Open(version) = &mut *self.state.write() else { return false };
        if version.active.is_empty() {
            return false;
        }
        self.freeze_under(version, None);
        true
    }

    /// Attaches the runs of a commit: freezes the active memtable, and makes `source` newer than it
    /// and older than the next active memtable (rule 18). The active memtable is replaced even if
    /// it is empty: a reader of the previous version would see later messages in it without seeing
    /// the runs. REQUIRES: the commit lock.
    pub fn attach(&self, source: Arc<MemSource>) {
        let _install = self.install.lock();
        let mut state = self.state.write();
        let version = self.opened(&mut state);
        source.count_in(&self.account().frozen_bytes);
        self.freeze_under(version, Some(source));
    }

    /// Publishes a version with an empty active memtable. Its newest frozen sources are `above`,
    /// then the previous active memtable unless that memtable is empty.
    fn freeze_under(&self, version: &mut Arc<Version>, above: Option<Arc<MemSource>>) {
        let mut frozen = Vec::with_capacity(version.frozen.len() + 2);
        frozen.extend(above);
        if !version.active.is_empty() {
            // Nothing more is inserted, so unfinished merges of the memtable's arrays are stopped.
            version.active.memtable.seal();
            version.active.count_in(&self.account().frozen_bytes);
            frozen.push(Arc::clone(&version.active));
        }
        frozen.extend(version.frozen.iter().cloned());
        let new = Version {
            active: Arc::clone(&self.account().empty),
            frozen,
            trunk: version.trunk.clone(),
            hold: Arc::clone(&version.hold),
            flushes: version.flushes,
        };
        self.replace(version, new);
    }

    /// Publishes a new trunk. `flushed` is the source whose messages are now in the trunk; the
    /// source is removed from the version. `orphans` says that the tree no longer owns some large
    /// values, whose extents the old version must keep. Returns the replaced version. REQUIRES:
    /// `install`.
    pub fn publish(
        &self,
        trunk: Trunk,
        flushed: Option<&Arc<MemSource>>,
        orphans: bool,
    ) -> Arc<Version> {
        let mut state = self.state.write();
        let version = self.opened(&mut state);
        let frozen = version
            .frozen
            .iter()
            .filter(|source| flushed.is_none_or(|flushed| !Arc::ptr_eq(source, flushed)))
            .cloned()
            .collect();
        let hold = if orphans { version.hold.successor() } else { Arc::clone(&version.hold) };
        let active = Arc::clone(&version.active);
        let flushes = version.flushes + u64::from(flushed.is_some());
        let old = self.replace(version, Version { active, frozen, trunk, hold, flushes });
        drop(state);
        if let Some(flushed) = flushed {
            // A reader may still hold the source's memory, but no flush can free it, so writers do
            // not wait for it.
            flushed.count_in(&self.account().pinned_bytes);
        }
        old
    }

    /// Counts the memory of a dropped tree's source as pinned: no flush will free it, and cursors
    /// may hold it for long, so writers must not wait for it.
    pub fn pin_source(&self, source: &MemSource) {
        source.count_in(&self.account().pinned_bytes);
    }
}
