//! The floors and goals of FronDB's reads: against RocksDB at the same ratio of data to memory,
//! against FronDB's own reads at a smaller ratio, and alone. All of them are for uniform keys,
//! because with zipfian keys the cache answers most reads.

use super::table::{Keys, Read};
use crate::engines::frondb::FRONDB;
use crate::report::{Figure, Measurement, ReadCase};

/// The engine with which FronDB is compared.
const ROCKSDB: &str = "rocksdb";

/// The smaller ratio with limits. At this ratio the cache answers few point reads of uniform keys.
const BEYOND: u64 = 8;

/// The larger ratio with limits.
const FAR_BEYOND: u64 = 64;

/// The numbers of threads that have limits.
const THREADS: [u64; 2] = [1, 8];

/// Returns the figures of `ratio`. `engines` has the measurements at this ratio, `earlier` the
/// measurements at smaller ratios. Leaves out a comparison if one side was not measured.
pub(crate) fn limits(ratio: u64, engines: &[Measurement], earlier: &[Measurement]) -> Vec<Figure> {
    if ratio != BEYOND && ratio != FAR_BEYOND {
        return Vec::new();
    }
    let by = |name: &str, read: Read, threads: u64| {
        engines.iter().filter(|m| m.engine == name).find_map(|m| case(m, read, threads))
    };
    let own = |read, threads| by(FRONDB.name, read, threads);
    let own_before = |threads| {
        let before = |m: &&Measurement| m.engine == FRONDB.name && m.variant == name(BEYOND);
        earlier.iter().filter(before).find_map(|m| case(m, Read::Point, threads))
    };
    let mut figures = Vec::new();
    let against = |read, floor, goal| {
        let figure = move |threads: u64| {
            let (own, other) = (own(read, threads)?, by(ROCKSDB, read, threads)?);
            rate(&format!("{} to {ROCKSDB}", title(own, ratio)), own, other, floor, goal)
        };
        THREADS.into_iter().filter_map(figure)
    };
    figures.extend(against(Read::Point, 1.3, 2.0));
    if ratio == FAR_BEYOND {
        figures.extend(against(Read::Scan10, 2.0, 4.0));
        figures.extend(against(Read::Scan1000, 2.0, 4.0));
        figures.extend(THREADS.into_iter().filter_map(|threads| {
            let (own, before) = (own(Read::Point, threads)?, own_before(threads)?);
            rate(&format!("{} to {}", title(own, ratio), name(BEYOND)), own, before, 0.75, 0.95)
        }));
    }
    if let Some(point) = own(Read::Point, 1) {
        let title = title(point, ratio);
        let cpu = Figure::plain(format!("{title}, CPU"), point.cpu_us_per_op, "us");
        figures.push(cpu.at_most(22.0, Some(14.0)));
        if ratio == FAR_BEYOND {
            let read = Figure::plain(format!("{title}, read"), point.read_kib_per_op(), "KiB");
            figures.push(read.at_most(16.0, Some(8.0)));
        }
    }
    figures
}

/// Returns the name of the variant with this ratio.
pub(crate) fn name(ratio: u64) -> String {
    format!("{ratio}x")
}

fn title(case: &ReadCase, ratio: u64) -> String {
    format!("{} at {}", case.name(), name(ratio))
}

/// Returns the ratio of two rates as a figure; none if the other rate is zero.
fn rate(title: &str, own: &ReadCase, other: &ReadCase, floor: f64, goal: f64) -> Option<Figure> {
    let figure = Figure::plain(title, own.ops_s / other.ops_s, "x");
    (other.ops_s > 0.0).then(|| figure.at_least(floor, goal))
}

/// Returns the case with this read, this number of threads and uniform keys.
fn case(measurement: &Measurement, read: Read, threads: u64) -> Option<&ReadCase> {
    let name = Keys::Uniform.name();
    measurement
        .reads
        .iter()
        .find(|case| case.read == read.name() && case.keys == name && case.threads == threads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Met;

    fn measured(engine: &str, ratio: u64, ops_s: f64) -> Measurement {
        let mut reads = Vec::new();
        for read in Read::ALL {
            for threads in THREADS {
                reads.push(ReadCase {
                    read: read.name().to_owned(),
                    keys: Keys::Uniform.name().to_owned(),
                    threads,
                    ops_s,
                    cpu_us_per_op: 20.0,
                    read_bytes_per_op: 20_000.0,
                    ..ReadCase::default()
                });
            }
        }
        let (engine, variant) = (engine.to_owned(), name(ratio));
        Measurement { engine, variant, reads, ..Measurement::default() }
    }

    #[test]
    fn figures_name_both_sides_and_which_limit_is_met() {
        let far = [measured("frondb", 64, 900.0), measured("rocksdb", 64, 300.0)];
        let earlier = [measured("rocksdb", 8, 1.0), measured("frondb", 8, 1_000.0)];
        let figures = limits(64, &far, &earlier);
        let of = |name: &str| figures.iter().find(|figure| figure.name == name).unwrap();
        let point = of("point uniform, 8 threads at 64x to rocksdb");
        assert_eq!((point.value, point.met), (3.0, Some(Met::Goal)));
        assert_eq!(of("scan1000 uniform, 1 thread at 64x to rocksdb").met, Some(Met::Floor));
        let less = of("point uniform, 1 thread at 64x to 8x");
        assert_eq!((less.value, less.met), (0.9, Some(Met::Floor)));
        assert_eq!(of("point uniform, 1 thread at 64x, CPU").met, Some(Met::Floor));
        assert_eq!(of("point uniform, 1 thread at 64x, read").met, Some(Met::Neither));
        assert_eq!(figures.len(), 10);
    }

    #[test]
    fn sides_that_were_not_measured_have_no_figures() {
        let alone = [measured("frondb", 64, 900.0)];
        assert_eq!(limits(64, &alone, &[]).len(), 2);
        assert_eq!(limits(8, &alone, &[]).len(), 1);
        assert!(limits(1, &alone, &[]).is_empty() && limits(64, &[], &[]).is_empty());
    }
}
