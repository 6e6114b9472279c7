//! A file in memory in two states: as the running system sees it, and as the disk has it.
//!
//! ```text
//!   synced  --(changes, in order)-->  live
//!      |                               |
//!   what survives for sure          what reads return
//! ```
//! Invariant: applying all `changes` to `synced` gives `live`. A sync makes `synced` equal to
//! `live` and drops the changes; a crash applies a random part of them.

use frondb_core::prng::Prng;

use super::content::Content;

/// Unit that a disk writes atomically, bytes.
const SECTOR: u64 = 512;

/// A change that was not synced.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// Bytes written at an offset.
    Write(u64, Vec<u8>),
    /// The length set.
    SetLen(u64),
    /// A range allocated: offset, length.
    Allocate(u64, u64),
    /// A range punched: offset, length.
    Punch(u64, u64),
}

impl Change {
    fn apply(&self, content: &mut Content) {
        match self {
            Self::Write(offset, bytes) => {
                content.put(*offset, bytes);
                content.extend(offset + bytes.len() as u64);
            }
            Self::SetLen(len) => content.set_len(*len),
            Self::Allocate(offset, len) => content.allocate(*offset, *len),
            Self::Punch(offset, len) => content.punch(*offset, *len),
        }
    }

    /// Returns the range whose pages may differ after this change, given the length before it.
    fn touched(&self, len_before: u64) -> (u64, u64) {
        match self {
            Self::Write(offset, bytes) => (*offset, bytes.len() as u64),
            // Truncating drops everything beyond the length, and zeroes the rest of its last page.
            Self::SetLen(len) => (*len, len_before.saturating_sub(*len)),
            Self::Allocate(offset, len) | Self::Punch(offset, len) => (*offset, *len),
        }
    }
}

/// The part of a file's unsynced changes that a crash keeps.
#[derive(Clone, Copy, Debug)]
enum CrashOutcome {
    /// The first n changes and a part of the next: the disk wrote in order.
    Prefix(usize),
    /// Each sector and each metadata change is kept with a probability of this many eighths: the
    /// disk wrote out of order.
    Sectors(u64),
}

/// A file.
#[derive(Clone, Debug, Default)]
pub(super) struct Inode {
    pub(super) live: Content,
    synced: Content,
    changes: Vec<Change>,
    /// The greatest length since the last sync. A sync must check for dropped pages up to this
    /// length.
    len_max: u64,
    /// Number of open handles.
    pub(super) handles: usize,
    /// Whether the live directory names the file.
    pub(super) linked: bool,
}

impl Inode {
    /// Creates a new, empty file of the live tree.
    pub(super) fn new() -> Self {
        Self { linked: true, ..Self::default() }
    }

    /// Creates a file whose content is durable.
    pub(super) fn durable(content: Content) -> Self {
        let len_max = content.len();
        Self { live: content.clone(), synced: content, len_max, linked: true, ..Self::default() }
    }

    /// Changes the file as the running system sees it.
    pub(super) fn change(&mut self, change: Change) {
        change.apply(&mut self.live);
        self.len_max = self.len_max.max(self.live.len());
        self.changes.push(change);
    }

    /// Makes the changes durable; takes time in proportion to the pages they touched.
    pub(super) fn sync(&mut self) {
        for change in self.changes.drain(..) {
            let (offset, len) = change.touched(self.len_max);
            self.synced.adopt(&self.live, offset, len);
        }
        self.synced.set_len(self.live.len());
        self.len_max = self.live.len();
    }

    /// Returns the synced content, which survives every crash.
    pub(super) fn after_losing_unsynced(&self) -> Content {
        self.synced.clone()
    }

    /// Returns a content that a crash may leave.
    pub(super) fn after_random_crash(&self, prng: &mut Prng) -> Content {
        let mut content = self.synced.clone();
        if self.changes.is_empty() {
            return content;
        }
        let outcome = match prng.below(3) {
            0 => CrashOutcome::Prefix(prng.index(self.changes.len() + 1)),
            _ => CrashOutcome::Sectors(prng.below(9)),
        };
        let torn = prng.index(self.changes.len());
        for (index, change) in self.changes.iter().enumerate() {
            match outcome {
                CrashOutcome::Prefix(end) if index < end => change.apply(&mut content),
                CrashOutcome::Prefix(end) if index == end => tear(change, &mut content, prng),
                CrashOutcome::Prefix(_) => break,
                CrashOutcome::Sectors(_) if index == torn && prng.chance(1, 4) => {
                    tear(change, &mut content, prng);
                }
                CrashOutcome::Sectors(chance) => scatter(change, &mut content, chance, prng),
            }
        }
        // Surviving sectors beyond the surviving length are not part of the file.
        content.cut();
        content
    }
}

