//! Prints the speed of the merge kernel: `cargo run --release -p frondb-merge --example kernel`.

#![allow(clippy::print_stdout)]

use frondb_block::Codec;
use frondb_core::Result;
use frondb_merge::kernel_bench::{KernelOptions, run};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let entries = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(4_000_000);
    let only = arguments.next();
    for codec in [Codec::None, Codec::Lz4, Codec::Zstd(1), Codec::Zstd(3)] {
        if only.as_ref().is_some_and(|only| *only != codec.to_string()) {
            continue;
        }
        for seqs in [false, true] {
            let options = KernelOptions {
                per_entry_seqs: (seqs, seqs),
                ..KernelOptions::new(entries, codec)
            };
            let report = run(options, 5)?;
            println!(
                "{:8} seqs {:5}  {:6.2} M entries/s  {:5.2} bytes in, {:5.2} bytes out an entry",
                codec.to_string(),
                seqs,
                report.entries_per_s() / 1e6,
                report.bytes_in as f64 / report.entries_in as f64,
                report.bytes_out as f64 / report.entries_out as f64
            );
        }
    }
    Ok(())
}
