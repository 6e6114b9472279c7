//! Backups of a database, with and without a concurrent writer.
//!
//! ```text
//!  load -> settle -> files read with direct I/O | a backup without a writer   in turn, three times
//!                 -> a writer beside a backup   | the writer alone            in turn, three times
//!                 -> random updates -> an incremental backup
//! ```
//!
//! A ratio of the first two lines is the median of three turns. The backups lie on the disk of the
//! database, so reads and writes share its bandwidth.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use frondb::{BackupOptions, BackupReport, Batch, Db};
use frondb_core::mem::Buf;
use frondb_core::prng::Prng;
use frondb_device::{Device as _, OpenOptions, PosixDevice};

use super::Spec;
use super::txn::{BATCH_ROWS, Rows, Store, key};
use crate::driver::Progress;
use crate::engines::frondb::FRONDB;
use crate::error::{Error, Result};
use crate::measure::process;
use crate::report::{Figure, Measurement, median_of};

/// Rows if their number is not given.
pub(crate) const ROWS: u64 = 20_000_000;
const VALUE_BYTES: usize = 100;
/// How often each comparison is repeated.
const TURNS: usize = 3;
/// Bytes of one read request.
const READ_BYTES: usize = 1 << 20;
/// One row in this many is changed before the incremental backup.
const CHANGED_PART: u64 = 20;

pub(super) fn run(spec: &Spec, progress: &Progress) -> Result<Measurement> {
    let rows = spec.rows.next_multiple_of(BATCH_ROWS);
    let store = Store::create(spec, "db")?;
    progress.say("loading");
    let mut source = Rows::new(spec.seed, VALUE_BYTES, VALUE_BYTES);
    store.load(&mut source, rows)?;
    store.db.flush().map_err(Error::engine)?;
    store.settle()?;
    let bench = Backups { store: &store, dir: spec.dir.join("backups"), progress };
    let mut figures = Vec::new();
    bench.quiet(&spec.dir.join("db"), &mut figures)?;
    bench.beside_a_writer(&mut source, &mut figures)?;
    bench.incremental(spec.seed, rows, &mut figures)?;
    store.remove()?;
    Ok(Measurement {
        engine: FRONDB.name.to_owned(),
        workload: spec.workload.name().to_owned(),
        settings: (FRONDB.describe)(&spec.engine_options()),
        rows: Some(rows),
        rss_peak_bytes: Some(process::resident_peak_bytes()?),
        figures,
        ..Measurement::default()
    })
}

struct Backups<'a> {
    store: &'a Store,
    /// The directory of the backups. It holds one backup at a time, except for the incremental
    /// case.
    dir: PathBuf,
    progress: &'a Progress,
}

