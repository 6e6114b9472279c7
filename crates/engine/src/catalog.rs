//! The trees of an open engine by name: create, open, list, rename, drop, each one durable edit.
//!
//! A change is made durable first and seen afterwards, so that one that fails has changed nothing.
//! The gate is held meanwhile: a snapshot of the manifest is captured before both or after both,
//! and can neither lose an edit nor keep one that was given up.

use std::collections::BTreeMap;

use frondb_core::limits::TREE_NAME_BYTES_MAX;
use frondb_core::sync::{Arc, Mutex};
use frondb_core::{Error, ErrorKind, Result, SeqNo, TreeId};
use frondb_space::Hold;
use frondb_trunk::{Key, Node, Trunk};

use crate::env::Env;
use crate::prepared;
use frondb_commit::{Committer, NewTree};
use frondb_records::Edit;
use frondb_records::TreeOptions;
use frondb_tree::{InstallState, TreeCore, TreeParts};

/// Names of trees. Its lock is taken first of all: a change of the catalog excludes others, not
/// reads and writes.
#[derive(Default)]
pub(crate) struct Catalog {
    names: Mutex<BTreeMap<String, TreeId>>,
}

impl Catalog {
    /// The catalog of trees that recovery found.
    pub(crate) fn of(env: &Env) -> Self {
        let trees = env.trees.all();
        let names = trees.iter().map(|tree| (tree.name.read().clone(), tree.id)).collect();
        Self { names: Mutex::new(names) }
    }

    /// Makes an empty tree.
    pub(crate) fn create(
        &self,
        env: &Env,
        name: &str,
        options: TreeOptions,
    ) -> Result<Arc<TreeCore>> {
        check_name(name)?;
        options.check()?;
        let mut names = self.names.lock();
        env.check()?;
        if names.contains_key(name) {
            return Err(exists(name));
        }
        let NewTree { tree, edit } = make(env, name, options)?;
        let id = tree.id;
        {
            let latch = env.edits.begin();
            latch.record(&[edit])?;
            env.trees.insert(Arc::clone(&tree));
            tree.begin_count();
        }
        names.insert(name.into(), id);
        Ok(tree)
    }

    /// A tree that exists once `load` has committed it, and of which nothing is known until then.
    pub(crate) fn make_coming(
        &self,
        env: &Env,
        name: &str,
        options: TreeOptions,
        load: u64,
    ) -> Result<NewTree> {
        check_name(name)?;
        options.check()?;
        env.check()?;
        if self.names.lock().contains_key(name) {
            return Err(exists(name));
        }
        let new = make(env, name, options)?;
        new.tree.set_bulk_load(load);
        Ok(new)
    }

