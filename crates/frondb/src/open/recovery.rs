//! Opening: the manifest's snapshot and edits, then the log.
//!
//! 0. Check that the directory has a database or may become one ([`exists`]), before any change.
//! 1. Lock the directory.
//! 2. Read the manifest and apply its edits to an empty [`ManifestState`]. Check that the log's
//!    directory belongs to this database ([`frondb_wal::owner`]), and lock it.
//! 3. Read the needed part of the log a first time ([`crate::open::survey`]). The replay of the
//!    first message needs the results: the end of the log, the pending runs that the log commits,
//!    and the extents of its large values.
//! 4. Open the space with the extents of runs and of large values as used. All other extents are
//!    free, also the extents of pending runs whose transaction was neither committed nor prepared.
//! 5. Build the trunks and publish each tree's first version.
//! 6. Read the log a second time into memtables ([`crate::open::replay`]), skipping messages that
//!    are in runs already (up to each tree's flushed SeqNo). Attach the pending runs that the log
//!    commits, in the order of the log. When the memtables fill the write buffer, replay flushes
//!    some, so the memory does not grow with the log.

use std::collections::HashMap;
use std::time::Duration;

use frondb_background::stow;
use frondb_cache::{Cache, CacheOptions};
use frondb_commit::WearMeter;
use frondb_core::budget::{Budget, Part};
use frondb_core::clock::{Nanos, SharedClock, unix_millis};
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::wear::{WriteCause, WriteCounters};
use frondb_core::{Error, ErrorKind, Result, RunId, TreeId};
use frondb_device::{CountedDevice, DeviceLock, SharedDevice};
use frondb_manifest::{Manifest, ManifestOptions, NoteSource};
use frondb_run::{Run, RunEnv};
use frondb_space::{Extent, Space, SpaceOptions};
use frondb_tree::InstallState;
use frondb_trunk::restore;
use frondb_wal::{Wal, owner};

use crate::directory::not_empty;
use crate::open::damage::{Damage, tolerate};
use crate::open::layout::{LOCK_FILE, LOG_DIR};
use crate::open::manifest_state::{ManifestState, TreeState, damaged};
use crate::open::parts::{LogAndManifest, Parts};
use crate::open::process_memory::{ProcessMemory, UnchargedMemory};
use crate::open::replay::Replay;
use crate::open::survey::Survey;
use crate::options::Options;

/// The results of the recovery at an open, for log messages and tools.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Recovery {
    /// Whether the open created a new database.
    pub created: bool,
    /// Log records replayed.
    pub records: u64,
    /// Bytes of the replayed log records, uncompressed and without their headers.
    pub log_bytes: u64,
    /// Messages replayed into memtables.
    pub messages: u64,
    /// Prepared transactions that wait for their commit or rollback.
    pub prepared: u64,
    /// The torn tail that was cut off the log, described in words.
    pub log_tail: Option<String>,
    /// The torn tail that was cut off the manifest, described in words.
    pub manifest_tail: Option<String>,
}

/// The results of opening a directory.
pub(crate) struct Recovered {
    pub(crate) parts: Parts,
    pub(crate) recovery: Recovery,
    pub(crate) memory: ProcessMemory,
    /// The directory of the log.
    pub(crate) log_device: SharedDevice,
    /// The lock of the log's directory.
    pub(crate) lock: DeviceLock,
}

