//! Overwriting: loads the primary tree in order, then writes as many random rows again with other
//! content. Measures the second part and the reads after it. Old versions that an engine keeps show
//! in the size on disk and in the scans.

use frondb_core::prng::Prng;

use super::Bench;
use super::timed::{point, timed};
use crate::engine::Digest;
use crate::error::Result;
use crate::rows::{PRIMARY, TableRow, probes};

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let (seed, rows) = (bench.spec.seed, bench.spec.rows);
    let rows = bench.silent_load(rows, &mut |batch, id| {
        TableRow::new(seed, id, 0).insert_primary(batch);
    })?;
    bench.measured_load(rows, &mut |batch, number| {
        // The row depends on the seed and the number alone, so that every round and engine
        // overwrites the same rows.
        let id = Prng::new(seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15)).below(rows.max(1));
        TableRow::new(seed, id, number + 1).insert_primary(batch);
    })?;
    reads(bench, rows)
}

fn reads(bench: &mut Bench<'_>, rows: u64) -> Result<()> {
    let spec = bench.spec;
    let mut reader = bench.engine.reader()?;
    let mut prng = Prng::new(spec.seed ^ 0x5EED_0F4E_AD5A_0002);
    bench.progress.say("reading: points");
    timed(spec.reads.warmup, || point(reader.as_mut(), &mut prng, rows))?;
    let points = timed(spec.reads.points, || point(reader.as_mut(), &mut prng, rows))?;
    bench.progress.say("reading: 10-entry scans");
    let scans = timed(spec.reads.scan10, || {
        let from = probes::primary(&mut prng, rows);
        reader.scan(PRIMARY, &from, 10, &mut Digest::default()).map(drop)
    })?;
    drop(reader);
    let m = &mut bench.measurement;
    (m.point_ops_s, m.point_ms_p99) = (points.rate(), points.p99_ms());
    (m.scan10_ops_s, m.scan10_ms_p99) = (scans.rate(), scans.p99_ms());
    bench.full_scan(PRIMARY, rows)
}
