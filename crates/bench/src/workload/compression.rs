//! Rows of one kind of data in one tree, with one codec. Measures the speed of the load, the size
//! on disk, and reads whose blocks must be decompressed.
//!
//! ```text
//!   load in key order -> settled -> packed -> points -> full scan, whose digest is that of the
//!                                                       generated rows
//! ```

mod limits;
mod pack;
mod toku;

use frondb_core::prng::Prng;

use super::timed::timed;
use super::{Bench, Spec};
use crate::engine::Digest;
use crate::error::{Error, Result};
use crate::rows::{DataKind, Generator};

pub(crate) use limits::limits;
pub use toku::TOKUDB;
pub(super) use toku::sizes;

/// Memory if it is not given. Two kinds of data are loaded with up to ten codecs an engine, so the
/// data must not be large.
pub(crate) const MEMORY_BYTES: u64 = 64 << 20;

/// Raw data as a multiple of the memory, if no number of rows is given.
pub(crate) const DATA_TO_MEMORY: u64 = 8;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let (spec, kind) = (bench.spec, kind(bench.spec));
    let mut generator = Generator::new(kind, spec.seed);
    let mut digest = Digest::default();
    let rows = bench.measured_load(spec.rows, &mut |batch, id| {
        if id == 0 {
            // `measured_load` has generated rows before, to measure the cost of generating them.
            digest = Digest::default();
        }
        let (key, value) = (Generator::key(id), generator.value(id));
        digest.add(&key, value);
        batch.put(0, &key, value);
    })?;
    // Free the generator, so that reads have the same memory for all kinds.
    drop(generator);
    bench.pack()?;
    points(bench, rows)?;
    bench.full_scan(0, rows)?;
    bench.measurement.reserved_bytes = Some(bench.engine.reserved_bytes()?);
    let expected = format!("{:016x}", digest.value());
    if rows > 0 && bench.measurement.fullscan_digest.as_ref() != Some(&expected) {
        return Err(Error::Wrong("a full scan found other rows than were written".to_owned()));
    }
    Ok(())
}

fn points(bench: &mut Bench<'_>, rows: u64) -> Result<()> {
    let spec = bench.spec;
    let mut reader = bench.engine.reader()?;
    let mut prng = Prng::new(spec.seed ^ 0x5EED_0F4E_AD5A_0003);
    let mut read = || {
        let id = prng.below(rows.max(1));
        if reader.get(0, &Generator::key(id), &mut Digest::default())? {
            return Ok(());
        }
        Err(Error::Wrong(format!("row {id} was acknowledged and is not found")))
    };
    bench.progress.say("reading: warm-up");
    timed(spec.reads.warmup, &mut read)?;
    bench.progress.say("reading: points");
    let points = timed(spec.reads.points, &mut read)?;
    let m = &mut bench.measurement;
    (m.point_ops_s, m.point_ms_p99) = (points.rate(), points.p99_ms());
    Ok(())
}

/// Returns the kind of data of a child's plan.
fn kind(spec: &Spec) -> DataKind {
    spec.variant.data.unwrap_or(DataKind::Logs)
}

/// Returns the number of rows of `kind` whose keys and values together have [`DATA_TO_MEMORY`]
/// times `memory_bytes`.
pub(crate) fn rows_beyond(memory_bytes: u64, kind: DataKind, seed: u64) -> u64 {
    let row_bytes = Generator::new(kind, seed).row_bytes();
    ((DATA_TO_MEMORY * memory_bytes) as f64 / row_bytes).ceil() as u64
}