/// Opens or creates the database in `device`. `log_device` is the directory of the log; `None`
/// means the directory `wal` of `device`.
pub(crate) fn open(
    device: SharedDevice,
    log_device: Option<SharedDevice>,
    options: Options,
    clock: SharedClock,
    mut damage: Option<&mut Damage>,
) -> Result<Recovered> {
    let mut recovery = Recovery::default();
    let writes: Arc<WriteCounters> = Arc::default();
    let (manifest, mut state, log_device, lock, note) =
        open_manifest(&device, log_device, &writes, &options, &mut recovery, &mut damage)?;
    let counters = (!options.read_only).then(|| Arc::clone(&writes));
    let wear = WearMeter::new(counters, &note, Arc::clone(&clock), unix_millis() / 1000);
    manifest.set_notes(Arc::clone(&wear) as Arc<dyn NoteSource>)?;
    let budget = Budget::new(options.memory().total());
    let db_id = manifest.db_id();
    // A salvage has already recorded a missing end of the log: do not report it again.
    let (start, durable) = match &damage {
        None => (state.log_start, state.log_durable),
        Some(_) => (state.log_start, state.log_start),
    };
    let mut replay = Wal::open(
        Arc::clone(&log_device),
        options.wal(),
        db_id,
        start,
        durable,
        Arc::clone(&clock),
    )?;
    let mut second_pass = replay.second_pass();
    let mut survey = Survey::new(&mut state);
    let mut end = start;
    while let Some(record) = replay.next_record()? {
        recovery.records += 1;
        recovery.log_bytes += record.payload.len() as u64;
        let taken = survey.take(record.start, record.end, record.payload);
        if tolerate(&mut damage, taken)?.is_none() {
            break;
        }
        end = record.end;
    }
    let (wal, tail) = replay.finish()?;
    recovery.log_tail = tail.map(|tail| tail.to_string());
    let mut surveyed = survey.finish(&mut damage)?;

    let runs = state.trees.values().flat_map(|tree| tree.runs.values());
    let mut used: Vec<Extent> = runs.flat_map(|run| run.extents.iter().copied()).collect();
    used.extend(state.trees.values().flat_map(|tree| tree.values.values().flatten()));
    used.extend(surveyed.extents());
    let space_options = SpaceOptions {
        direct: options.direct_io,
        reserve_bytes: options.reserve_bytes,
        ..SpaceOptions::default()
    };
    if damage.is_some() {
        frondb_space::extend_files(&device, &used)?;
    }
    let space = Space::open_counting(Arc::clone(&device), space_options, used, writes)?;
    let cache = Cache::new(Arc::clone(&budget), CacheOptions::default());
    let runs = RunEnv::new(space, cache, Arc::clone(&budget), Arc::clone(&clock));
    runs.verify_fast_codecs.store(options.verify_fast_codecs, Ordering::Relaxed);
    let uncharged =
        UnchargedMemory::new(budget.reserve(Part::Other, options.memory().allocator_bytes()));
    // From now on, the block allocator may keep as much idle memory as this database's budget
    // allows.
    let memory = ProcessMemory::new(uncharged, options.memory());
    let log_from = start;
    // The survey has removed the pending parts that no transaction can commit; the next snapshot of
    // the manifest removes them from the file.
    let pending = std::mem::take(&mut state.pending);
    state.ids.txn = state.ids.txn.max(surveyed.last_txn);
    let last = state.seq.max(surveyed.last_seq);
    let files = LogAndManifest {
        wal,
        log_from,
        log_known: durable,
        manifest,
        wear,
        pending,
        largest: state.ids,
        last,
    };
    let parts = Parts::new(&options, runs, budget, clock, files);
    publish(&parts, state, &mut damage)?;
    let mut replay = Replay::new(&parts, start, &mut surveyed);
    surveyed.restore_prepared(&parts, &mut damage)?;
    recovery.prepared = parts.prepared.set().len() as u64;
    let mut progress = Progress { reported: parts.reads.now(), records: 0, bytes: 0 };
    while let Some(record) = second_pass.next_record(end)? {
        let taken = replay.take(record.start, record.end, record.payload);
        if tolerate(&mut damage, taken)?.is_none() {
            break;
        }
        progress.report(record.payload.len(), &recovery, parts.reads.now());
    }
    recovery.messages = replay.finish();
    report(&recovery);
    Ok(Recovered { parts, recovery, memory, log_device, lock })
}

/// Time between two progress messages of a long recovery.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// Logs the progress of a long recovery.
struct Progress {
    reported: Nanos,
    records: u64,
    bytes: u64,
}