    /// Runs `commit`, which makes `new` trees, while nobody else can take their names.
    pub(crate) fn commit_new<T>(
        &self,
        new: &[NewTree],
        commit: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
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

    /// The tree of this name.
    pub(crate) fn open(&self, env: &Env, name: &str) -> Result<Arc<TreeCore>> {
        env.check_open()?;
        let id = self.names.lock().get(name).copied();
        let tree = id.and_then(|id| env.trees.get(id));
        tree.ok_or_else(|| not_found(name))
    }

    /// All names, sorted.
    pub(crate) fn list(&self) -> Vec<String> {
        self.names.lock().keys().cloned().collect()
    }

    /// Gives a tree another name.
    pub(crate) fn rename(&self, env: &Env, from: &str, to: &str) -> Result<()> {
        check_name(to)?;
        let mut names = self.names.lock();
        env.check()?;
        let id = *names.get(from).ok_or_else(|| not_found(from))?;
        if from == to {
            return Ok(());
        }
        if names.contains_key(to) {
            return Err(exists(to));
        }
        let tree = env.trees.get(id).ok_or_else(|| not_found(from))?;
        {
            let latch = env.edits.begin();
            latch.record(&[Edit::RenameTree { tree: id, name: to.into() }])?;
            *tree.name.write() = to.into();
        }
        names.remove(from);
        names.insert(to.into(), id);
        Ok(())
    }

    /// Removes a tree and all it holds, at once.
    pub(crate) fn remove(
        &self,
        env: &Env,
        committer: &Committer,
        name: &str,
    ) -> Result<Arc<TreeCore>> {
        let mut names = self.names.lock();
        env.check()?;
        let id = *names.get(name).ok_or_else(|| not_found(name))?;
        let tree = env.trees.get(id).ok_or_else(|| not_found(name))?;
        // No commit is between its check of the tree and its insert; no flush or merge appends an
        // edit of a tree that is no more.
        let (version, values) = committer.exclusive(|_| {
            prepared::check_no_writer(env, &tree)?;
            prepared::keep_commits(env, &tree)?;
            let latch = env.edits.begin();
            let mut install = tree.install.lock();
            latch.record(&[Edit::DropTree { tree: id }])?;
            env.edits.pending().drop_tree(id);
            tree.set_dropped();
            // Cursors that are open on it go on, also those whose version was taken away.
            env.reads().cursors.pin_last(&tree, env.now());
            env.trees.remove(id);
            let values = std::mem::take(&mut install.values);
            // Readers that have a version keep it; the tree itself lets go.
            let empty = Node::empty_leaf(env.ids.next_node(), Key::from([]), None);
            let old = tree.retire(Trunk { tree: id, root: empty });
            Ok::<_, Error>((old, values))
        })?;
        names.remove(name);
        for slot in version.sources() {
            // Cursors may hold it for long, and no flush will come for it: writers must not wait.
            tree.pin_source(slot);
            version.hold.add(slot.take_values().into_iter().flatten());
            slot.runs().iter().for_each(|run| run.kill());
        }
        version.hold.add(values.into_values().flatten());
        version.trunk.for_each(&mut |node| node.views().for_each(|view| view.run.kill()));
        Ok(tree)
    }
}

/// An empty tree, and the edit that makes it known.
fn make(env: &Env, name: &str, options: TreeOptions) -> Result<NewTree> {
    let id = env.ids.next_tree();
    let root = env.ids.next_node();
    let edit = Edit::CreateTree { tree: id, name: name.into(), options: options.clone(), root };
    let tree = tree_core(env, id, name.into(), options, None)?;
    let leaf = Node::empty_leaf(root, Key::from([]), None);
    tree.publish(Trunk { tree: id, root: leaf }, None, false);
    Ok(NewTree { tree, edit })
}

/// A tree without a trunk yet, or with the one that recovery built.
///
/// A new tree needs its update function. One that was found opens without, and so does its
/// database: its figures, most of its rows and all other trees need none.
pub(crate) fn tree_core(
    env: &Env,
    id: TreeId,
    name: String,
    options: TreeOptions,
    restored: Option<(Trunk, InstallState)>,
) -> Result<Arc<TreeCore>> {
    let fns = &env.options.update_fns;
    let mut missing = None;
    let update = match &options.update_fn {
        None => None,
        Some((function, version)) => {
            if let Err(error) = fns.find(function, *version) {
                let error = error.context(format!("tree {name:?}"));
                if restored.is_none() {
                    return Err(error);
                }
                tracing::warn!(%error, "keys with updates cannot be read");
                missing = Some(error);
            }
            Some(fns.find_or_stand_in(function, *version))
        }
    };
    let (trunk, install) = restored.unwrap_or_else(|| {
        let root = Node::empty_leaf(frondb_core::NodeId(0), Key::from([]), None);
        (Trunk { tree: id, root }, InstallState { flushed: SeqNo::MIN, ..InstallState::default() })
    });
    Ok(TreeCore::new(TreeParts {
        id,
        engine: env.id,
        name,
        options,
        update,
        missing,
        trunk,
        install,
        hold: Hold::new(&env.runs.space),
        locks: env.locks.table(id),
        account: Arc::clone(&env.account),
        totals: Arc::clone(&env.totals),
    }))
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
    Error::new(ErrorKind::Exists, format!("tree {name:?} exists already"))
}

fn not_found(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no tree {name:?}"))
}
