//! The names of the in-memory device in two states: as the running system sees them, and as the
//! disk has them.
//!
//! An operation on a directory is durable when the directory is synced. Until then a crash keeps or
//! loses it at random, under three rules that file systems keep: a rename is atomic, an operation
//! on a name never overtakes an earlier one on the same name, and a lost directory loses all names
//! in it.

use std::collections::{BTreeMap, BTreeSet};

use frondb_core::prng::Prng;
use frondb_device::name;

/// Number of a file on the device; never reused.
pub(super) type InodeId = u64;

/// The object that a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Entry {
    File(InodeId),
    Dir,
}

/// All names by full path. The top directory has no name.
pub(super) type Names = BTreeMap<String, Entry>;

/// An unsynced operation on names.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Create(String, Entry),
    Remove(String),
    Rename(String, String),
}

impl Operation {
    fn apply(&self, names: &mut Names) {
        match self {
            Self::Create(path, entry) => {
                names.insert(path.clone(), *entry);
            }
            Self::Remove(path) => {
                names.remove(path);
            }
            Self::Rename(from, to) => {
                if let Some(entry) = names.remove(from) {
                    names.insert(to.clone(), entry);
                }
            }
        }
    }

    fn paths(&self) -> impl Iterator<Item = &str> {
        let (first, second) = match self {
            Self::Create(path, _) | Self::Remove(path) => (path, None),
            Self::Rename(from, to) => (from, Some(to)),
        };
        std::iter::once(first).chain(second).map(String::as_str)
    }
}

/// The names, live and durable, and the operations between the two.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    pub(super) live: Names,
    durable: Names,
    pending: Vec<Operation>,
}

impl Tree {
    /// Creates a tree whose names are all durable.
    pub(super) fn durable(names: Names) -> Self {
        Self { live: names.clone(), durable: names, pending: Vec::new() }
    }

    /// Changes the names as the running system sees them.
    pub(super) fn change(&mut self, operation: Operation) {
        operation.apply(&mut self.live);
        self.pending.push(operation);
    }

    /// Adds a name that is durable immediately (a lock file, which crash tests do not cover).
    pub(super) fn add_durable(&mut self, path: &str, entry: Entry) {
        self.live.insert(path.to_owned(), entry);
        self.durable.insert(path.to_owned(), entry);
    }

    /// Returns whether `dir` is a directory; the top always is.
    pub(super) fn is_dir(&self, dir: &str) -> bool {
        dir.is_empty() || self.live.get(dir) == Some(&Entry::Dir)
    }

    /// Makes the operations on names in `dir` durable. For a rename from or to another directory,
    /// also makes all operations durable that the rename depends on.
    pub(super) fn sync(&mut self, dir: &str) {
        let mut dirs = BTreeSet::from([dir.to_owned()]);
        let mut chosen = vec![false; self.pending.len()];
        for (index, operation) in self.pending.iter().enumerate().rev() {
            if operation.paths().any(|path| dirs.contains(name::parent(path))) {
                chosen[index] = true;
                dirs.extend(operation.paths().map(|path| name::parent(path).to_owned()));
            }
        }
        let mut chosen = chosen.into_iter();
        let durable = &mut self.durable;
        self.pending.retain(|operation| {
            let chosen = chosen.next().unwrap_or(false);
            if chosen {
                operation.apply(durable);
            }
            !chosen
        });
    }

    /// Returns the files that may have a name after a crash: files with durable names, and files of
    /// pending creates.
    pub(super) fn reachable_inodes(&self) -> BTreeSet<InodeId> {
        let pending = self.pending.iter().filter_map(|operation| match operation {
            Operation::Create(_, entry) => Some(entry),
            Operation::Remove(_) | Operation::Rename(..) => None,
        });
        let entries = self.durable.values().chain(pending);
        entries
            .filter_map(|entry| match entry {
                Entry::File(id) => Some(*id),
                Entry::Dir => None,
            })
            .collect()
    }

    /// Returns the durable names, which every crash leaves.
    pub(super) fn after_losing_unsynced(&self) -> Names {
        reachable(self.durable.clone())
    }

    /// Returns names that a crash may leave.
    pub(super) fn after_random_crash(&self, prng: &mut Prng) -> Names {
        let mut names = self.durable.clone();
        let mut lost = BTreeSet::new();
        let chance = prng.below(5);
        for operation in &self.pending {
            let overtakes = operation.paths().any(|path| lost.contains(path));
            if !overtakes && prng.chance(chance, 4) {
                operation.apply(&mut names);
            } else {
                lost.extend(operation.paths());
            }
        }
        reachable(names)
    }
}

/// Removes the names in missing directories.
fn reachable(mut names: Names) -> Names {
    let dirs: BTreeSet<String> = names
        .iter()
        .filter(|(_, entry)| **entry == Entry::Dir)
        .map(|(path, _)| path.clone())
        .collect();
    let exists = |dir: &str| dir.is_empty() || dirs.contains(dir);
    names.retain(|path, _| ancestors(path).all(exists));
    names
}

/// Returns the directories above a path, the nearest first, without the top.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name::parent(path)), |dir| Some(name::parent(dir)))
        .take_while(|dir| !dir.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(path: &str, inode: InodeId) -> Operation {
        Operation::Create(path.to_owned(), Entry::File(inode))
    }

    fn paths(names: &Names) -> Vec<&str> {
        names.keys().map(String::as_str).collect()
    }

    #[test]
    fn only_a_sync_of_its_directory_makes_a_name_durable() {
        let mut tree = Tree::default();
        tree.change(Operation::Create("d".to_owned(), Entry::Dir));
        tree.change(create("d/a", 1));
        tree.change(create("b", 2));
        tree.sync("d");
        assert_eq!(paths(&tree.after_losing_unsynced()), [""; 0], "d itself is not durable yet");
        tree.sync("");
        assert_eq!(paths(&tree.after_losing_unsynced()), ["b", "d", "d/a"]);
    }

    #[test]
    fn a_rename_is_atomic() {
        let mut tree = Tree::default();
        tree.change(create("old", 1));
        tree.sync("");
        tree.change(create("new", 2));
        tree.change(Operation::Rename("new".to_owned(), "old".to_owned()));
        let mut seen = BTreeSet::new();
        for seed in 0..200 {
            let names = tree.after_random_crash(&mut Prng::new(seed));
            seen.insert(format!("{names:?}"));
        }
        let expected =
            [r#"{"new": File(2), "old": File(1)}"#, r#"{"old": File(1)}"#, r#"{"old": File(2)}"#];
        assert_eq!(seen.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn syncing_a_rename_between_directories_syncs_its_dependencies() {
        let mut tree = Tree::default();
        for dir in ["x", "y"] {
            tree.change(Operation::Create(dir.to_owned(), Entry::Dir));
        }
        tree.sync("");
        tree.change(create("x/a", 1));
        tree.change(Operation::Rename("x/a".to_owned(), "y/a".to_owned()));
        tree.change(create("x/b", 2));
        tree.sync("y");
        assert_eq!(paths(&tree.after_losing_unsynced()), ["x", "y", "y/a"]);
    }
}
