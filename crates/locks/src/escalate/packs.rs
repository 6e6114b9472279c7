//! Compresses the row locks of a locker into packs (`packed.rs`), and merges packs of similar size.

use crate::class::LockMode;
use crate::held::HeldLocks;
use crate::key::Key;
use crate::packed::{Keys, Packed};
use crate::table_state::Pack;
use frondb_core::sync::Arc;

/// Number of locks that are packed or joined under one hold of a table's lock; a join may take
/// twice as many.
pub(super) const JOIN_LOCKS: usize = 256;

/// Packs under construction, separated by mode.
#[derive(Default)]
pub(super) struct PackBuilder {
    shared: Vec<Packed>,
    exclusive: Vec<Packed>,
}

impl PackBuilder {
    /// Adds a row. REQUIRES: no row of this mode with a larger key was added before.
    pub(super) fn push(&mut self, key: &[u8], mode: LockMode) {
        let packs = match mode {
            LockMode::Shared => &mut self.shared,
            LockMode::Exclusive => &mut self.exclusive,
        };
        if !packs.last_mut().is_some_and(|pack| pack.push(key)) {
            let mut pack = Packed::default();
            // An empty pack has room: a key is far shorter than the 4 GiB of a pack.
            let _ = pack.push(key);
            packs.push(pack);
        }
    }

    pub(super) fn packs(self, locker: u64) -> impl Iterator<Item = Pack> {
        let of = move |packs: Vec<Packed>, mode| {
            packs.into_iter().map(move |mut keys| {
                keys.shrink();
                Pack { locker, mode, keys: Arc::new(keys) }
            })
        };
        of(self.shared, LockMode::Shared).chain(of(self.exclusive, LockMode::Exclusive))
    }
}

/// The keys of several packs, merged into one order.
pub(super) struct MergedPacks<'a> {
    sources: Vec<(Keys<'a>, LockMode, Option<Key>)>,
}

impl<'a> MergedPacks<'a> {
    pub(super) fn of(packs: &'a [Pack]) -> Self {
        let begin = |pack: &'a Pack| {
            let mut keys = pack.keys.keys();
            let first = keys.next_key().map(Key::new);
            (keys, pack.mode, first)
        };
        Self { sources: packs.iter().map(begin).collect() }
    }

    pub(super) fn peek(&self) -> Option<&Key> {
        self.sources.iter().filter_map(|source| source.2.as_ref()).min()
    }

    pub(super) fn next(&mut self) -> Option<(Key, LockMode)> {
        let some = self.sources.iter_mut().filter(|source| source.2.is_some());
        let (keys, mode, first) = some.min_by(|a, b| a.2.cmp(&b.2))?;
        let next = keys.next_key().map(Key::new);
        Some((std::mem::replace(first, next)?, *mode))
    }
}

impl HeldLocks {
    /// Packs all rows. They still lock the same keys, but take only a few bytes each.
    pub(super) fn pack_rows(&mut self, locker: u64) {
        let table = Arc::clone(&self.table);
        let rows = self.take_rows();
        let mut fresh = PackBuilder::default();
        for some in rows.chunks(JOIN_LOCKS) {
            let state = table.state.lock();
            for key in some {
                if let Some(mode) = state.lists_row(locker, key) {
                    fresh.push(key.as_slice(), mode);
                }
            }
        }
        let fresh: Vec<Pack> = fresh.packs(locker).collect();
        let (mut packs, own) = (Vec::new(), self.own_packs(locker));
        for mode in [LockMode::Shared, LockMode::Exclusive] {
            let of_mode = |pack: &&Pack| pack.mode == mode;
            let mut merged: Vec<Pack> = fresh.iter().filter(of_mode).cloned().collect();
            let mut sum: usize = merged.iter().map(|pack| pack.keys.len()).sum();
            let mut own: Vec<&Pack> = own.iter().filter(of_mode).collect();
            own.sort_by_key(|pack| pack.keys.len());
            for pack in own {
                // Packs of similar size are merged into one, so that each row is copied only a few
                // times and there are few packs.
                if pack.keys.len() <= 2 * sum {
                    sum += pack.keys.len();
                    merged.push(pack.clone());
                } else {
                    packs.push(pack.clone());
                }
            }
            packs.extend(merge(locker, merged));
        }
        self.replace_packs(locker, packs);
        for some in rows.chunks(JOIN_LOCKS) {
            let mut state = table.state.lock();
            for key in some {
                state.release_row(locker, key);
            }
        }
    }

    pub(super) fn own_packs(&self, locker: u64) -> Vec<Pack> {
        if self.packed.0 == 0 {
            return Vec::new();
        }
        let state = self.table.state.lock();
        state.packs.iter().filter(|pack| pack.locker == locker).cloned().collect()
    }

    pub(super) fn replace_packs(&mut self, locker: u64, packs: Vec<Pack>) {
        let sum = |of: fn(&Packed) -> u64| packs.iter().map(|pack| of(&pack.keys)).sum::<u64>();
        self.packed = (sum(|keys| keys.len() as u64), sum(Packed::memory_bytes));
        let table = Arc::clone(&self.table);
        let mut state = table.state.lock();
        let all = std::mem::take(&mut state.packs).into_iter();
        let (gone, others): (Vec<Pack>, Vec<Pack>) = all.partition(|pack| pack.locker == locker);
        state.packs = others;
        state.packs.extend(packs);
        drop(state);
        // Free the memory without holding the lock.
        drop(gone);
    }

    /// Takes the list of rows, sorted and without duplicates.
    pub(super) fn take_rows(&mut self) -> Vec<Key> {
        self.stale = 0;
        self.key_bytes = 0;
        let mut rows = std::mem::take(&mut self.rows).into_vec();
        rows.sort_unstable();
        rows.dedup();
        rows
    }
}

/// Merges packs of one mode into one pack, or into as few as the size limit of a pack allows.
fn merge(locker: u64, packs: Vec<Pack>) -> Vec<Pack> {
    if packs.len() < 2 {
        return packs;
    }
    let (mut keys, mut out) = (MergedPacks::of(&packs), PackBuilder::default());
    while let Some((key, mode)) = keys.next() {
        out.push(key.as_slice(), mode);
    }
    out.packs(locker).collect()
}