impl Backups<'_> {
    /// Compares a backup with reading the data files, without a writer.
    fn quiet(&self, database: &Path, figures: &mut Vec<Figure>) -> Result<()> {
        let (mut rates, mut reads, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for turn in 0..TURNS {
            self.progress.say(&format!("backup alone, turn {} of {TURNS}", turn + 1));
            let read = read_files(database)?;
            let (report, spent) = backup(&self.store.db, &self.dir, None)?;
            self.clear()?;
            let rate = report.database_bytes as f64 / spent.as_secs_f64();
            rates.push(rate);
            reads.push(read);
            ratios.push(rate / read);
        }
        let megabytes = |rates| median_of(rates) / 1e6;
        figures.push(Figure::plain("files read with direct I/O", megabytes(reads), "MB/s"));
        figures.push(Figure::plain("backup", megabytes(rates), "MB/s"));
        let ratio = median_of(ratios);
        figures.push(Figure::plain("backup to reading the files", ratio, "x").at_least(0.6, 0.9));
        Ok(())
    }

    /// Compares a writer at full speed beside a backup with the writer alone.
    fn beside_a_writer(&self, source: &mut Rows, figures: &mut Vec<Figure>) -> Result<()> {
        let (mut ratios, mut alone_worst, mut worst) = (Vec::new(), Vec::new(), Vec::new());
        for turn in 0..TURNS {
            self.progress.say(&format!("a writer beside a backup, turn {} of {TURNS}", turn + 1));
            let stop = AtomicBool::new(false);
            let (made, beside) = thread::scope(|threads| {
                let writer = threads.spawn(|| self.write_until(source, &stop));
                let made = backup(&self.store.db, &self.dir, None);
                stop.store(true, Ordering::Relaxed);
                (made, writer.join())
            });
            let (_, spent) = made?;
            let beside = beside.map_err(|_| Error::Wrong("the writer panicked".to_owned()))??;
            self.clear()?;
            let alone = self.write_for(source, spent)?;
            ratios.push(beside.rate / alone.rate);
            worst.push(beside.worst.as_secs_f64() * 1e3);
            alone_worst.push(alone.worst.as_secs_f64() * 1e3);
        }
        let ratio = median_of(ratios);
        figures.push(Figure::plain("writer beside to alone", ratio, "x").at_least(0.7, 0.9));
        let worst = Figure::plain("longest commit beside", median_of(worst), "ms");
        figures.push(worst.at_most(100.0, Some(10.0)));
        figures.push(Figure::plain("longest commit alone", median_of(alone_worst), "ms"));
        Ok(())
    }

    /// Compares the size of an incremental backup, after changes of random rows, with the full
    /// backup.
    fn incremental(&self, seed: u64, rows: u64, figures: &mut Vec<Figure>) -> Result<()> {
        self.progress.say("incremental backup");
        self.store.settle()?;
        let full = self.dir.join("full");
        let (report, _) = backup(&self.store.db, &full, None)?;
        let (mut prng, mut batch) = (Prng::new(seed ^ 0x0BAC), Batch::new());
        let mut values = Rows::new(prng.next_u64(), VALUE_BYTES, VALUE_BYTES);
        for _ in 0..(rows / CHANGED_PART / BATCH_ROWS).max(1) {
            batch.clear();
            for _ in 0..BATCH_ROWS {
                batch.put(&self.store.tree, &key(seed, prng.below(rows)), values.value());
            }
            self.store.write(&batch)?;
        }
        let (changed, _) = backup(&self.store.db, &self.dir.join("changed"), Some(&full))?;
        let part = changed.bytes as f64 / report.bytes as f64;
        figures.push(Figure::plain("full backup", report.bytes as f64 / 1e6, "MB"));
        let part = Figure::plain("incremental after 5 % of rows to full", part, "x");
        figures.push(part.at_most(0.25, Some(0.12)));
        self.clear()
    }

    fn write_for(&self, source: &mut Rows, time: Duration) -> Result<Writes> {
        let start = Instant::now();
        self.write_while(source, &mut || start.elapsed() < time)
    }

    fn write_until(&self, source: &mut Rows, stop: &AtomicBool) -> Result<Writes> {
        self.write_while(source, &mut || !stop.load(Ordering::Relaxed))
    }

    /// Writes new rows in batches, at least one, while `goes_on` returns `true`.
    fn write_while(&self, source: &mut Rows, goes_on: &mut dyn FnMut() -> bool) -> Result<Writes> {
        let (start, mut rows, mut worst) = (Instant::now(), 0, Duration::ZERO);
        while rows == 0 || goes_on() {
            let begin = Instant::now();
            self.store.load(source, BATCH_ROWS)?;
            worst = worst.max(begin.elapsed());
            rows += BATCH_ROWS;
        }
        Ok(Writes { rate: rows as f64 / start.elapsed().as_secs_f64().max(1e-9), worst })
    }

    fn clear(&self) -> Result<()> {
        let doing = || format!("remove {}", self.dir.display());
        fs::remove_dir_all(&self.dir).map_err(Error::io(doing()))
    }
}

/// The results of a writer.
struct Writes {
    /// Rows a second.
    rate: f64,
    /// Longest time of a batch.
    worst: Duration,
}

/// Makes a backup, incremental to `since` if that is given. Returns its report and how long it
/// took.
fn backup(db: &Db, to: &Path, since: Option<&Path>) -> Result<(BackupReport, Duration)> {
    let mut options = BackupOptions::new();
    if let Some(since) = since {
        options = options.since(since);
    }
    let start = Instant::now();
    let report = db.backup(to, &options, &mut |_, _| true).map_err(Error::engine)?;
    Ok((report, start.elapsed()))
}

/// Reads the data files in a directory with direct I/O, so not from the page cache. Returns bytes a
/// second.
fn read_files(dir: &Path) -> Result<f64> {
    let device = PosixDevice::open(dir).map_err(Error::engine)?;
    let mut buf = Buf::zeroed(READ_BYTES);
    let (start, mut bytes) = (Instant::now(), 0);
    for name in device.list("").map_err(Error::engine)? {
        if !name.ends_with(".fdb") {
            continue;
        }
        let file = device.open(&name, OpenOptions::READ.direct(true)).map_err(Error::engine)?;
        let mut bytes_of_file = 0;
        loop {
            // A file may get shorter while it is read, because the database returns space.
            match file.read_at(bytes_of_file, &mut buf).map_err(Error::engine)? as u64 {
                0 => break,
                read => bytes_of_file += read,
            }
        }
        bytes += bytes_of_file;
    }
    Ok(bytes as f64 / start.elapsed().as_secs_f64().max(1e-9))
}
