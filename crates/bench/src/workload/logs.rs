//! Log lines in one tree, once with each codec: their size on disk, and the cost of a point read
//! whose block must be decompressed.

use frondb_core::prng::Prng;

use super::Bench;
use super::timed::timed;
use crate::engine::Digest;
use crate::error::{Error, Result};
use crate::rows::LogRow;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let (seed, spec) = (bench.spec.seed, bench.spec);
    let rows =
        bench.measured_load(spec.rows, &mut |batch, id| LogRow::new(seed, id).insert(batch))?;
    let mut reader = bench.engine.reader()?;
    let mut prng = Prng::new(seed ^ 0x5EED_0F4E_AD5A_0003);
    let mut read = || {
        let id = prng.below(rows.max(1));
        if reader.get(0, &LogRow::key(id), &mut Digest::default())? {
            return Ok(());
        }
        Err(Error::Wrong(format!("log line {id} was acknowledged and is not found")))
    };
    bench.progress.say("reading: points");
    timed(spec.reads.warmup, &mut read)?;
    let points = timed(spec.reads.points, &mut read)?;
    let m = &mut bench.measurement;
    (m.point_ops_s, m.point_ms_p99) = (points.rate(), points.p99_ms());
    drop(reader);
    bench.full_scan(0, rows)
}
