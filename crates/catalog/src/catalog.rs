//! [`Catalog`]: creates, opens, lists, renames and drops the trees of an open database. Each change
//! is one durable manifest edit.
//!
//! A change first becomes durable and then visible, so a failed change has no effect. The catalog
//! holds the edit latch during both steps. A snapshot of the manifest is therefore captured before
//! both steps or after both: it neither loses an edit nor keeps a failed one.

use std::collections::BTreeMap;

use frondb_commit::{Committer, Edits, Ids, NewTree};
use frondb_core::limits::TREE_NAME_BYTES_MAX;
use frondb_core::sync::{Arc, Mutex};
use frondb_core::{Error, ErrorKind, Result, SeqNo, TreeId};
use frondb_locks::LockManager;
use frondb_records::{Edit, TreeOptions};
use frondb_tree::{
    InstallState, MemtableAccount, ReadContext, TreeCore, TreeParts, TreeShared, TreeSizes,
    TreeTotals, Trees,
};
use frondb_trunk::{Key, Node, Trunk};

use crate::update_fns::UpdateFns;

/// Maximum number of option objects that are kept for sharing; the oldest is forgotten first.
const OPTIONS_MAX: usize = 32;

/// The trees of a database by name. Any thread may use it. One change of the catalog runs at a
/// time; trees can be read and written meanwhile. The lock of the names is taken before all other
/// locks.
pub struct Catalog {
    names: Mutex<BTreeMap<String, TreeId>>,
    trees: Arc<Trees>,
    edits: Arc<Edits>,
    ids: Arc<Ids>,
    reads: Arc<ReadContext>,
    shared: Arc<TreeShared>,
    update_fns: UpdateFns,
    /// Option objects for sharing: most trees have the same options and use one object.
    options: Mutex<Vec<Arc<TreeOptions>>>,
}

/// The parts of the engine that a [`Catalog`] uses.
pub struct CatalogParts {
    /// The trees by id, which the catalog keeps up to date.
    pub trees: Arc<Trees>,
    /// The manifest, to which the catalog appends its edits.
    pub edits: Arc<Edits>,
    /// Source of tree and node ids.
    pub ids: Arc<Ids>,
    /// The context of reads.
    pub reads: Arc<ReadContext>,
    /// The lock manager, which creates the lock table of each tree.
    pub locks: Arc<LockManager>,
    /// The account of the memory of memtables.
    pub account: Arc<MemtableAccount>,
    /// Sums of sizes over all trees.
    pub totals: Arc<TreeTotals>,
    /// The update functions that trees may use.
    pub update_fns: UpdateFns,
}

impl Catalog {
    /// Creates an empty catalog. Recovery adds the trees that it finds
    /// ([`restore`](Self::restore)).
    #[must_use]
    pub fn new(parts: CatalogParts) -> Arc<Self> {
        let CatalogParts { trees, edits, ids, reads, locks, account, totals, update_fns } = parts;
        let (names, options) = (Mutex::default(), Mutex::default());
        let shared = Arc::new(TreeShared {
            engine: reads.engine,
            runs: Arc::clone(&reads.runs),
            lock_manager: locks,
            account,
            totals,
        });
        Arc::new(Self { names, trees, edits, ids, reads, shared, update_fns, options })
    }

    /// Returns the sums of sizes over all trees.
    #[must_use]
    pub fn totals(&self) -> TreeSizes {
        self.shared.totals.read()
    }

    /// Creates an empty tree; durable on return.
    ///
    /// # Errors
    /// `Exists`; `Invalid` for a bad name or option, or an update function that is not registered;
    /// `NoSpace`, `Poisoned`, `Closed`.
    pub fn create(&self, name: &str, options: TreeOptions) -> Result<Arc<TreeCore>> {
        check_name(name)?;
        options.check()?;
        let mut names = self.names.lock();
        self.reads.health.check()?;
        if names.contains_key(name) {
            return Err(exists(name));
        }
        let NewTree { tree, edit } = self.make(name, options)?;
        let id = tree.id;
        {
            let latch = self.edits.begin();
            latch.record(&[edit])?;
            self.trees.insert(Arc::clone(&tree));
            tree.begin_count();
        }
        names.insert(name.into(), id);
        // `false`: an empty tree has no background work.
        tree.stow(|_| false);
        Ok(tree)
    }