impl Progress {
    fn report(&mut self, payload_bytes: usize, recovery: &Recovery, now: Nanos) {
        self.records += 1;
        self.bytes += payload_bytes as u64;
        if now.since(self.reported) >= PROGRESS_EVERY {
            self.reported = now;
            let (records, bytes) = (self.records, self.bytes);
            let (of_records, of_bytes) = (recovery.records, recovery.log_bytes);
            tracing::info!(
                "recovery: replayed {records} of {of_records} log records, {bytes} of {of_bytes} bytes"
            );
        }
    }
}

fn report(recovery: &Recovery) {
    if recovery.created {
        // This message explains missing tables if the path is wrong or the disk is not mounted.
        tracing::info!("found no database and created a new one");
    }
    if let Some(tail) = &recovery.log_tail {
        tracing::warn!("cut off the torn tail of the log: {tail}");
    }
    if let Some(tail) = &recovery.manifest_tail {
        tracing::warn!("cut off the torn tail of the manifest: {tail}");
    }
    if recovery.prepared > 0 {
        let waiting = recovery.prepared;
        tracing::info!("{waiting} prepared transactions wait to be committed or rolled back");
    }
    if recovery.records > 0 {
        let Recovery { records, messages, log_bytes, .. } = recovery;
        tracing::info!("replayed {messages} messages from {records} records, {log_bytes} bytes");
    }
}

