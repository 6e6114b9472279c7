//! [`Cursor`]: ordered reading of a tree at a snapshot, in both directions.
//!
//! A cursor reads leaf after leaf; a [`Walk`] merges all sources over the range of one leaf.
//!
//! A cursor pins a version ([`crate::pins`]). At each leaf it takes the newest version if its own
//! version is older than a second, so that a long scan does not keep dropped runs on disk. A flush
//! unpins the old version of a cursor that is between two moves (rule 12); the cursor then seeks to
//! its last key in the newest version. Its snapshot stays the same, so it shows the same entries.
//!
//! A cursor guarantees two things to a caller that continues after an error:
//! - A move that fails leaves the cursor at no entry, and every further `next` or `prev` fails with
//!   the same error until a seek. Otherwise the caller would take the end of the readable part for
//!   the end of the tree, or would not notice that entries before the damage are missing.
//! - A cursor shows nothing that it read after the engine was closed: another process may own the
//!   files by then. A close sets its flag before it releases the lock of the directory, so the
//!   cursor checks the flag *after* a move and before it shows the entry that the move has read.

use frondb_core::clock::Nanos;
use frondb_core::sync::{Arc, OnceLock};
use frondb_core::{Error, MessageKind, Result};
use frondb_writeset::OwnWrites;

use super::options::CursorOptions;
use super::scope::Scope;
use super::walk::Walk;
use crate::context::ReadContext;
use crate::pins::Pins;
use crate::snapshot::Snapshot;
use crate::tree::TreeCore;
use crate::value::read_value;

/// A position in a tree at a fixed state, moving in both directions. A new cursor is not
/// positioned: `next` moves it to the first entry, `prev` to the last. After it has passed either
/// end, or after a seek that found nothing, it is at no entry, and `next` and `prev` return
/// `false` until the next seek. Cursors never block writers.
///
/// A cursor that is not moved for a while keeps its snapshot and the memory of the entries around
/// its position, but no memory or disk space that the tree itself no longer needs. Its next move
/// finds the position again.
///
/// A move that fails leaves the cursor at no entry, and `next` and `prev` return the same error
/// until a seek (`seek`, `seek_for_prev`, `first`, `last`), so that no entry is skipped silently.
/// To continue after damage, seek beyond it. After `Db::close` every move fails with `Closed`.
pub struct Cursor {
    pub(super) scope: Scope,
    /// The version that the cursor reads, and the sources of its walk; none after an unpin.
    pub(super) pins: Arc<Pins>,
    pub(super) walk: Option<Walk>,
    /// Copy of the current entry, kept instead of a walk under high memory pressure.
    pub(super) copied: Option<Box<Entry>>,
    /// Whether the snapshot or the transaction's own writes have changed, so that the next seek
    /// must open a new walk.
    pub(super) is_walk_old: bool,
    /// The large value of the current entry, once it was read.
    pub(super) value: OnceLock<Vec<u8>>,
    /// Whether the cursor is at an entry.
    pub(super) valid: bool,
    pub(super) deletes_passed: u64,
    /// When the seek in progress began; `None` unless its latency is sampled.
    pub(super) seek_begun: Option<Nanos>,
    /// The error of the last move; every `next` and `prev` returns it until a seek.
    pub(super) failed: Option<Error>,
    /// The key at which the last move failed, if the failure concerns only the entry of this key.
    pub(super) failed_key: Option<Vec<u8>>,
    /// Whether the cursor is in the list of open cursors; false once its walk was handed to
    /// `Resting`.
    pub(super) is_listed: bool,
    /// Whether the walk comes from a resting cursor, and this cursor was not positioned since.
    pub(super) has_rested: bool,
}

/// A copy of an entry.
pub(super) struct Entry {
    pub(super) key: Vec<u8>,
    pub(super) kind: MessageKind,
    pub(super) value: Vec<u8>,
}

impl Cursor {
    /// Creates a cursor over `tree` that is not positioned, if the tree can be read.
    ///
    /// # Errors
    /// As [`ReadContext::check_read`].
    #[doc(hidden)]
    pub fn over(
        context: &Arc<ReadContext>,
        tree: &Arc<TreeCore>,
        options: CursorOptions,
    ) -> Result<Self> {
        context.check_read(tree, options.snapshot.as_ref())?;
        Ok(Self::new(Arc::clone(context), Arc::clone(tree), options))
    }

    /// Creates a cursor over `tree` that is not positioned.
    #[doc(hidden)]
    #[must_use]
    pub fn new(context: Arc<ReadContext>, tree: Arc<TreeCore>, options: CursorOptions) -> Self {
        let snapshot = options.snapshot.unwrap_or_else(|| context.snapshot());
        // The snapshot is registered before the first move takes a version, so the merges that made
        // that version have kept the messages that the snapshot sees.
        let pins = context.cursors.add(Arc::clone(&tree), &context.budget);
        let scope = Scope {
            context,
            tree,
            snapshot,
            lower: options.lower.unwrap_or_default(),
            upper: options.upper,
            own: None,
            overlay: None,
            expected: 0,
            is_probe: false,
        };
        Self::of(scope, pins)
    }

