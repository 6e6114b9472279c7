//! Saves the readable data of a damaged database into a new one.

mod names;

use frondb_tree::AsTree;
use std::path::Path;

use frondb_core::clock::{SharedClock, SystemClock};
use frondb_core::executor::{SharedExecutor, ThreadExecutor};
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::SharedDevice;
pub use frondb_tree::DamagedRange;
use frondb_tree::damaged_ranges;

use crate::db::Db;
use crate::directory::existing;
use crate::open::Open;
use crate::open::damage::Damage;
use crate::open::layout::LOG_DIR;
use crate::options::Options;
use crate::target::{Maker, Target};
use crate::tree::Tree;
use frondb_tree::CursorOptions;
use frondb_txn::BulkOptions;

/// The result of a salvage: what was saved and what was lost.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SalvageReport {
    /// Repaired damage of the manifest and the log, with its places: one byte in a header or in a
    /// record below 4 KiB, or one bit in a record of at most 64 KiB. A repair is accepted if the
    /// record then matches its checksum of 64 bits.
    pub repaired: Vec<Error>,
    /// Places where the manifest or the log was cut because of damage. After a cut, no row is
    /// certain: every tree is in an earlier state, and later changes to rows and trees are missing.
    pub cut: Vec<Error>,
    /// The trees of the damaged database.
    pub trees: Vec<SalvagedTree>,
    /// Names of prepared transactions; their rows are not saved.
    pub prepared: Vec<Vec<u8>>,
}

/// The result of a salvage for one tree.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SalvagedTree {
    /// The tree's name.
    pub name: String,
    /// The tree's name in the new database; `None` if nothing of it was saved.
    pub saved_as: Option<String>,
    /// Rows saved.
    pub rows: u64,
    /// Key ranges that were not saved, ascending and not overlapping. Rows of such a range that
    /// undamaged blocks have are not saved either, because the damaged part may have newer versions
    /// of them.
    pub lost: Vec<DamagedRange>,
}

impl SalvageReport {
    /// Returns whether every row of every tree was saved as it was committed.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.cut.is_empty()
            && self.prepared.is_empty()
            && self.trees.iter().all(|t| t.lost.is_empty())
    }

    /// Returns whether there is a new database. None is created if nothing could be saved.
    #[must_use]
    pub fn is_saved(&self) -> bool {
        self.is_complete() || self.trees.iter().any(|tree| tree.saved_as.is_some())
    }
}

impl Db {
    /// Saves the readable data of the database in `from` into a new database in `to`. The files in
    /// `from` are not changed.
    ///
    /// A row in a tree that keeps its name is certain: it is the version that was committed last.
    /// Key ranges with unreadable blocks are left out entirely. If the manifest or the log had to
    /// be cut because of damage, no row is certain. Trees are then saved only if `uncertain` is
    /// set, under the name `NAME.uncertain`, shortened if it is too long. If nothing is saved,
    /// nothing is created.
    ///
    /// Until the salvage is complete, `to` contains only a directory `unfinished-salvage` and is
    /// not a database. A failed call removes that directory; a killed process leaves it.
    ///
    /// Trees keep their options, and their update function if it is registered.
    ///
    /// `options` apply to both databases, which share the memory; the option for the log directory
    /// applies only to `from`. `progress` receives the tree's name in the new database, the work
    /// done and the total; the salvage stops when `progress` returns `false`.
    ///
    /// # Errors
    /// `Exists` if `to` contains files; `Invalid` if `to` lies inside `from` or the log directory,
    /// or contains one of them, for bad options, or for a log of another database; `NotFound` if
    /// `from` has no database, or the log directory of `options` does not exist; `Busy` if the
    /// database is in use; `Unsupported` if a newer version wrote it; `Corruption` if nothing of it
    /// can be read; `Cancelled`, `NoSpace`, `Io`.
    pub fn salvage(
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        options: &Options,
        uncertain: bool,
        progress: &mut dyn FnMut(&str, u64, u64) -> bool,
    ) -> Result<SalvageReport> {
        let (from, to) = (from.as_ref(), to.as_ref());
        let not_found =
            || Error::new(ErrorKind::NotFound, format!("there is no directory {}", from.display()));
        let modes = options.modes()?;
        let device = existing(from, modes)?.ok_or_else(not_found)?;
        let log = match &options.log_dir {
            None => None,
            Some(dir) => Some(existing(dir, modes)?.ok_or_else(|| {
                let message = format!("there is no log directory {}", dir.display());
                Error::new(ErrorKind::NotFound, message)
            })?),
        };
        let log_dir = options.log_dir.clone().unwrap_or_else(|| from.join(LOG_DIR));
        Target::check(to, modes, Maker::Salvage, &[from.to_owned(), log_dir])?;
        let (clock, executor) = (SystemClock::shared(), ThreadExecutor::shared());
        options.check()?;
        let half = halved(options);
        let source = Damaged::open(device, log, half.clone(), clock, &executor)?;
        let new = half.create_new(true).read_only(false).without_log_dir();
        // Declared before `saved`, and therefore dropped after it: the database closes before its
        // directory is removed.
        let target = Target::make(to, modes, Maker::Salvage)?;
        let saved = Self::open(target.path(), new)?;
        let report = source.save(&saved, uncertain, progress)?;
        saved.close()?;
        drop(saved);
        if report.is_saved() {
            target.finish()?;
        }
        Ok(report)
    }
}

