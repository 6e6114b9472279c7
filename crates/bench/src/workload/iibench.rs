//! iiBench: writes rows with three secondary entries each at full speed, then reads them.

use super::{Bench, Part};
use crate::error::Result;
use crate::rows::TableRow;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let seed = bench.spec.seed;
    let rows = bench.measured_load(bench.spec.rows, &mut |batch, id| {
        TableRow::new(seed, id, 0).insert(batch)
    })?;
    if bench.spec.part == Part::Load {
        return Ok(());
    }
    bench.table_reads(rows)
}
