//! Chooses when the dictionary of a tree is trained, and from which samples.
//!
//! ```text
//!   first packing of a leaf ---- the tree is large enough? -- no --> no dictionary
//!                                       | yes
//!   blocks from all over the tree -> training -> the runs that are packed from now on
//!                                       |
//!   the tree is four times as large --- again; older runs keep the dictionary that they have
//! ```
//!
//! A tree's current dictionary is the dictionary of its newest packed run. So dictionaries are
//! stored only in runs.

use std::collections::BTreeMap;

use frondb_block::{Codec, DICTIONARY_BYTES_MAX, DICTIONARY_BYTES_MIN, Dictionary, SAMPLE_FACTOR};
use frondb_core::budget::Part;
use frondb_core::mem;
use frondb_core::sync::Arc;
use frondb_core::{Result, RunId, TreeId};
use frondb_run::{HeldDictionary, Run, run_block_bytes_max};
use frondb_tree::TreeCore;
use frondb_trunk::job::Packing;
use frondb_trunk::{Trunk, TrunkOptions};

use crate::context::JobContext;

/// A dictionary has at most the bytes of the tree divided by this. At that size, the samples are
/// half of the tree.
const TREE_DIVISOR: u64 = 32;
/// A dictionary also has at most the bytes of a leaf divided by this. Each leaf stores a copy,
/// which is compressed about as well as the leaf's blocks.
const LEAF_DIVISOR: u64 = 64;
/// A dictionary also has at most the bytes of the memory budget divided by this, because the
/// encoder that packs a leaf takes about 20 times the size of the dictionary.
const MEMORY_DIVISOR: u64 = 256;
/// A dictionary is trained again once the tree has grown by this factor.
const GROWTH: u64 = 4;
/// After a failed training, the next attempt is made once the tree has grown by this factor.
const GROWTH_AFTER_FAILURE: u64 = 2;

impl JobContext {
    /// Removes the dictionary of a tree that was dropped.
    pub fn forget(&self, tree: TreeId) {
        self.dictionaries.forget(tree);
    }

    /// Returns how a leaf of a tree with these options is packed in its final form. If the tree's
    /// codec uses a dictionary and training is due, trains one, which takes some seconds. If zstd
    /// fails, the leaf is packed with the existing dictionary, or without one.
    pub(crate) fn final_packing(
        &self,
        tree: &TreeCore,
        trunk: &Trunk,
        options: &TrunkOptions,
    ) -> Packing {
        let Codec::ZstdDictionary(level) = options.base_codec else {
            return Packing::Final(None);
        };
        let current = self.dictionaries.of(tree.id, || tree.was_dropped());
        let mut current = current.lock();
        if current.dictionary.is_none() {
            current.dictionary = newest(trunk);
        }
        let tree_bytes = trunk.root.totals.base_raw_bytes;
        let is_due = tree_bytes >= current.tried.saturating_mul(GROWTH_AFTER_FAILURE)
            && current.dictionary.as_ref().is_none_or(|held| {
                tree_bytes >= held.dictionary().trained_on().saturating_mul(GROWTH)
            });
        let leaf_bytes = tree.plan_context(trunk, self.plan_limits()).leaf_target();
        let size = dictionary_bytes(tree_bytes, leaf_bytes, self.reads.budget.total());
        if is_due && size >= DICTIONARY_BYTES_MIN {
            current.tried = tree_bytes;
            if let Some(trained) = usable(self.train(trunk, size, tree_bytes)) {
                tracing::info!("tree {}: trained {trained:?}", tree.id);
                current.dictionary = Some(self.reads.runs.hold_dictionary(trained));
            }
            mem::trim_heap();
        }
        // A dictionary that was just trained has no block size yet. An older one may lack it too:
        // an earlier release made the dictionary, or an option set the block size at that time.
        if let Some(held) = current.dictionary.as_ref()
            && held.dictionary().block_bytes().is_none()
            && !options.are_blocks_chosen()
            && let Some(suited) = usable(self.with_suited_blocks(trunk, held, level, options))
        {
            current.dictionary = Some(self.reads.runs.hold_dictionary(suited));
            mem::trim_heap();
        }
        Packing::Final(current.dictionary.clone())
    }

    fn train(&self, trunk: &Trunk, size: usize, tree_bytes: u64) -> Result<Option<Dictionary>> {
        let wanted = size * SAMPLE_FACTOR;
        // One half is for the samples, the other half for the trainer's tables.
        let _memory = self.reads.budget.reserve(Part::Work, 2 * wanted as u64);
        Dictionary::train(&samples(trunk, wanted), size, tree_bytes)
    }

    /// Returns the dictionary for the smallest block size that takes at most 2 % more disk space
    /// than the largest one. The largest is the block size of the tree's options, or less if the
    /// memory option is small. `None` if no blocks can be read for the comparison.
    fn with_suited_blocks(
        &self,
        trunk: &Trunk,
        held: &HeldDictionary,
        level: u8,
        options: &TrunkOptions,
    ) -> Result<Option<Dictionary>> {
        let budget = &self.reads.budget;
        let _memory = budget.reserve(Part::Work, PIECES * options.base_block_bytes as u64);
        let most = options.base_block_bytes.min(run_block_bytes_max(budget.total()));
        let pieces = pieces(trunk, most);
        if pieces.is_empty() {
            return Ok(None);
        }
        let charge = |bytes| budget.reserve(Part::Work, bytes);
        let suited = held.dictionary().suited_block_bytes(level, &pieces, most, charge);
        // If the largest size is the best one, take the block size of the tree's options, so that a
        // larger memory option later leads to larger blocks.
        let bytes = if suited < most { suited } else { options.base_block_bytes };
        held.dictionary().for_blocks(bytes).map(Some)
    }
}

