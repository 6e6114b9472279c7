//! The extents that are in use at the moment of a backup, as recovery would find them.

use std::collections::{BTreeMap, BTreeSet};

use frondb_core::checksum::xxh3;
use frondb_core::clock::SharedClock;
use frondb_core::sync::Arc;
use frondb_core::{Error, Lsn, Result};
use frondb_device::SharedDevice;
use frondb_space::Extent;
use frondb_wal::{Wal, WalOptions};

use super::list::RunName;
use crate::open::manifest_state::ManifestState;
use crate::open::survey::Survey;

/// The extents that a backup needs, by owner.
#[derive(Default)]
pub(super) struct Named {
    /// Runs, by their first extent.
    pub(super) runs: BTreeMap<Extent, NamedRun>,
    /// Extents of large values, and of runs that are not in a tree yet.
    pub(super) others: BTreeSet<Extent>,
}

/// A run of a tree.
pub(super) struct NamedRun {
    pub(super) name: RunName,
    /// The run's extents, in order.
    pub(super) extents: Vec<Extent>,
    /// Bytes of the run's frames, from the beginning of the first extent on.
    pub(super) frames_bytes: u64,
}

impl Named {
    pub(super) fn extents(&self) -> impl Iterator<Item = Extent> {
        let of_runs = self.runs.values().flat_map(|run| run.extents.iter());
        of_runs.chain(&self.others).copied()
    }
}

/// Returns the extents that the manifest's state and the log name. Reads the log from the backup's
/// copy, `log`, and so also checks that the copy is complete: it must reach `end`.
///
/// # Errors
/// `Corruption` if the copy is damaged, ends before `end` or contradicts the manifest; `Io`.
pub(super) fn named_extents(
    manifest: &[u8],
    log: &SharedDevice,
    options: WalOptions,
    db_id: u128,
    end: Lsn,
    clock: SharedClock,
) -> Result<Named> {
    let mut state = ManifestState::default();
    state.apply_all(manifest)?;
    let (start, durable) = (state.log_start, state.log_durable);
    let mut replay = Wal::open(Arc::clone(log), options, db_id, start, durable, clock)?;
    let mut survey = Survey::new(&mut state);
    let mut read_to = start;
    while let Some(record) = replay.next_record()? {
        read_to = record.end;
        survey.take(record.start, record.end, record.payload)?;
    }
    if read_to < end {
        let message = format!("the copy of the log ends at lsn {read_to}, not at {end}");
        return Err(Error::corruption(log.describe(), 0, "backup", message));
    }
    let surveyed = survey.finish(&mut None)?;
    let mut named = Named::default();
    named.others.extend(surveyed.extents());
    for tree in state.trees.values() {
        named.others.extend(tree.values.values().flatten());
        for run in tree.runs.values() {
            let mut meta = Vec::new();
            run.encode(&mut meta);
            let run = NamedRun {
                name: RunName { id: run.id, meta: xxh3(&meta) },
                extents: run.extents.clone(),
                frames_bytes: run.disk_bytes(),
            };
            if let Some(first) = run.extents.first() {
                named.runs.insert(*first, run);
            }
        }
    }
    for run in named.runs.values() {
        run.extents.iter().for_each(|extent| {
            named.others.remove(extent);
        });
    }
    Ok(named)
}
