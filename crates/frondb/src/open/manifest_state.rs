//! [`ManifestState`]: the state of the manifest, which recovery builds by applying all edits in
//! order.

use std::collections::{BTreeMap, HashMap};

use frondb_commit::{LargestIds, PendingState, PreparedInManifest};
use frondb_core::codec::Reader;
use frondb_core::{Error, ErrorKind, Lsn, NodeId, Result, RunId, SeqNo, TreeId};
use frondb_records::{Edit, EditFault, TreeOptions, decode_edit};
use frondb_run::RunMeta;
use frondb_space::Extent;
use frondb_trunk::format::BodyImage;
use frondb_trunk::{Key, NodeImage};

pub(crate) fn damaged(message: String) -> Error {
    Error::corruption("MANIFEST", 0, "manifest record", message)
}

/// The contents of the manifest.
#[derive(Default)]
pub(crate) struct ManifestState {
    pub(crate) trees: BTreeMap<TreeId, TreeState>,
    pub(crate) pending: PendingState,
    pub(crate) log_start: Lsn,
    pub(crate) log_durable: Lsn,
    pub(crate) ids: LargestIds,
    pub(crate) seq: SeqNo,
}

/// The contents of the manifest for one tree.
pub(crate) struct TreeState {
    pub(crate) name: String,
    pub(crate) options: TreeOptions,
    pub(crate) root: NodeId,
    pub(crate) flushed: SeqNo,
    pub(crate) nodes: HashMap<NodeId, NodeImage>,
    pub(crate) runs: HashMap<RunId, RunMeta>,
    pub(crate) values: HashMap<Extent, Vec<Extent>>,
}

impl ManifestState {
    /// Returns the largest tree id that the manifest has ever had.
    pub(crate) fn last_tree(&self) -> u32 {
        self.ids.tree
    }

    /// Applies the edits of a record, up to the first that cannot be applied.
    ///
    /// # Errors
    /// `Corruption` if the record cannot be decoded, or an edit contradicts earlier ones;
    /// `Unsupported` if a tree has an option of a newer build.
    pub(crate) fn apply_all(&mut self, record: &[u8]) -> Result<()> {
        let mut input = Reader::new(record);
        while !input.is_empty() {
            let edit = decode_edit(&mut input).map_err(|fault| match fault {
                EditFault::Malformed => {
                    damaged("a record passes its checksum but cannot be decoded".into())
                }
                EditFault::UnknownOption(name) => Error::new(
                    ErrorKind::Unsupported,
                    format!("a tree has the option {name}, which this build does not know: use a newer FronDB"),
                ),
            });
            self.apply(edit?)?;
        }
        Ok(())
    }

    /// Applies one edit.
    ///
    /// # Errors
    /// `Corruption` if the edit contradicts earlier ones.
    pub(crate) fn apply(&mut self, edit: Edit) -> Result<()> {
        match edit {
            Edit::CreateTree { tree, name, options, root } => {
                self.ids.tree = self.ids.tree.max(tree.get());
                self.ids.node = self.ids.node.max(root.get());
                let leaf = NodeImage {
                    id: root,
                    lo: Key::from([]),
                    hi: None,
                    runs: Vec::new(),
                    range_deletes: Vec::new(),
                    body: BodyImage::Leaf(Vec::new()),
                };
                let state = TreeState {
                    name,
                    options,
                    root,
                    flushed: SeqNo::MIN,
                    nodes: HashMap::from([(root, leaf)]),
                    runs: HashMap::new(),
                    values: HashMap::new(),
                };
                if self.trees.insert(tree, state).is_some() {
                    return Err(damaged(format!("tree {tree} is created twice")));
                }
            }
            Edit::RenameTree { tree, name } => self.tree(tree)?.name = name,
            Edit::SetOptions { tree, options } => {
                let state = self.tree(tree)?;
                state
                    .options
                    .check_change(&options)
                    .map_err(|error| damaged(error.message().to_owned()))?;
                state.options = options;
            }
            Edit::CreatedBy { tree, txn } => {
                self.ids.txn = self.ids.txn.max(txn);
                self.tree(tree)?;
                self.pending.created_by.insert(tree, txn);
            }
            Edit::DropTree { tree } => {
                self.tree(tree)?;
                self.trees.remove(&tree);
                self.pending.drop_tree(tree);
            }
            Edit::AddRun(meta) => {
                self.ids.run = self.ids.run.max(meta.id.get());
                self.seq = self.seq.max(meta.max_seq);
                let id = meta.id;
                if self.tree(meta.tree)?.runs.insert(id, meta).is_some() {
                    return Err(damaged(format!("run {id} is added twice")));
                }
            }
            Edit::DropRun { tree, run } => {
                if self.tree(tree)?.runs.remove(&run).is_none() {
                    return Err(damaged(format!("run {run} is dropped but was never added")));
                }
            }
            Edit::PutNode { tree, node } => {
                self.ids.node = self.ids.node.max(node.id.get());
                self.tree(tree)?.nodes.insert(node.id, node);
            }
            Edit::DropNode { tree, node } => {
                self.tree(tree)?.nodes.remove(&node);
            }
            Edit::SetRoot { tree, root } => self.tree(tree)?.root = root,
            Edit::Flushed { tree, seq } => {
                self.seq = self.seq.max(seq);
                let state = self.tree(tree)?;
                state.flushed = state.flushed.max(seq);
            }
            Edit::AddValue { tree, extents } => {
                let Some(first) = extents.first().copied() else { return Ok(()) };
                self.tree(tree)?.values.insert(first, extents);
            }
            Edit::DropValue { tree, first } => {
                self.tree(tree)?.values.remove(&first);
            }
            Edit::Log { start, durable } => {
                self.log_start = self.log_start.max(start);
                self.log_durable = self.log_durable.max(durable);
            }
            // The part may belong to a dropped tree. Recovery then drops the part.
            Edit::Pending(part) => {
                let last = part.runs.iter().map(|run| run.id.get()).max();
                self.ids.run = self.ids.run.max(last.unwrap_or(0));
                self.ids.txn = self.ids.txn.max(part.txn);
                self.pending.add_part(part);
            }
            Edit::EndPending { txn, part, .. } => self.pending.end_part(txn, part),
            Edit::Prepared { txn, xid, logged, parts } => {
                if self.pending.parts_of(txn).all(|part| part.part >= parts) {
                    return Err(damaged(format!("prepared transaction {txn} has no parts")));
                }
                self.pending.add_prepared(txn, PreparedInManifest { xid, logged, parts });
            }
            Edit::EndPrepared { txn, logged } => {
                self.ids.txn = self.ids.txn.max(txn);
                self.pending.end_prepared(txn, logged);
            }
            Edit::Ids { tree, run, node, seq } => {
                self.ids.tree = self.ids.tree.max(tree.get());
                self.ids.run = self.ids.run.max(run.get());
                self.ids.node = self.ids.node.max(node.get());
                self.seq = self.seq.max(seq);
            }
        }
        Ok(())
    }

    fn tree(&mut self, id: TreeId) -> Result<&mut TreeState> {
        self.trees
            .get_mut(&id)
            .ok_or_else(|| damaged(format!("an edit names tree {id}, which does not exist")))
    }
}

#[cfg(test)]
#[path = "manifest_state_tests.rs"]
mod tests;
