//! The cases that open a database with a long log. Another process wrote the log, with up to 64
//! times the memory option of the case, and ended without closing the database.
//!
//! ```text
//!  child  runs the case --> grandchild  writes, and ends without closing
//!     `-- opens the database with little memory and reads all of it; its peak is the case's
//! ```

use std::fs;

use frondb::{Batch, Db, Durability, Options, TreeOptions};
use frondb_core::prng::Prng;

use super::super::Spec;
use super::shared::{self, BATCH_ROWS, MIB, RATIO_MAX, key};
use crate::driver::{Progress, run_child};
use crate::engines::frondb::FRONDB;
use crate::error::{Error, Result};
use crate::measure::process;
use crate::report::{Figure, Measurement};

/// How the database is opened.
#[derive(Clone, Copy)]
enum Doing {
    Open,
    ReadOnly,
    Salvage,
}

struct Case {
    name: &'static str,
    memory_mib: u64,
    doing: Doing,
}

const CASES: [Case; 4] = [
    Case { name: "recovery, 16 MiB", memory_mib: 16, doing: Doing::Open },
    Case { name: "recovery, 64 MiB", memory_mib: 64, doing: Doing::Open },
    Case { name: "read-only, 16 MiB", memory_mib: 16, doing: Doing::ReadOnly },
    Case { name: "salvage, 16 MiB", memory_mib: 16, doing: Doing::Salvage },
];

/// The variant that the grandchild runs.
const WRITER: &str = "write a long log";
const WRITER_MIB: u64 = 1024;

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|case| case.name)
}

/// Runs the case of the variant, or the writer; `None` if this file has no such case.
pub(super) fn run(spec: &Spec, progress: &Progress) -> Option<Result<Measurement>> {
    if spec.variant.name == WRITER {
        return Some(write(spec).map(|()| Measurement::default()));
    }
    let case = CASES.iter().find(|case| case.name == spec.variant.name)?;
    Some(measure(spec, case, progress))
}

fn rows(spec: &Spec) -> u64 {
    (spec.rows * 3 / 10).max(BATCH_ROWS) / BATCH_ROWS * BATCH_ROWS
}

fn write(spec: &Spec) -> Result<()> {
    let options = Options::new().create_new(true).memory_bytes(WRITER_MIB << 20);
    let db = Db::open(&spec.dir, options).map_err(Error::engine)?;
    let tree = db.create_tree("t", TreeOptions::new()).map_err(Error::engine)?;
    let (mut prng, mut batch, mut value) = (Prng::new(spec.seed), Batch::new(), [0; 100]);
    for row in 0..rows(spec) {
        prng.fill(&mut value);
        batch.put(&tree, &key(row, spec.seed), &value);
        if batch.len() as u64 == BATCH_ROWS {
            db.write(&batch, Durability::NoSync).map_err(Error::engine)?;
            batch.clear();
        }
    }
    // The database is dropped, not closed, so all rows are in the log only.
    db.sync().map_err(Error::engine)
}

fn measure(spec: &Spec, case: &Case, progress: &Progress) -> Result<Measurement> {
    if let Some(parent) = spec.dir.parent() {
        fs::create_dir_all(parent).map_err(Error::io("create the directory"))?;
    }
    let mut writer = spec.clone();
    WRITER.clone_into(&mut writer.variant.name);
    run_child(&writer)?;
    progress.say("written");
    let empty = process::resident_bytes()?;
    let begun = std::time::Instant::now();
    let mut account = String::new();
    let found = carry_out(spec, case, &mut account)?;
    let seconds = begun.elapsed().as_secs_f64();
    if found != rows(spec) {
        return Err(Error::Wrong(format!("{found} rows of {}", rows(spec))));
    }
    let peak = process::resident_peak_bytes()?.saturating_sub(empty);
    let (mib, option) = (|bytes: u64| bytes as f64 / MIB, case.memory_mib << 20);
    let figure = |what: &str, value: f64, unit: &str| {
        Figure::plain(format!("{}: {what}", case.name), value, unit)
    };
    let ratio = figure("peak / option", peak as f64 / option as f64, "x");
    Ok(Measurement {
        engine: FRONDB.name.to_owned(),
        workload: spec.workload.name().to_owned(),
        variant: case.name.to_owned(),
        rows: Some(rows(spec)),
        rss_empty_bytes: Some(empty),
        rss_peak_bytes: Some(process::resident_peak_bytes()?),
        stats: if spec.stats { account } else { String::new() },
        figures: vec![
            ratio.at_most(RATIO_MAX, None),
            figure("peak above empty", mib(peak), "MiB"),
            figure("opened and read in", seconds, "s"),
        ],
        ..Measurement::default()
    })
}

/// Opens or salvages the database and counts its rows.
fn carry_out(spec: &Spec, case: &Case, account: &mut String) -> Result<u64> {
    let options = Options::new().memory_bytes(case.memory_mib << 20);
    if let Doing::Salvage = case.doing {
        let to = spec.dir.with_extension("salvaged");
        let _ = fs::remove_dir_all(&to);
        let report = Db::salvage(&spec.dir, &to, &options, false, &mut |_, _, _| true)
            .map_err(Error::engine)?;
        fs::remove_dir_all(&to).map_err(Error::io("remove the new database"))?;
        return Ok(report.trees.iter().map(|tree| tree.rows).sum());
    }
    let options = options.read_only(matches!(case.doing, Doing::ReadOnly));
    let db = Db::open(&spec.dir, options).map_err(Error::engine)?;
    let tree = db.open_tree("t").map_err(Error::engine)?;
    let (mut cursor, mut rows) = (tree.cursor().map_err(Error::engine)?, 0);
    while cursor.next().map_err(Error::engine)? {
        rows += 1;
    }
    drop(cursor);
    *account = shared::account(&db);
    db.close().map_err(Error::engine)?;
    Ok(rows)
}
