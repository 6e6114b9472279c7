//! Prints the speed of the merge kernel and of scans: `cargo run --release -p frondb-bench
//! --example kernel -- [entries] [codec]`. The speed of a merge is printed by wall clock and, on
//! Linux, by processor time, which other programs on the machine disturb less. The speed of a scan
//! is printed by processor time only.

#![allow(clippy::print_stdout)]

use frondb_bench::kernel::{Kernel, KernelOptions};
use frondb_block::Codec;
use frondb_core::Result;

/// Returns the seconds that this thread has run, if the system reports them.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanos / 1e9)
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let entries = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(4_000_000);
    let only = arguments.next();
    for codec in [Codec::None, Codec::Lz4, Codec::Zstd(1), Codec::Zstd(3)] {
        if only.as_ref().is_some_and(|only| *only != codec.to_string()) {
            continue;
        }
        for seqs in [false, true] {
            measure(KernelOptions {
                per_entry_seqs: (seqs, seqs),
                ..KernelOptions::new(entries, codec)
            })?;
        }
    }
    Ok(())
}

fn measure(options: KernelOptions) -> Result<()> {
    let kernel = Kernel::new(options)?;
    let mut out = Vec::new();
    let mut report = kernel.merge(&mut out)?;
    let mut processor = f64::MAX;
    for _ in 0..7 {
        let before = processor_seconds();
        let round = kernel.merge(&mut out)?;
        if let (Some(before), Some(after)) = (before, processor_seconds()) {
            processor = processor.min(after - before);
        }
        if round.seconds < report.seconds {
            report = round;
        }
    }
    let scans = [1, 2, 8].map(|runs| {
        let mut best = f64::MAX;
        let mut entries = 0;
        for _ in 0..5 {
            let before = processor_seconds().unwrap_or(0.0);
            entries = kernel.scan(runs).map_or(0, |report| report.entries_out);
            best = best.min(processor_seconds().unwrap_or(0.0) - before);
        }
        entries as f64 / best / 1e6
    });
    println!(
        "{:8} seqs {:5}  {:6.2} M entries/s, {:6.2} by processor time  {:5.2} bytes in, {:5.2} out  \
         scans of 1, 2, 8 runs {:.1?} M/s",
        options.codecs.0.to_string(),
        options.per_entry_seqs.0,
        report.entries_per_s() / 1e6,
        report.entries_in as f64 / processor / 1e6,
        report.bytes_in as f64 / report.entries_in as f64,
        report.bytes_out as f64 / report.entries_out as f64,
        scans
    );
    Ok(())
}