/// Keeps the beginning of a write, torn at any byte; any other change is lost.
fn tear(change: &Change, content: &mut Content, prng: &mut Prng) {
    if let Change::Write(offset, bytes) = change {
        let kept = &bytes[..prng.index(bytes.len() + 1)];
        content.put(*offset, kept);
        // The length is metadata and may have been written completely or not at all.
        if prng.chance(3, 4) {
            let len = if prng.chance(1, 2) { kept.len() } else { bytes.len() };
            content.extend(offset + len as u64);
        }
    }
}

/// Keeps each sector of a write, or each other change, with `chance` out of eight.
fn scatter(change: &Change, content: &mut Content, chance: u64, prng: &mut Prng) {
    match change {
        Change::Write(offset, bytes) => {
            let end = offset + bytes.len() as u64;
            let mut at = *offset;
            while at < end {
                let next = ((at / SECTOR + 1) * SECTOR).min(end);
                if prng.chance(chance, 8) {
                    content.put(at, &bytes[(at - offset) as usize..(next - offset) as usize]);
                }
                at = next;
            }
            if prng.chance(chance, 8) {
                content.extend(end);
            }
        }
        // Bytes written beyond the length must be removed before a change of the length exposes
        // them.
        other if prng.chance(chance, 8) => {
            content.cut();
            other.apply(content);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(content: &Content) -> Vec<u8> {
        let mut bytes = vec![0; content.len() as usize];
        content.read(0, &mut bytes);
        bytes
    }

    /// The fast sync, which copies only the pages that changes touched, must give the same result
    /// as a copy of all pages.
    #[test]
    fn a_sync_makes_all_changes_durable() {
        for seed in 0..200 {
            let mut prng = Prng::new(seed);
            let mut inode = Inode::default();
            for _ in 0..30 {
                let (offset, len) = (prng.below(20_000), prng.below(10_000));
                inode.change(match prng.below(6) {
                    0 => Change::SetLen(offset),
                    1 => Change::Allocate(offset, len),
                    2 => Change::Punch(offset, len),
                    _ => {
                        let mut bytes = vec![0; len as usize];
                        prng.fill(&mut bytes);
                        Change::Write(offset, bytes)
                    }
                });
                if prng.chance(1, 3) {
                    inode.sync();
                    assert_eq!(bytes_of(&inode.synced), bytes_of(&inode.live), "seed {seed}");
                    assert_eq!(inode.synced.allocated_bytes(), inode.live.allocated_bytes());
                }
            }
        }
    }

    /// For every seed, each byte is the old one or the written one. Some seeds keep only old bytes,
    /// some only new ones, some a mixture.
    #[test]
    fn a_random_crash_mixes_old_and_new_bytes() {
        let mut inode = Inode::default();
        inode.change(Change::Write(0, vec![1; 8192]));
        inode.sync();
        inode.change(Change::Write(0, vec![2; 8192]));
        let (mut old, mut new, mut mixed, mut torn) = (0, 0, 0, 0);
        for seed in 0..400 {
            let bytes = bytes_of(&inode.after_random_crash(&mut Prng::new(seed)));
            assert_eq!(bytes.len(), 8192);
            let twos = bytes.iter().filter(|&&byte| byte == 2).count();
            assert_eq!(twos + bytes.iter().filter(|&&byte| byte == 1).count(), 8192);
            match twos {
                0 => old += 1,
                8192 => new += 1,
                twos if twos % 512 == 0 => mixed += 1,
                _ => torn += 1,
            }
        }
        assert!(old > 10 && new > 10 && mixed > 10 && torn > 10, "{old} {new} {mixed} {torn}");
    }

    #[test]
    fn synced_bytes_survive_every_random_crash() {
        let mut inode = Inode::default();
        inode.change(Change::Write(0, vec![1; 5000]));
        inode.sync();
        inode.change(Change::Write(5000, vec![2; 5000]));
        for seed in 0..200 {
            let bytes = bytes_of(&inode.after_random_crash(&mut Prng::new(seed)));
            assert!(bytes.len() >= 5000 && bytes[..5000].iter().all(|&byte| byte == 1));
            assert!(bytes[5000..].iter().all(|&byte| byte == 2 || byte == 0));
        }
    }
}
