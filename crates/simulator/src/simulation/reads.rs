//! Reads of a simulation: compares every answer of the database with the model's answer.

use frondb::{Cursor, CursorOptions, ErrorKind, Result};

use super::Simulation;
use super::report::{add_to_digest, short};
use crate::crash::{DatabaseContents, read_tree};
use crate::model::{Bytes, Contents, ModelCursor, Move, TreeNumber};

impl Simulation {
    /// Returns the content of a tree now or at a snapshot; empty if the snapshot is older than the
    /// tree.
    pub(super) fn contents(&self, tree: TreeNumber, at: Option<u32>) -> Contents {
        match at.and_then(|at| self.snapshots.get(&at)) {
            Some(held) => held.state.get(&tree).cloned().unwrap_or_default(),
            None => self.model.contents(tree),
        }
    }

    pub(super) fn get(&mut self, tree: TreeNumber, keys: &[Bytes], at: Option<u32>) -> Result<()> {
        let contents = self.contents(tree, at);
        let Some(handle) = self.trees.get(&tree) else { return Ok(()) };
        let snapshot = at.and_then(|at| self.snapshots.get(&at)).map(|held| &held.snapshot);
        let wanted: Vec<Option<&[u8]>> =
            keys.iter().map(|key| contents.get(key).map(|value| &**value)).collect();
        let slices: Vec<&[u8]> = keys.iter().map(|key| &**key).collect();
        let many = match snapshot {
            None => handle.multi_get(&slices)?,
            Some(snapshot) => handle.multi_get_at(&slices, snapshot)?,
        };
        for ((key, wanted), many) in slices.iter().zip(&wanted).zip(&many) {
            let (one, exists) = match snapshot {
                None => (handle.get(key)?, handle.exists(key)?),
                Some(snapshot) => (handle.get_at(key, snapshot)?, handle.exists_at(key, snapshot)?),
            };
            assert_eq!(short(one.as_deref()), short(*wanted), "get {:?}", short(Some(key)));
            assert!(one.as_deref() == *wanted, "get: same beginning, different bytes");
            assert_eq!(exists, wanted.is_some(), "exists {:?}", short(Some(key)));
            assert!(many.as_deref() == *wanted, "multi_get {:?}", short(Some(key)));
            self.digest = add_to_digest(self.digest, one.as_deref());
        }
        Ok(())
    }

    pub(super) fn cursor(
        &self,
        tree: TreeNumber,
        lower: &Option<Bytes>,
        upper: &Option<Bytes>,
        at: Option<u32>,
    ) -> Result<Option<(Contents, Cursor)>> {
        let Some(handle) = self.trees.get(&tree) else { return Ok(None) };
        let contents = self.contents(tree, at);
        let mut options = CursorOptions::new();
        options = match (lower.as_deref(), upper.as_deref()) {
            (None, None) => options,
            (Some(lower), None) => options.range(lower..),
            (None, Some(upper)) => options.range(..upper),
            (Some(lower), Some(upper)) => options.range(lower..upper),
        };
        if let Some(held) = at.and_then(|at| self.snapshots.get(&at)) {
            options = options.at(&held.snapshot);
        }
        Ok(Some((contents, handle.cursor_with(options)?)))
    }

    pub(super) fn step(
        &mut self,
        cursor: &mut Cursor,
        model: &mut ModelCursor,
        to: &Move,
    ) -> Result<bool> {
        let wanted = model.go(to);
        let found = match to {
            Move::First => cursor.first()?,
            Move::Last => cursor.last()?,
            Move::Next => cursor.next()?,
            Move::Prev => cursor.prev()?,
            Move::Seek(key) => cursor.seek(key)?,
            Move::SeekForPrev(key) => cursor.seek_for_prev(key)?,
        };
        assert_eq!(found, cursor.is_valid());
        let found = if found { Some((cursor.key().to_vec(), cursor.value()?)) } else { None };
        let at = found.as_ref().map(|(key, _)| &key[..]);
        let wanted_at = wanted.as_ref().map(|(key, _)| &**key);
        assert_eq!(short(at), short(wanted_at), "{to:?}");
        assert!(at == wanted_at, "{to:?}: keys with the same beginning differ");
        let value = found.as_ref().map(|(_, value)| *value);
        let wanted_value = wanted.as_ref().map(|(_, value)| &**value);
        assert_eq!(short(value), short(wanted_value), "{to:?}: value of {:?}", short(at));
        assert!(value == wanted_value, "{to:?}: values with the same beginning differ");
        self.digest = add_to_digest(add_to_digest(self.digest, at), value);
        Ok(wanted.is_some())
    }

    /// Compares all contents in both directions, and verifies the trees.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn check_all(&mut self) -> Result<()> {
        for tree in self.model.catalog.values().copied().collect::<Vec<_>>() {
            for step in [Move::Next, Move::Prev] {
                let Some((contents, mut cursor)) = self.cursor(tree, &None, &None, None)? else {
                    continue;
                };
                let mut model = ModelCursor::new(contents, None, None);
                while self.step(&mut cursor, &mut model, &step)? {}
            }
            if let Some(handle) = self.trees.get(&tree) {
                let stats = handle.stats()?;
                self.coverage.height_max = self.coverage.height_max.max(stats.height);
                handle.estimate(b"k", Some(b"k00300"))?;
            }
        }
        self.check_prepared();
        let report = self.db().verify(&mut |_, _, _| true)?;
        if let Some(error) = report.faults.iter().find(|error| error.kind() == ErrorKind::Io) {
            return Err(error.clone());
        }
        assert!(report.faults.is_empty(), "{:?}", report.faults);
        Ok(())
    }

    /// Reads all trees through the open handles, which even a poisoned database allows.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn read_held(&self) -> Result<DatabaseContents> {
        let mut found = DatabaseContents::new();
        for tree in self.trees.values() {
            match read_tree(tree) {
                Ok(entries) => drop(found.insert(tree.name(), entries)),
                // The tree was dropped, but the drop could not be made durable.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }
}
