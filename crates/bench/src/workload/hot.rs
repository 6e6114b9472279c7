//! Measures whether reads get slower while rows are updated. Two trees with the same rows are in
//! memory. The writer updates the same 1 % of the rows of one tree over and over, and writes
//! nothing to the other tree.
//!
//! ```text
//!  load both -> settle -> updates for a tenth of the time -> reads of both trees, in turns
//!                              ^------------- ten times -------------'
//!               the same again, with a snapshot that was taken before
//!               the same again, with random rows: an eightieth of all rows each time, one a commit
//! ```
//!
//! A figure is the time of a read of the updated tree, divided by the time of a read of the other
//! tree. Turns are short, so a slow moment of the machine affects both sides. The writer pauses
//! during the reads, so that their time depends on the state of the tree and not on the number of
//! free processors. Merges may run during the reads.

use std::time::{Duration, Instant};

use frondb::{Batch, Tree};
use frondb_core::prng::Prng;

use super::Spec;
use super::txn::{BATCH_ROWS, Rows, Store, key};
use crate::driver::Progress;
use crate::engines::frondb::FRONDB;
use crate::error::{Error, Result};
use crate::measure::process;
use crate::report::{Figure, Measurement, median_of};

/// Rows of each tree if their number is not given: both trees fit into the default memory.
pub(crate) const ROWS: u64 = 500_000;
/// One row in this many is hot.
const HOT_PART: u64 = 100;
const VALUE_BYTES: usize = 100;
/// How often the updates pause for reads.
const SLICES: usize = 10;
/// Length of all updates of a phase, without or with a snapshot, as a multiple of `reads.points`:
/// ten minutes by default.
const UPDATE_PART: f64 = 40.0;
/// A slice of random updates changes as many rows as the tree has, divided by this number.
const RANDOM_PART: u64 = 80;
/// Length of one kind of read in a slice, as a fraction of `reads.points`.
const READ_PART: f64 = 0.1;
/// Turns of each kind of read in a slice.
const TURNS: usize = 10;
const SCAN_ENTRIES: usize = 100;

/// Returns the rows of each tree: whole batches, and at least one hot row.
fn rows_of(spec: &Spec) -> u64 {
    spec.rows.max(HOT_PART).next_multiple_of(BATCH_ROWS)
}

/// A kind of read.
#[derive(Clone, Copy)]
enum Read {
    HotPoint,
    Point,
    Scan,
}

/// The updates of a slice, before its reads.
#[derive(Clone, Copy)]
enum Updates {
    /// Random hot rows, for this many seconds.
    Hot(f64),
    /// This many random rows, one a commit.
    Random(u64),
}

impl Read {
    const ALL: [Self; 3] = [Self::HotPoint, Self::Point, Self::Scan];

    fn name(self) -> &'static str {
        match self {
            Self::HotPoint => "points of hot rows",
            Self::Point => "points",
            Self::Scan => "scans of 100",
        }
    }
}

pub(super) fn run(spec: &Spec, progress: &Progress) -> Result<Measurement> {
    progress.say("two trees are loaded");
    let (store, still) = load(spec)?;
    let trees = Trees { spec, store: &store, still: &still, rows: rows_of(spec) };
    let mut figures = Vec::new();
    let hot = Updates::Hot(spec.reads.points * UPDATE_PART / SLICES as f64);
    trees.phase("", hot, 1.15, progress, &mut figures)?;
    let held = store.db.snapshot().map_err(Error::engine)?;
    trees.phase(", old snapshot", hot, 2.0, progress, &mut figures)?;
    drop(held);
    let random = Updates::Random(trees.rows / RANDOM_PART);
    trees.phase(", random updates", random, 1.15, progress, &mut figures)?;
    drop(still);
    store.remove()?;
    Ok(Measurement {
        engine: FRONDB.name.to_owned(),
        workload: spec.workload.name().to_owned(),
        settings: (FRONDB.describe)(&spec.engine_options()),
        rows: Some(rows_of(spec)),
        rss_peak_bytes: Some(process::resident_peak_bytes()?),
        figures,
        ..Measurement::default()
    })
}

/// Loads the same rows into the store's tree, which will be updated, and into the other tree.
fn load(spec: &Spec) -> Result<(Store, Tree)> {
    let store = Store::create(spec, "hot")?;
    let options = frondb::TreeOptions::new();
    let still = store.db.create_tree("still", options).map_err(Error::engine)?;
    let mut rows = Rows::new(spec.seed, VALUE_BYTES, VALUE_BYTES);
    let mut batch = Batch::new();
    for _ in 0..rows_of(spec) / BATCH_ROWS {
        batch.clear();
        for _ in 0..BATCH_ROWS {
            let (key, value) = rows.next();
            batch.put(&store.tree, &key, value);
            batch.put(&still, &key, value);
        }
        store.write(&batch)?;
    }
    store.settle()?;
    Ok((store, still))
}

struct Trees<'a> {
    spec: &'a Spec,
    store: &'a Store,
    still: &'a Tree,
    rows: u64,
}

