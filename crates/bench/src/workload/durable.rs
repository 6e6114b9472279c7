//! The rows of iiBench with 1, 1,000 or 10,000 of them in a commit, synced or not: the cost of
//! durability, and how many rows a commit must have to make it cheap. Only the load is measured.

use super::Bench;
use crate::error::Result;
use crate::rows::TableRow;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let seed = bench.spec.seed;
    bench
        .measured_load(bench.spec.rows, &mut |batch, id| TableRow::new(seed, id, 0).insert(batch))
        .map(drop)
}