    /// Makes a tree that the commit of the bulk load with the number `load` will create. Before
    /// that commit the catalog does not list the tree.
    ///
    /// # Errors
    /// `Exists`; `Invalid` as for [`create`](Self::create); `Poisoned`, `Closed`.
    pub fn make_coming(&self, name: &str, options: TreeOptions, load: u64) -> Result<NewTree> {
        check_name(name)?;
        options.check()?;
        self.reads.health.check()?;
        if self.names.lock().contains_key(name) {
            return Err(exists(name));
        }
        let new = self.make(name, options)?;
        new.tree.set_bulk_load(load);
        Ok(new)
    }

    /// Runs `commit`, which creates the trees `new`, and adds their names. No other thread can take
    /// the names while `commit` runs.
    ///
    /// # Errors
    /// `Exists` if a name is taken; errors of `commit`.
    pub fn commit_new<T>(&self, new: &[NewTree], commit: impl FnOnce() -> Result<T>) -> Result<T> {
        if new.is_empty() {
            return commit();
        }
        let mut names = self.names.lock();
        let named = |new: &NewTree| new.tree.name.read().clone();
        if let Some(taken) = new.iter().map(named).find(|name| names.contains_key(name)) {
            return Err(exists(&taken));
        }
        let committed = commit()?;
        names.extend(new.iter().map(|new| (named(new), new.tree.id)));
        Ok(committed)
    }

    /// Makes an empty tree, and the edit that creates it in the manifest.
    fn make(&self, name: &str, options: TreeOptions) -> Result<NewTree> {
        let id = self.ids.next_tree();
        let root = self.ids.next_node();
        let edit = Edit::CreateTree { tree: id, name: name.into(), options: options.clone(), root };
        let tree = self.tree_core(id, name.into(), options, None)?;
        let leaf = Node::empty_leaf(root, Key::default(), None);
        tree.publish(Trunk { tree: id, root: leaf }, None, false);
        Ok(NewTree { tree, edit })
    }

    /// Returns an object with these options, if possible one that other trees share.
    fn shared(&self, options: TreeOptions) -> Arc<TreeOptions> {
        let mut known = self.options.lock();
        if let Some(found) = known.iter().find(|known| ***known == options) {
            return Arc::clone(found);
        }
        if known.len() >= OPTIONS_MAX {
            known.remove(0);
        }
        let new = Arc::new(options);
        known.push(Arc::clone(&new));
        new
    }

    /// Makes a tree with the trunk that recovery built, or with a placeholder trunk if `restored`
    /// is `None`.
    ///
    /// A new tree needs its update function: without it, the call fails. A recovered tree opens
    /// even if its function is not registered, because the database must open: statistics, most
    /// rows and all other trees do not need the function.
    fn tree_core(
        &self,
        id: TreeId,
        name: String,
        options: TreeOptions,
        restored: Option<(Trunk, InstallState)>,
    ) -> Result<Arc<TreeCore>> {
        let fns = &self.update_fns;
        let mut missing = None;
        let update = match &options.update_fn {
            None => None,
            Some((function, version)) => {
                if let Err(error) = fns.find(function, *version) {
                    let error = error.context(format!("tree {name:?}"));
                    if restored.is_none() {
                        return Err(error);
                    }
                    tracing::warn!(%error, "a tree was opened without its update function: keys that have updates cannot be read");
                    missing = Some(error);
                }
                Some(fns.find_or_stand_in(function, *version))
            }
        };
        let (trunk, install) = restored.unwrap_or_else(|| {
            let root = Node::empty_leaf(frondb_core::NodeId(0), Key::default(), None);
            (
                Trunk { tree: id, root },
                InstallState { flushed: SeqNo::MIN, ..InstallState::default() },
            )
        });
        Ok(TreeCore::new(TreeParts {
            id,
            name,
            options: self.shared(options),
            update,
            missing,
            trunk,
            install,
            shared: Arc::clone(&self.shared),
        }))
    }

    /// Adds a tree that recovery has found.
    ///
    /// # Errors
    /// None today: a tree whose update function is missing opens with a stand-in.
    pub fn restore(
        &self,
        id: TreeId,
        name: String,
        options: TreeOptions,
        trunk: Trunk,
        install: InstallState,
    ) -> Result<Arc<TreeCore>> {
        let tree = self.tree_core(id, name.clone(), options, Some((trunk, install)))?;
        tree.begin_count();
        self.trees.insert(Arc::clone(&tree));
        self.names.lock().insert(name, id);
        Ok(tree)
    }

    /// Returns the tree of this name.
    ///
    /// # Errors
    /// `NotFound`; `Closed`.
    pub fn open(&self, name: &str) -> Result<Arc<TreeCore>> {
        self.reads.health.check_open()?;
        let id = self.names.lock().get(name).copied();
        let tree = id.and_then(|id| self.trees.get(id));
        tree.ok_or_else(|| not_found(name))
    }