/// Returns whether `device` has a database. Fails if the options do not allow opening it, or
/// creating one if there is none. Changes nothing.
pub(crate) fn exists(device: &SharedDevice, options: &Options) -> Result<bool> {
    if Manifest::exists(device)? {
        if options.create_new {
            let message = format!("{} already has a database", device.describe());
            return Err(Error::new(ErrorKind::Exists, message));
        }
        return Ok(true);
    }
    if !options.create && !options.create_new {
        let message = format!("there is no FronDB database in {}", device.describe());
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    check_empty(device)?;
    Ok(false)
}

/// Checks that the log directory of a database to be created in `device` is free.
pub(crate) fn check_new_log(device: &SharedDevice, given: Option<&SharedDevice>) -> Result<()> {
    match given {
        Some(log) => owner::check_free(log),
        None if device.exists(LOG_DIR)? => owner::check_free(&device.subdevice(LOG_DIR)?),
        None => Ok(()),
    }
}

fn make_manifest(
    device: &SharedDevice,
    log_device: Option<SharedDevice>,
    writes: &Arc<WriteCounters>,
) -> Result<(Manifest, SharedDevice, DeviceLock)> {
    let log_device = match log_device {
        Some(log_device) => log_device,
        None => {
            let log_device = device.subdevice(LOG_DIR)?;
            device.sync_dir("")?;
            log_device
        }
    };
    let log_device = CountedDevice::shared(log_device, Arc::clone(writes), WriteCause::Log);
    let db_id = new_db_id();
    let lock = owner::claim(&log_device, db_id)?;
    let manifest =
        Manifest::create(manifest_device(device, writes), db_id, ManifestOptions::default(), &[])?;
    owner::complete_claim(&log_device, db_id)?;
    Ok((manifest, log_device, lock))
}

/// Wraps the device of the manifest, so that writes are counted.
fn manifest_device(device: &SharedDevice, writes: &Arc<WriteCounters>) -> SharedDevice {
    CountedDevice::shared(Arc::clone(device), Arc::clone(writes), WriteCause::Manifest)
}

/// The manifest and its state, the log's directory and the lock of this directory, and the note of
/// the superblock.
type OpenManifest = (Manifest, ManifestState, SharedDevice, DeviceLock, Vec<u8>);

fn open_manifest(
    device: &SharedDevice,
    log_device: Option<SharedDevice>,
    writes: &Arc<WriteCounters>,
    options: &Options,
    recovery: &mut Recovery,
    damage: &mut Option<&mut Damage>,
) -> Result<OpenManifest> {
    // Check again: another process may have created a database before this one got the lock.
    if !exists(device, options)? {
        recovery.created = true;
        let (manifest, log_device, lock) = make_manifest(device, log_device, writes)?;
        return Ok((manifest, ManifestState::default(), log_device, lock, Vec::new()));
    }
    let (manifest, recovered) =
        Manifest::open(manifest_device(device, writes), ManifestOptions::default())?;
    recovery.manifest_tail = recovered.torn_tail.map(|tail| tail.to_string());
    for warning in &recovered.warnings {
        tracing::warn!("{warning}");
    }
    let mut state = ManifestState::default();
    for record in std::iter::once(&recovered.snapshot).chain(&recovered.edits) {
        let applied = state.apply_all(record);
        if tolerate(damage, applied)?.is_none() {
            break;
        }
    }
    let log_device = match log_device {
        Some(log_device) => log_device,
        None if device.exists(LOG_DIR)? => device.subdevice(LOG_DIR)?,
        None => {
            let missing = owner::missing(&format!("{}/{LOG_DIR}", device.describe()));
            tolerate(damage, Err::<(), _>(missing))?;
            device.subdevice(LOG_DIR)?
        }
    };
    let log_device = CountedDevice::shared(log_device, Arc::clone(writes), WriteCause::Log);
    let lock = match damage {
        Some(damage) => {
            // Lock first: while another process writes the log, the log looks damaged.
            let lock = owner::lock(&log_device)?;
            let (start, durable) = (state.log_start, state.log_durable);
            damage.add(frondb_wal::salvage(&log_device, manifest.db_id(), start, durable)?);
            owner::complete_claim(&log_device, manifest.db_id())?;
            lock
        }
        None => owner::take(&log_device, manifest.db_id())?,
    };
    Ok((manifest, state, log_device, lock, recovered.note))
}

/// Fails if the directory has other files, so that it does not become a database by accident.
fn check_empty(device: &SharedDevice) -> Result<()> {
    // Accept files that an interrupted creation has left. They never became a database, because the
    // superblock that names a manifest was never written.
    let ours = |name: &String| {
        name == LOCK_FILE
            || name == LOG_DIR
            || name == owner::OWNER_FILE_NEW
            || name == owner::LOCK_FILE
            || name == "SUPER.new"
            || name.starts_with("MANIFEST-")
    };
    let mut names = device.list("")?;
    names.retain(|name| !ours(name));
    match not_empty(&device.describe(), &names) {
        None => Ok(()),
        Some(message) => Err(Error::invalid(format!("there is no FronDB database: {message}"))),
    }
}

pub(crate) fn new_db_id() -> u128 {
    use std::hash::{BuildHasher, Hasher};
    // The keys of the standard library's hashers are random for each process.
    let random = || std::hash::RandomState::new().build_hasher().finish();
    u128::from(random()) << 64 | u128::from(random())
}

/// Builds all trees and adds them to the catalog.
fn publish(parts: &Parts, state: ManifestState, damage: &mut Option<&mut Damage>) -> Result<()> {
    for (id, tree) in state.trees {
        let name = tree.name.clone();
        match (publish_tree(parts, id, tree), &mut *damage) {
            (Err(error), Some(damage)) => damage.trees.push((name, error)),
            (published, _) => published?,
        }
    }
    Ok(())
}

fn publish_tree(parts: &Parts, id: TreeId, tree: TreeState) -> Result<()> {
    {
        let prefix = tree.options.trunk.filter_prefix();
        let mut runs: HashMap<RunId, Arc<Run>> = HashMap::new();
        let mut metas = tree.runs;
        let restored = restore(id, tree.root, &tree.nodes, &mut |run| {
            if let Some(run) = runs.get(&run) {
                return Some(Arc::clone(run));
            }
            let made = Run::new(metas.remove(&run)?, prefix, Arc::clone(&parts.runs));
            runs.insert(run, Arc::clone(&made));
            Some(made)
        })?;
        if let Some(lost) = metas.keys().next() {
            return Err(damaged(format!("tree {:?}: run {lost} is in no node", tree.name)));
        }
        let install = InstallState {
            views: restored.views.into(),
            values: tree.values.into(),
            flushed: tree.flushed,
            ..InstallState::default()
        };
        let restored =
            parts.catalog.restore(id, tree.name, tree.options, restored.trunk, install)?;
        drop(runs);
        // Stow each tree: in a database with very many trees, most are not used before the close.
        stow(&parts.jobs, &restored);
    }
    Ok(())
}
