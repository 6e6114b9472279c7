//! The merge kernel: merges eight runs of encoded, checksummed blocks, with the keys of the third
//! secondary tree, into one base of such blocks. All data is in memory, and one thread works,
//! without engine or files.
//!
//! The rate of the kernel is an upper bound of the engine's write rates. The kernel runs once
//! without compression and once with zstd at level 1.

use std::path::Path;

use frondb_block::Codec;

use super::Spec;
use crate::engine::{Codec as Compression, Engine, EngineKind, EngineOptions};
use crate::error::{Error, Result};
use crate::kernel::{KernelOptions, KernelReport, run as merge};
use crate::measure::process;
use crate::report::Measurement;

/// An entry like those of the registry, for the kernel. It cannot be opened, because the kernel is
/// no engine.
pub const KERNEL: EngineKind = EngineKind {
    name: "frondb",
    describe: |_| {
        let KernelOptions { runs, block_bytes: (from, to), .. } =
            KernelOptions::new(0, Codec::None);
        let (from, to) = (from >> 10, to >> 10);
        format!("frondb: the merge kernel, {runs} runs, blocks of {from} KiB in and {to} KiB out")
    },
    codecs: &[Compression::Standard, Compression::Aggressive, Compression::None],
    open: no_engine,
};

fn no_engine(_: &Path, _: &EngineOptions) -> Result<Box<dyn Engine>> {
    Err(Error::Usage("the merge workload opens no engine".to_owned()))
}

/// Largest number of entries. More would take more memory and not change the rate, since the kernel
/// touches each entry once.
const MOST_ENTRIES: u64 = 4_000_000;
const ROUNDS: usize = 5;

pub(super) fn run(spec: &Spec) -> Result<Measurement> {
    let entries = spec.rows.min(MOST_ENTRIES);
    let none = kernel(entries, Codec::None)?;
    let zstd = kernel(entries, Codec::Zstd(1))?;
    Ok(Measurement {
        engine: KERNEL.name.to_owned(),
        workload: spec.workload.name().to_owned(),
        settings: (KERNEL.describe)(&spec.engine_options()),
        rows: Some(entries),
        raw_bytes: Some(entries * 24),
        merge_none_entries_s: Some(none.entries_per_s()),
        merge_zstd_entries_s: Some(zstd.entries_per_s()),
        rss_peak_bytes: Some(process::resident_peak_bytes()?),
        ..Measurement::default()
    })
}

fn kernel(entries: u64, codec: Codec) -> Result<KernelReport> {
    let entries = usize::try_from(entries).unwrap_or(usize::MAX);
    merge(KernelOptions::new(entries, codec), ROUNDS).map_err(Error::engine)
}