impl Trees<'_> {
    /// Alternates updates and reads, and adds the figures of each kind of read.
    fn phase(
        &self,
        name: &str,
        kind: Updates,
        floor: f64,
        progress: &Progress,
        figures: &mut Vec<Figure>,
    ) -> Result<()> {
        let mut prng = Prng::new(self.spec.seed ^ name.len() as u64);
        let mut ratios = [const { Vec::new() }; Read::ALL.len()];
        let mut updates = Vec::new();
        // These reads fill the caches; they are not measured.
        self.compare(Read::Point, 0)?;
        for slice in 0..SLICES {
            progress.say(&format!("hot rows{name}: updates, part {} of {SLICES}", slice + 1));
            updates.push(match kind {
                Updates::Hot(seconds) => self.update(prng.next_u64(), seconds)?,
                Updates::Random(rows) => self.update_random(prng.next_u64(), rows)?,
            });
            for (read, ratios) in Read::ALL.into_iter().zip(&mut ratios) {
                ratios.push(self.compare(read, slice as u64)?);
            }
        }
        for (read, ratios) in Read::ALL.into_iter().zip(ratios) {
            let last = ratios[SLICES / 2..].to_vec();
            let title = format!("{}{name}, updated tree to other", read.name());
            figures.push(Figure::plain(title, median_of(last), "x").at_most(floor, None));
            let title = format!("{}{name}, slowest part", read.name());
            let slowest = ratios.into_iter().fold(0.0, f64::max);
            figures.push(Figure::plain(title, slowest, "x"));
        }
        figures.push(Figure::plain(format!("updates{name}"), median_of(updates), "1/s"));
        Ok(())
    }

    /// Updates random hot rows for `seconds`. Returns the rows a second.
    fn update(&self, seed: u64, seconds: f64) -> Result<f64> {
        let mut prng = Prng::new(seed);
        let mut values = Rows::new(prng.next_u64(), VALUE_BYTES, VALUE_BYTES);
        let (mut batch, mut rows, start) = (Batch::new(), 0, Instant::now());
        while rows == 0 || start.elapsed().as_secs_f64() < seconds {
            batch.clear();
            for _ in 0..BATCH_ROWS {
                batch.put(&self.store.tree, &self.hot_key(&mut prng), values.value());
            }
            self.store.write(&batch)?;
            rows += BATCH_ROWS;
        }
        Ok(rows as f64 / start.elapsed().as_secs_f64().max(1e-9))
    }

    /// Updates `rows` random rows, one a commit. Returns the rows a second.
    fn update_random(&self, seed: u64, rows: u64) -> Result<f64> {
        let mut prng = Prng::new(seed);
        let mut values = Rows::new(prng.next_u64(), VALUE_BYTES, VALUE_BYTES);
        let (mut batch, start) = (Batch::new(), Instant::now());
        for _ in 0..rows {
            batch.clear();
            batch.put(
                &self.store.tree,
                &key(self.spec.seed, prng.below(self.rows)),
                values.value(),
            );
            self.store.write(&batch)?;
        }
        Ok(rows as f64 / start.elapsed().as_secs_f64().max(1e-9))
    }

    fn hot_key(&self, prng: &mut Prng) -> [u8; 16] {
        key(self.spec.seed, prng.below(self.rows / HOT_PART) * HOT_PART)
    }

    /// Reads both trees in turns. Returns the time of a read of the updated tree, divided by the
    /// time of a read of the other tree.
    fn compare(&self, read: Read, slice: u64) -> Result<f64> {
        let turn = self.spec.reads.points * READ_PART / (2 * TURNS) as f64;
        let mut ratios = Vec::new();
        for number in 0..TURNS as u64 {
            let seed = self.spec.seed ^ (slice << 8) ^ (number + 1);
            let of = |tree: &Tree| self.read(tree, read, Prng::new(seed), turn);
            let (one, other) = if number.is_multiple_of(2) {
                let one = of(&self.store.tree)?;
                (one, of(self.still)?)
            } else {
                let other = of(self.still)?;
                (of(&self.store.tree)?, other)
            };
            ratios.push(one.as_secs_f64() / other.as_secs_f64().max(1e-12));
        }
        Ok(median_of(ratios))
    }

    /// Reads a tree for `seconds`. Returns the mean time of a read.
    fn read(&self, tree: &Tree, read: Read, mut prng: Prng, seconds: f64) -> Result<Duration> {
        let (start, mut reads) = (Instant::now(), 0);
        while reads == 0 || start.elapsed().as_secs_f64() < seconds {
            match read {
                Read::HotPoint => found(tree, &self.hot_key(&mut prng))?,
                Read::Point => found(tree, &key(self.spec.seed, prng.below(self.rows)))?,
                Read::Scan => scan(tree, &key(self.spec.seed, prng.below(self.rows)))?,
            }
            reads += 1;
        }
        Ok(start.elapsed() / reads)
    }
}

fn found(tree: &Tree, key: &[u8]) -> Result<()> {
    match tree.get(key).map_err(Error::engine)? {
        Some(value) if value.len() == VALUE_BYTES => Ok(()),
        _ => Err(Error::Wrong("a row that was written is not found".to_owned())),
    }
}

/// Reads up to [`SCAN_ENTRIES`] entries, beginning at the key `from`.
fn scan(tree: &Tree, from: &[u8]) -> Result<()> {
    let mut cursor = tree.cursor().map_err(Error::engine)?;
    let mut is_there = cursor.seek(from).map_err(Error::engine)?;
    let (mut entries, mut bytes) = (0, 0);
    while is_there && entries < SCAN_ENTRIES {
        bytes += cursor.value().map_err(Error::engine)?.len();
        entries += 1;
        is_there = cursor.next().map_err(Error::engine)?;
    }
    if entries == 0 || bytes != entries * VALUE_BYTES {
        return Err(Error::Wrong(format!("{entries} entries have {bytes} bytes")));
    }
    Ok(())
}