    pub(super) fn of(scope: Scope, pins: Arc<Pins>) -> Self {
        Self {
            scope,
            pins,
            walk: None,
            copied: None,
            is_walk_old: false,
            value: OnceLock::new(),
            valid: false,
            deletes_passed: 0,
            seek_begun: None,
            failed: None,
            failed_key: None,
            is_listed: true,
            has_rested: false,
        }
    }

    /// Marks this cursor as a probe for known-empty ranges: its moves count neither in statistics
    /// nor in the scan debt of leaves.
    #[doc(hidden)]
    pub fn set_probes(&mut self) {
        self.scope.is_probe = true;
    }

    /// Tells the cursor that the caller is about to read `entries` entries, so that the cursor
    /// prepares that many at once. Does not change which entries the cursor shows.
    // From the next leaf on, the first chunk of a base has that many entries (but at least 32), and
    // the first chunk of a run above the base has a number in proportion to the sizes of the two.
    #[inline]
    pub fn expect(&mut self, entries: usize) {
        self.scope.expected = entries;
    }

    /// Ends the walk and returns how many committed deletes the cursor has stepped over.
    #[doc(hidden)]
    pub fn deletes_passed(&mut self) -> u64 {
        self.end_walk();
        self.pins.end_walk();
        self.deletes_passed
    }

    /// From the next seek on, shows the committed entries as changed by the writes of `overlay` and
    /// then by the transaction's writes `own`.
    #[doc(hidden)]
    pub fn set_own(&mut self, own: Option<OwnWrites>, overlay: Option<OwnWrites>) {
        let scope = &mut self.scope;
        let were_any = scope.own.is_some() || scope.overlay.is_some();
        self.is_walk_old |= were_any || own.is_some() || overlay.is_some();
        (scope.own, scope.overlay) = (own, overlay);
    }

    /// From the next seek on, reads at this snapshot.
    #[doc(hidden)]
    pub fn set_snapshot(&mut self, snapshot: Snapshot) {
        self.is_walk_old = true;
        self.scope.snapshot = snapshot;
        // The new snapshot is registered before a version is taken, as in `new`.
        self.pins.renew();
    }

    // --- The entry that the cursor is at ---

    /// Returns whether the cursor is at an entry.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.valid
    }

    /// Returns the snapshot at which the cursor reads.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.scope.snapshot
    }

    /// Returns the key of the current entry; empty without one.
    #[inline(always)]
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match &self.walk {
            Some(walk) if self.valid => walk.merge.key(),
            _ => self.copied_entry().0,
        }
    }

    /// Returns the value of the current entry; empty without one. The first call reads a large
    /// value from disk; if that fails, the cursor stays at the entry.
    ///
    /// # Errors
    /// `Corruption` or `Io` for a large value that cannot be read; `Closed`.
    #[inline]
    pub fn value(&self) -> Result<&[u8]> {
        let (kind, value) = match &self.walk {
            Some(walk) if self.valid => (walk.merge.kind(), walk.merge.value()),
            _ => {
                let (_, kind, value) = self.copied_entry();
                (kind, value)
            }
        };
        if kind == MessageKind::PutRef { self.large_value(value) } else { Ok(value) }
    }

    /// Returns the large value that `reference` names. Only the first call for an entry reads it.
    #[inline(never)]
    fn large_value(&self, reference: &[u8]) -> Result<&[u8]> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let context = &self.scope.context;
        let value = read_value(&context.runs, reference);
        context.health.check_open()?;
        let value = value?;
        Ok(self.value.get_or_init(|| value))
    }

    /// Returns the current entry of a cursor without a walk; an empty entry if it is at none.
    #[cold]
    fn copied_entry(&self) -> (&[u8], MessageKind, &[u8]) {
        let copied = self.copied.as_deref().filter(|_| self.valid);
        copied.map_or((b"", MessageKind::Put, b""), |entry| (&entry.key, entry.kind, &entry.value))
    }

    /// Returns the key at which the last move failed, if the failure concerns only the entry of
    /// this key: its update function is missing or fails.
    #[doc(hidden)]
    #[must_use]
    pub fn failed_key(&self) -> Option<&[u8]> {
        self.failed_key.as_deref()
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        if self.is_listed {
            self.report();
            self.scope.context.cursors.remove(&self.pins);
        }
    }
}

impl std::fmt::Debug for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cursor({} at {})", self.scope.tree.id, self.scope.snapshot.seq())
    }
}