/// Returns the dictionary, or `None` after an error of zstd, which must not fail a job on sound
/// data.
fn usable(made: Result<Option<Dictionary>>) -> Option<Dictionary> {
    made.unwrap_or_else(|error| {
        tracing::error!(%error, "a dictionary could not be made; leaves are packed without it");
        None
    })
}

/// Number of pieces of the tree with which block sizes are compared.
const PIECES: u64 = 6;

/// Returns the bytes of the largest useful dictionary, a power of two; 0 if no dictionary is
/// useful.
fn dictionary_bytes(tree_bytes: u64, leaf_bytes: u64, memory_bytes: u64) -> usize {
    let most = (tree_bytes / TREE_DIVISOR).min(leaf_bytes / LEAF_DIVISOR);
    let most = most.min(memory_bytes / MEMORY_DIVISOR).min(DICTIONARY_BYTES_MAX as u64);
    if most == 0 { 0 } else { 1 << most.ilog2() }
}

fn bases(trunk: &Trunk) -> BTreeMap<RunId, &Arc<Run>> {
    let mut runs = BTreeMap::new();
    trunk.for_each(&mut |node| {
        if node.is_leaf() {
            runs.extend(node.base().iter().map(|view| (view.run.meta().id, &view.run)));
        }
    });
    runs
}

/// Returns the dictionary of the newest run that has one. Skips a damaged dictionary; reads of its
/// run and verifications report the damage.
fn newest(trunk: &Trunk) -> Option<Arc<HeldDictionary>> {
    bases(trunk).values().rev().find_map(|run| run.dictionary().ok().flatten())
}

/// Returns about `wanted` bytes of decompressed blocks, from places that are spread evenly over the
/// tree. Skips unreadable blocks, so that their damage does not keep other leaves from being
/// packed; reads and verifications report the damage.
fn samples(trunk: &Trunk, wanted: usize) -> Vec<u8> {
    let runs = bases(trunk);
    let blocks: u64 = runs.values().map(|run| u64::from(run.meta().blocks)).sum();
    let bytes: u64 = runs.values().map(|run| run.meta().raw_bytes).sum();
    let count = (wanted as u64 / (bytes / blocks.max(1)).max(1)).clamp(1, blocks.max(1));
    let mut places = (0..count).map(|i| (i * blocks + blocks / 2) / count).peekable();
    let (mut samples, mut passed) = (Vec::with_capacity(wanted), 0);
    for run in runs.values() {
        let end = passed + u64::from(run.meta().blocks);
        while let Some(place) = places.next_if(|place| *place < end) {
            if samples.len() >= wanted {
                return samples;
            }
            if let Ok(sample) = run.sample((place - passed) as usize) {
                samples.extend_from_slice(&sample);
            }
        }
        passed = end;
    }
    samples.truncate(wanted);
    samples
}

/// Returns at most [`PIECES`] pieces of about `bytes` bytes of consecutive decompressed blocks,
/// spread evenly over the tree. Skips unreadable blocks, as [`samples`] does.
fn pieces(trunk: &Trunk, bytes: usize) -> Vec<Vec<u8>> {
    let runs = bases(trunk);
    let blocks: u64 = runs.values().map(|run| u64::from(run.meta().blocks)).sum();
    let piece_at = |place: u64| {
        let (mut piece, mut passed) = (Vec::with_capacity(bytes), 0);
        for run in runs.values() {
            let end = passed + u64::from(run.meta().blocks);
            let from = place.saturating_sub(passed);
            for number in (place < end).then(|| from..end - passed).into_iter().flatten() {
                if piece.len() >= bytes {
                    break;
                }
                if let Ok(sample) = run.sample(number as usize) {
                    piece.extend_from_slice(&sample);
                }
            }
            passed = end;
        }
        piece.truncate(bytes);
        piece
    };
    // These places lie between the places of the samples with which the dictionary is trained.
    let pieces = (0..PIECES).map(|i| piece_at((4 * i + 1) * blocks / (4 * PIECES)));
    pieces.filter(|piece| !piece.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dictionary_is_small_beside_the_tree_and_the_memory() {
        let huge = u64::MAX;
        assert_eq!(dictionary_bytes(0, huge, huge), 0);
        assert_eq!(dictionary_bytes(1 << 20, huge, huge), 32 << 10);
        assert_eq!(dictionary_bytes(huge, 8 << 20, huge), 128 << 10);
        assert_eq!(dictionary_bytes(huge, huge, 128 << 20), 512 << 10);
        assert_eq!(dictionary_bytes(huge, huge, 20 << 20), 64 << 10);
        assert_eq!(dictionary_bytes(huge, huge, huge), DICTIONARY_BYTES_MAX);
    }
}
