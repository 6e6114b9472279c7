//! Creates, changes, renames and drops the trees of a simulation.

use frondb::{ErrorKind, Result, Tree};

use super::Simulation;
use crate::history::Op;
use crate::model::{Catalog, Contents};

impl Simulation {
    pub(super) fn catalog(&mut self, op: &Op) -> Result<()> {
        let (wanted, touched) = match op {
            Op::DropTree { tree, .. } => {
                (self.has_prepared_writes(*tree), self.was_touched_by_prepared(*tree))
            }
            _ => (false, false),
        };
        let result = self.change_catalog(op);
        assert!(
            !wanted || result.is_err(),
            "a tree to which a prepared transaction wrote was dropped"
        );
        if touched && result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Busy) {
            // The tree stays; no later operation of the history uses it.
            self.known.refused();
            return Ok(());
        }
        if result.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoSpace) {
            self.known.refused();
        }
        result
    }

    fn change_catalog(&mut self, op: &Op) -> Result<()> {
        let mut next: Catalog = self.model.catalog.clone();
        match op {
            Op::CreateTree { tree, name, .. } => {
                next.insert(name.clone(), *tree);
            }
            Op::RenameTree { tree, from, to } => {
                next.remove(from);
                next.insert(to.clone(), *tree);
            }
            Op::DropTree { name, .. } => {
                next.remove(name);
            }
            _ => {}
        }
        self.known.changing_catalog(next.clone());
        match op {
            Op::CreateTree { tree, name, function } => {
                let options = self.setup.tree_options(*function);
                let made = self.db().create_tree(name, options.clone())?;
                let again = self.db().create_tree(name, options);
                assert!(again.is_err_and(|error| error.kind() == ErrorKind::Exists));
                self.trees.insert(*tree, made);
                self.model.functions.insert(*tree, *function);
                self.model.state.insert(*tree, Contents::default());
            }
            Op::RenameTree { from, to, tree } => {
                self.db().rename_tree(from, to)?;
                assert_eq!(self.trees.get(tree).map(Tree::name), Some(to.clone()));
            }
            Op::SetCodec { tree, codec } => {
                let handle = self.trees.get(tree).cloned();
                let Some(handle) = handle else { return Ok(()) };
                let options = handle.options().codec(*codec);
                // If the call fails, the next open may find the old or the new options.
                self.changed_options.remove(tree);
                handle.set_options(options.clone())?;
                assert_eq!(handle.options(), options);
                self.changed_options.insert(*tree, options);
            }
            Op::DropTree { tree, name } => {
                self.db().drop_tree(name)?;
                if let Some(handle) = self.trees.remove(tree) {
                    let read = handle.get(b"x");
                    assert!(read.is_err_and(|error| error.kind() == ErrorKind::NotFound));
                }
                self.model.state.remove(tree);
            }
            _ => {}
        }
        self.model.catalog = next;
        self.known.catalog_changed();
        let [created, renamed, packed, dropped] = &mut self.coverage.catalog_changes;
        match op {
            Op::CreateTree { .. } => *created += 1,
            Op::RenameTree { .. } => *renamed += 1,
            Op::SetCodec { .. } => *packed += 1,
            _ => *dropped += 1,
        }
        assert_eq!(self.db().list_trees(), self.model.catalog.keys().cloned().collect::<Vec<_>>());
        Ok(())
    }
}