/// Returns the options for each of two databases that share the memory that the process itself does
/// not need. With little memory the databases run without background threads, which need more.
fn halved(options: &Options) -> Options {
    let memory = options.memory().total();
    let each = (memory - memory / 16).saturating_sub(PROCESS_BYTES) / 2;
    let each = each.max(Options::MEMORY_BYTES_MIN_WITHOUT_THREADS);
    let half = options.clone().memory_bytes(each);
    if each < Options::memory_bytes_min() { half.background_threads(0) } else { half }
}

/// Memory of the process that no part of the engine charges, bytes: the program's pages (3 to 4
/// MiB), stacks, contexts of codecs.
const PROCESS_BYTES: u64 = 6 << 20;

/// A damaged database, opened read-only.
#[derive(Debug)]
pub(crate) struct Damaged {
    db: Db,
    damage: Damage,
}

impl Damaged {
    /// Performs the first half of [`Db::salvage`]: opens the readable part of the database.
    ///
    /// # Errors
    /// As `salvage`.
    pub(crate) fn open(
        device: SharedDevice,
        log: Option<SharedDevice>,
        options: Options,
        clock: SharedClock,
        executor: &SharedExecutor,
    ) -> Result<Self> {
        let (open, damage) = Open::salvage(device, log, options, clock, executor)?;
        Ok(Self { db: Db::of(open), damage })
    }

    /// Performs the second half of [`Db::salvage`]: copies the rows to `target`.
    ///
    /// # Errors
    /// As `salvage`.
    pub(crate) fn save(
        self,
        target: &Db,
        uncertain: bool,
        progress: &mut dyn FnMut(&str, u64, u64) -> bool,
    ) -> Result<SalvageReport> {
        let Self { db, damage } = self;
        let mut report = SalvageReport {
            repaired: damage.repaired,
            cut: damage.lost,
            prepared: db.prepared(),
            ..SalvageReport::default()
        };
        for (name, error) in damage.trees {
            let lost = vec![DamagedRange::whole(error)];
            report.trees.push(SalvagedTree { name, saved_as: None, rows: 0, lost });
        }
        let trees = db.trees()?;
        let names: Vec<String> = trees.iter().map(Tree::name).collect();
        let saved_as: Vec<Option<String>> = match (report.cut.is_empty(), uncertain) {
            (true, _) => names.iter().cloned().map(Some).collect(),
            (false, true) => names::uncertain(&names).into_iter().map(Some).collect(),
            (false, false) => vec![None; names.len()],
        };
        for ((tree, name), saved_as) in trees.iter().zip(names).zip(saved_as) {
            let (rows, lost) = match &saved_as {
                Some(new) => save_tree(&db, tree, target, new, progress)?,
                None => (0, vec![DamagedRange::whole(report.cut[0].clone())]),
            };
            report.trees.push(SalvagedTree { name, saved_as, rows, lost });
        }
        report.trees.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(report)
    }
}

