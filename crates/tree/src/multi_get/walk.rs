//! [`Walk`]: the position of one key's lookup in the sources of a version. The lookup pauses
//! where a block has to be read.
//!
//! ```text
//!   memtable -> its attached runs -> next memtable -> ... -> runs of the root -> ... -> base
//!                        '- a block is missing: pause; with the block: continue in this run
//! ```
//!
//! A walk visits the same sources in the same order as a single get ([`get`](crate::get)).

use frondb_core::{Result, SeqNo};
use frondb_merge::Lookup;
use frondb_run::{AfterBlock, CachedGet, MissingBlock, ReadBlock, Run};
use frondb_trunk::{Asked, LookupPath, Trunk};

use crate::source::MemSource;

/// The sources of a version and the snapshot, which all walks share.
pub(super) struct Sources<'v> {
    /// Memtables and attached runs, newest first.
    pub(super) above: Vec<&'v MemSource>,
    pub(super) trunk: &'v Trunk,
    pub(super) seq: SeqNo,
}

/// The walk of a key.
pub(super) struct Walk<'v, 'k> {
    pub(super) key: &'k [u8],
    pub(super) lookup: Lookup,
    place: Place<'v>,
    /// The run that the walk is in.
    run: Option<&'v Run>,
    /// The block of the run in which the walk continues; `None` before its first block.
    block: Option<usize>,
}

/// Where a walk searches for its next run.
enum Place<'v> {
    /// In source number `source` above the trunk, of which the walk has taken `runs` runs.
    Above {
        source: usize,
        runs: usize,
    },
    Trunk(LookupPath<'v>),
}

impl<'v, 'k> Walk<'v, 'k> {
    /// Creates a walk before its first source. `lookup` may already have newer messages.
    pub(super) fn new(key: &'k [u8], lookup: Lookup) -> Self {
        let place = Place::Above { source: 0, runs: 0 };
        Self { key, lookup, place, run: None, block: None }
    }

    /// Returns the leaf that the walk is in, and its cost there; `None` above the leaves.
    pub(super) fn asked(&self) -> Option<Asked<'v>> {
        match &self.place {
            Place::Trunk(path) => path.asked(),
            Place::Above { .. } => None,
        }
    }

    /// Walks until the value of the key is decided (`None`) or a block is missing.
    pub(super) fn advance(
        &mut self,
        sources: &Sources<'v>,
    ) -> Result<Option<(&'v Run, MissingBlock)>> {
        while self.lookup.wants_more() {
            let Some(run) = self.run.or_else(|| self.next_run(sources)) else { return Ok(None) };
            let (lookup, key, seq) = (&mut self.lookup, self.key, sources.seq);
            let mut visit = |seq, kind, value: &[u8]| Ok(lookup.feed(seq, kind, value));
            let found = match self.block {
                None => run.get_cached(key, seq, &mut visit)?,
                Some(block) => run.get_cached_from(block, key, seq, &mut visit)?,
            };
            match found {
                CachedGet::Ended(_) => (self.run, self.block) = (None, None),
                CachedGet::Missing(block) => {
                    self.run = Some(run);
                    return Ok(Some((run, block)));
                }
            }
        }
        Ok(None)
    }

    /// Feeds the messages of the key in `read`, the block that was missing, to the lookup.
    pub(super) fn take(
        &mut self,
        missing: &MissingBlock,
        read: &ReadBlock,
        seq: SeqNo,
    ) -> Result<()> {
        let Some(run) = self.run else { return Ok(()) };
        let (lookup, key) = (&mut self.lookup, self.key);
        let mut visit = |seq, kind, value: &[u8]| Ok(lookup.feed(seq, kind, value));
        match run.get_from_read(missing, read, key, seq, &mut visit)? {
            AfterBlock::Ended(_) => (self.run, self.block) = (None, None),
            AfterBlock::Continues(number) => self.block = Some(number),
        }
        Ok(())
    }

    /// Returns the next older run. First feeds the messages of newer memtables, and range deletes,
    /// to the lookup; `None` if these decide the value, or if there is no further run.
    fn next_run(&mut self, sources: &Sources<'v>) -> Option<&'v Run> {
        let (lookup, key, seq) = (&mut self.lookup, self.key, sources.seq);
        loop {
            match &mut self.place {
                Place::Trunk(path) => return path.next_run(key, seq, lookup).map(|run| &**run),
                Place::Above { source, runs } => {
                    let Some(above) = sources.above.get(*source) else {
                        self.place = Place::Trunk(sources.trunk.lookup_path());
                        continue;
                    };
                    if *runs == 0 && !above.is_empty() {
                        let memtable = &above.memtable;
                        lookup.hide_below(memtable.newest_range_delete(key, seq));
                        memtable
                            .get(key, seq, &mut |seq, kind, value| lookup.feed(seq, kind, value));
                        if !lookup.wants_more() {
                            return None;
                        }
                    }
                    if let Some(run) = above.runs().get(*runs) {
                        *runs += 1;
                        return Some(run);
                    }
                    (*source, *runs) = (*source + 1, 0);
                }
            }
        }
    }
}
