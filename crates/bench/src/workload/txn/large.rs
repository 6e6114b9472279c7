//! One transaction of all rows compared with the same rows in batches of 1,000, each into an empty
//! database.

use std::time::{Duration, Instant};

use frondb::Durability;

use super::bulk;
use super::parts::Parts;
use super::rows::{Rows, VALUE_BYTES};
use super::store::Store;
use crate::error::{Error, Result};
use crate::measure::process;
use crate::report::{Figure, count};

/// The costs of writing the rows.
struct Loaded {
    /// Time until the last row was acknowledged.
    elapsed: Duration,
    settling: Duration,
    /// User and system time up to the settled state.
    cpu: Duration,
    /// Duration of the commit call.
    commit: Duration,
    /// Peak memory above the memory of the empty database, bytes.
    grown_bytes: u64,
}

pub(super) fn run(parts: &mut Parts<'_>) -> Result<()> {
    let rows = parts.spec.rows;
    parts.progress.say(&format!("one transaction of {} rows", count(rows as f64)));
    let large = measure(parts, "large", &transaction)?;
    parts.progress.say("the same rows in batches");
    let batches = measure(parts, "batches", &|store, values, rows| {
        store.load(values, rows).map(|()| Duration::ZERO)
    })?;
    let per_s = |time: Duration| rows as f64 / time.as_secs_f64().max(1e-9);
    let settled = |loaded: &Loaded| per_s(loaded.elapsed + loaded.settling);
    let (with, without) = (per_s(large.elapsed), per_s(batches.elapsed));
    let ratio = Figure::plain("large transaction to batches, rows/s", with / without, "x");
    parts.add(ratio.at_least(0.7, 1.2));
    let call = Figure::plain("large transaction, commit call", large.commit.as_secs_f64(), "s");
    parts.add(call.at_most(2.0, Some(0.2)));
    let memory = large.grown_bytes as f64 / parts.spec.memory_bytes as f64;
    let memory = Figure::plain("large transaction, peak memory to MEMORY", memory, "x");
    parts.add(memory.at_most(1.15, None));
    let settled_ratio = settled(&large) / settled(&batches);
    parts.add(Figure::plain("large transaction to batches, settled", settled_ratio, "x"));
    for (name, loaded) in [("large transaction", &large), ("batches of 1,000", &batches)] {
        let cpu = cpu_us(loaded, rows);
        parts.add(Figure::plain(name, per_s(loaded.elapsed), "rows/s"));
        parts.add(Figure::plain(format!("{name}, settled"), settled(loaded), "rows/s"));
        parts.add(Figure::plain(format!("{name}, CPU"), cpu, "us/row"));
    }
    bulk::run(parts, cpu_us(&batches, rows))
}

/// Returns the microseconds of processor time a row. Counts at least 1 us in total: the clock may
/// not tick during a load of few rows.
fn cpu_us(loaded: &Loaded, rows: u64) -> f64 {
    (loaded.cpu.as_secs_f64() * 1e6).max(1.0) / rows.max(1) as f64
}

/// Writes rows. Returns the time of the commit call; zero without such a call.
type Load<'a> = &'a dyn Fn(&Store, &mut Rows, u64) -> Result<Duration>;

fn measure(parts: &Parts<'_>, name: &str, load: Load<'_>) -> Result<Loaded> {
    let (seed, rows) = (parts.spec.seed, parts.spec.rows);
    let store = Store::create(parts.spec, name)?;
    let empty_bytes = process::resident_bytes()?;
    let cpu_before = process::cpu_time()?;
    let mut values = Rows::new(seed, VALUE_BYTES.0, VALUE_BYTES.1);
    let start = Instant::now();
    let commit = load(&store, &mut values, rows)?;
    let elapsed = start.elapsed();
    let settling = store.settle()?;
    let cpu = process::cpu_time()? - cpu_before;
    let grown_bytes = process::resident_peak_bytes()?.saturating_sub(empty_bytes);
    store.check(seed, rows)?;
    store.remove()?;
    Ok(Loaded { elapsed, settling, cpu, commit, grown_bytes })
}

fn transaction(store: &Store, values: &mut Rows, rows: u64) -> Result<Duration> {
    let transaction = store.begin(Durability::NoSync)?;
    for _ in 0..rows {
        let (key, value) = values.next();
        transaction.put(&store.tree, &key, value).map_err(Error::engine)?;
    }
    let start = Instant::now();
    transaction.commit().map_err(Error::engine)?;
    Ok(start.elapsed())
}
