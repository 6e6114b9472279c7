//! `bench` with the workload `compression`, which has a table for each kind of data, with all
//! engines and codecs.

use super::args::BenchArgs;
use super::plan;
use super::progress::print;
use super::variant::{check_answers, measure_variant};
use crate::engine::EngineKind;
use crate::engines::frondb::FRONDB;
use crate::error::{Error, Result};
use crate::report::{self, Measurement};
use crate::rows::DataKind;
use crate::workload::compression::limits;
use crate::workload::{Variant, Workload};

/// Measures all variants and prints a table after those of each kind.
pub(super) fn compression(
    args: &BenchArgs,
    variants: &[Variant],
    kinds: &[&'static EngineKind],
    limit: &dyn Fn(u64) -> Option<u64>,
) -> Result<Vec<Measurement>> {
    check(args, variants, kinds)?;
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
        // All figures of the kind are in one object of the report.
        if let Some(own) = lines.iter_mut().find(|line| line.engine == FRONDB.name) {
            own.figures = figures;
        }
        results.extend(lines);
    }
    Ok(results)
}

/// Checks before hours of measuring that the texts of all kinds are installed, and that there is
/// something to measure.
fn check(args: &BenchArgs, variants: &[Variant], kinds: &[&EngineKind]) -> Result<()> {
    debug_assert_eq!(args.workload, Workload::Compression);
    let mut runs = 0;
    for variant in variants {
        for kind in kinds.iter().filter(|kind| kind.codecs.contains(&variant.codec)) {
            plan::spec(args, variant, kind)?;
            runs += 1;
        }
    }
    if runs == 0 {
        return Err(Error::Usage("no engine that is named has a codec that is named".to_owned()));
    }
    Ok(())
}