    /// Returns the names of all trees, sorted.
    pub fn list(&self) -> Vec<String> {
        self.names.lock().keys().cloned().collect()
    }

    /// Renames a tree; durable on return.
    ///
    /// # Errors
    /// `NotFound`; `Exists`; `Invalid` for a bad name; `NoSpace`, `Poisoned`, `Closed`.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        check_name(to)?;
        let mut names = self.names.lock();
        self.reads.health.check()?;
        let id = *names.get(from).ok_or_else(|| not_found(from))?;
        if from == to {
            return Ok(());
        }
        if names.contains_key(to) {
            return Err(exists(to));
        }
        let tree = self.trees.get(id).ok_or_else(|| not_found(from))?;
        {
            let latch = self.edits.begin();
            latch.record(&[Edit::RenameTree { tree: id, name: to.into() }])?;
            *tree.name.write() = to.into();
        }
        names.remove(from);
        names.insert(to.into(), id);
        Ok(())
    }

    /// Changes the options of a tree; durable on return.
    ///
    /// # Errors
    /// `NotFound` if the tree was dropped; `Invalid` for an option that is out of its range or
    /// fixed; `NoSpace`, `Poisoned`, `Closed`.
    pub fn set_options(&self, tree: &TreeCore, options: TreeOptions) -> Result<()> {
        // While this lock is held, no tree is dropped.
        let _names = self.names.lock();
        self.reads.health.check()?;
        if tree.is_dropped() {
            return Err(not_found(&tree.name.read()));
        }
        let now = tree.options();
        now.check_change(&options)?;
        if *now == options {
            return Ok(());
        }
        let latch = self.edits.begin();
        latch.record(&[Edit::SetOptions { tree: tree.id, options: options.clone() }])?;
        tree.set_options(options);
        Ok(())
    }

    /// Drops a tree with all its data; durable on return. `prepare` runs under the commit lock
    /// before anything changes, and can prevent the drop by returning an error.
    ///
    /// # Errors
    /// `NotFound`; errors of `prepare`; `NoSpace`, `Poisoned`, `Closed`.
    pub fn remove(
        &self,
        committer: &Committer,
        name: &str,
        prepare: impl FnOnce(&TreeCore) -> Result<()>,
    ) -> Result<Arc<TreeCore>> {
        let mut names = self.names.lock();
        self.reads.health.check()?;
        let id = *names.get(name).ok_or_else(|| not_found(name))?;
        let tree = self.trees.get(id).ok_or_else(|| not_found(name))?;
        // Under the commit lock, no commit is between its check of the tree and its insert. Under
        // the edit latch and the install lock, no flush or merge can record an edit for the dropped
        // tree.
        let (version, values) = committer.exclusive(|_| {
            prepare(&tree)?;
            let latch = self.edits.begin();
            let mut install = tree.install.lock();
            latch.record(&[Edit::DropTree { tree: id }])?;
            self.edits.pending().drop_tree(id);
            tree.set_dropped();
            // Keep open cursors usable, even cursors that have released their version.
            self.reads.cursors.pin_last(&tree, self.reads.now());
            self.trees.remove(id);
            let values = std::mem::take(&mut install.values);
            // Readers keep the version that they hold; the tree gets an empty one.
            let empty = Node::empty_leaf(self.ids.next_node(), Key::default(), None);
            let old = tree.retire(Trunk { tree: id, root: empty });
            Ok::<_, Error>((old, values))
        })?;
        names.remove(name);
        for slot in version.sources() {
            // Cursors may hold the memtable for long, and no flush will free it. Stop charging it
            // to the write buffer, or writers would wait for its memory.
            tree.pin_source(slot);
            version.hold.add(slot.take_values().into_iter().flatten());
            slot.runs().iter().for_each(|run| run.kill());
        }
        version.hold.add(values.into_values().flatten());
        version.trunk.for_each(&mut |node| node.views().for_each(|view| view.run.kill()));
        Ok(tree)
    }
}

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > TREE_NAME_BYTES_MAX {
        return Err(Error::invalid(format!(
            "the name of a tree has 1 to {TREE_NAME_BYTES_MAX} bytes, not {}",
            name.len()
        )));
    }
    Ok(())
}

fn exists(name: &str) -> Error {
    Error::new(ErrorKind::Exists, format!("tree {name:?} already exists"))
}

fn not_found(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no tree {name:?}"))
}
