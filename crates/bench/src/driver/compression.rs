//! `bench` with the workload `compression`: prints one table for each kind of data, with all
//! engines and codecs.

use super::args::BenchArgs;
use super::variant::measure_variant;
use super::{check_answers, print};
use crate::engine::EngineKind;
use crate::engines::frondb::FRONDB;
use crate::error::{Error, Result};
use crate::report::{self, Measurement};
use crate::rows::DataKind;
use crate::workload::Variant;
use crate::workload::compression::limits;

/// Measures all variants, and prints a table after the variants of each kind of data.
pub(super) fn compression(
    args: &BenchArgs,
    variants: &[Variant],
    kinds: &[&'static EngineKind],
    limit: &dyn Fn(u64) -> Option<u64>,
) -> Result<Vec<Measurement>> {
    let is_possible =
        |variant: &Variant| kinds.iter().any(|kind| kind.codecs.contains(&variant.codec));
    if !variants.iter().any(is_possible) {
        return Err(Error::Usage("no engine that is named has a codec that is named".to_owned()));
    }
    let mut results = Vec::new();
    for kind in DataKind::ALL {
        let mut lines = Vec::new();
        for variant in variants.iter().filter(|variant| variant.data == Some(kind)) {
            lines.extend(measure_variant(args, variant, kinds, limit)?);
        }
        if lines.is_empty() {
            continue;
        }
        print(&format!("{}\n", report::compression_table(kind.name(), &lines)))?;
        let figures = limits(kind, &lines);
        if !figures.is_empty() {
            print(&format!("{}\n", report::figures(kind.name(), &figures)))?;
        }
        check_answers(&lines)?;
        // The report has all figures of a kind in one object: FronDB's first.
        if let Some(own) = lines.iter_mut().find(|line| line.engine == FRONDB.name) {
            own.figures = figures;
        }
        results.extend(lines);
    }
    Ok(results)
}
