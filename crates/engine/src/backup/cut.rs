//! Every extent that a database has at a cut: what recovery would find in use.

use std::collections::BTreeMap;

use frondb_core::checksum::xxh3;
use frondb_core::clock::SharedClock;
use frondb_core::sync::Arc;
use frondb_core::{Error, Lsn, Result};
use frondb_device::SharedDevice;
use frondb_space::Extent;
use frondb_wal::{Wal, WalOptions};

use super::list::RunName;
use crate::manifest_state::ManifestState;
use crate::survey::Survey;

/// Extents in use, with the run to which each belongs; `None` for large values, and for runs that are
/// not in a tree yet.
pub(super) type Named = BTreeMap<Extent, Option<RunName>>;

/// The extents that the manifest's state and the log name. `log` is the copy of the log that the
/// backup has, so that reading it also proves that the copy is whole: it must end at `end`.
///
/// # Errors
/// `Corruption` if the copy is not what the log was; `Io`.
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
    let mut named = Named::new();
    for extent in surveyed.extents() {
        named.insert(extent, None);
    }
    for tree in state.trees.values() {
        named.extend(tree.values.values().flatten().map(|extent| (*extent, None)));
        for run in tree.runs.values() {
            let mut meta = Vec::new();
            run.encode(&mut meta);
            let name = RunName { id: run.id, meta: xxh3(&meta) };
            named.extend(run.extents.iter().map(|extent| (*extent, Some(name))));
        }
    }
    Ok(named)
}