/// Saves one tree. Returns the number of saved rows, and the ranges that were lost.
fn save_tree(
    db: &Db,
    tree: &Tree,
    target: &Db,
    new: &str,
    progress: &mut dyn FnMut(&str, u64, u64) -> bool,
) -> Result<(u64, Vec<DamagedRange>)> {
    let mut go_on = true;
    let mut report = |done, total| go_on &= progress(new, done, total);
    let mut damaged = join(damaged_ranges(&db.shared().reads, tree.core(), &mut report)?);
    if !go_on {
        return Err(Error::new(ErrorKind::Cancelled, "the salvage was cancelled"));
    }
    let made = match target.create_tree(new, tree.options()) {
        // The update function is not registered. Rows that need the function are unreadable anyway.
        Err(error) if error.kind() == ErrorKind::Invalid => {
            let mut options = tree.options();
            options.update_fn = None;
            target.create_tree(new, options)?
        }
        made => made?,
    };
    let load = target.bulk_load(BulkOptions::default())?;
    let mut writer = load.writer();
    // Only for the progress report. An estimate that meets damage fails; then the total is 0.
    let total = tree.estimate(b"", None).map_or(0, |estimate| estimate.entries);
    let (mut rows, mut unreadable) = (0, Vec::new());
    for (lo, hi) in between(&damaged) {
        // All keys from `lo` to before `from` were read, or are in `unreadable`.
        let mut from = lo.clone();
        let mut cursor = tree.cursor_with(bounds(&lo, hi.as_deref()))?;
        let mut moved = cursor.next();
        loop {
            let step =
                moved.and_then(|more| if more { cursor.value().map(Some) } else { Ok(None) });
            match step {
                Ok(None) => break,
                Err(error) if error.kind() == ErrorKind::Closed => return Err(error),
                Err(error) => {
                    // The row's update function is missing or fails: skip the row.
                    if let Some(key) = cursor.failed_key().map(<[u8]>::to_vec) {
                        let next = after(key.clone());
                        unreadable.push(DamagedRange::from(key, Some(next.clone()), error));
                        moved = cursor.seek(&next);
                        from = next;
                        continue;
                    }
                    unreadable.push(DamagedRange::from(from, hi, error));
                    break;
                }
                Ok(Some(value)) => {
                    writer.put(&made, cursor.key(), value)?;
                    from = after(cursor.key().to_vec());
                    rows += 1;
                    if rows % 1024 == 0 && !progress(new, rows, total.max(rows)) {
                        return Err(Error::new(ErrorKind::Cancelled, "the salvage was cancelled"));
                    }
                }
            }
            moved = cursor.next();
        }
    }
    writer.finish()?;
    load.finish(&mut |_| true)?;
    damaged.extend(unreadable);
    damaged.sort_by(|a, b| a.lo.cmp(&b.lo));
    Ok((rows, damaged))
}

/// Returns the smallest key above `key`.
fn after(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}

fn bounds(lo: &[u8], hi: Option<&[u8]>) -> CursorOptions {
    match hi {
        Some(hi) => CursorOptions::new().range(lo..hi),
        None => CursorOptions::new().range(lo..),
    }
}

/// Merges ranges that overlap or touch.
fn join(ranges: Vec<DamagedRange>) -> Vec<DamagedRange> {
    let mut joined: Vec<DamagedRange> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.hi.as_ref().is_none_or(|hi| range.lo <= *hi) => {
                let further = last.hi.is_some()
                    && range.hi.as_ref().is_none_or(|hi| Some(hi) > last.hi.as_ref());
                if further {
                    last.hi = range.hi;
                }
            }
            _ => joined.push(range),
        }
    }
    joined
}

/// Returns the key ranges outside of `damaged`. REQUIRES: `damaged` is ascending and does not
/// overlap.
fn between(damaged: &[DamagedRange]) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let (mut ranges, mut from) = (Vec::new(), Some(Vec::new()));
    for range in damaged {
        if let Some(lo) = from
            && lo < range.lo
        {
            ranges.push((lo, Some(range.lo.clone())));
        }
        from = range.hi.clone();
    }
    ranges.extend(from.map(|lo| (lo, None)));
    ranges
}
