//! The tables of the workload `reads`: a line for each case, and the engines side by side.

use super::columns::align;
use super::numbers::{count, short};
use super::{Measurement, ReadCase};

/// A column that the table has once for each engine.
struct Column {
    label: &'static str,
    value: fn(&ReadCase) -> Option<f64>,
    show: fn(f64) -> String,
    /// Whether a column with the ratio to the baseline engine follows.
    compared: bool,
}

const COSTS: &[Column] = &[
    Column { label: "ops/s", value: |c| Some(c.ops_s), show: count, compared: true },
    Column { label: "CPU us", value: |c| Some(c.cpu_us_per_op), show: short, compared: false },
    Column { label: "KiB", value: |c| Some(c.read_kib_per_op()), show: short, compared: false },
    Column { label: "requests", value: |c| c.device_reads_per_op, show: short, compared: false },
];

const LATENCIES: &[Column] = &[
    Column { label: "p50", value: |c| Some(c.ms_p50), show: short, compared: false },
    Column { label: "p99", value: |c| Some(c.ms_p99), show: short, compared: false },
    Column { label: "p99.9", value: |c| Some(c.ms_p999), show: short, compared: false },
    Column { label: "worst", value: |c| Some(c.ms_max), show: short, compared: false },
];

/// Formats a table of the costs of the cases, then one of their latencies; an empty string if there
/// are no cases. `baseline` is the index of the engine that the others are compared with.
#[must_use]
pub fn read_tables(engines: &[Measurement], baseline: usize) -> String {
    let Some(first) = engines.iter().max_by_key(|engine| engine.reads.len()) else {
        return String::new();
    };
    if first.reads.is_empty() {
        return String::new();
    }
    let of = |what: &str| format!("{} {}: {what}", first.workload, first.variant);
    let costs = table(&of("an operation"), engines, &first.reads, COSTS, baseline);
    let latencies = table(&of("ms"), engines, &first.reads, LATENCIES, baseline);
    format!("{costs}\n{latencies}")
}

fn table(
    title: &str,
    engines: &[Measurement],
    cases: &[ReadCase],
    columns: &[Column],
    baseline: usize,
) -> String {
    let (mut names, mut labels) = (vec![title.to_owned()], vec![String::new()]);
    for (place, engine) in engines.iter().enumerate() {
        for (number, column) in columns.iter().enumerate() {
            names.push(if number == 0 { engine.engine.clone() } else { String::new() });
            labels.push(column.label.to_owned());
            if column.compared && place != baseline {
                names.push(String::new());
                labels.push(String::new());
            }
        }
    }
    let mut rows = vec![names, labels];
    for case in cases {
        let found = |engine: &Measurement| {
            engine.reads.iter().find(|other| other.is_same_case(case)).cloned()
        };
        let base = engines.get(baseline).and_then(found);
        let mut row = vec![case.name()];
        for (place, engine) in engines.iter().enumerate() {
            let case = found(engine);
            for column in columns {
                let value = case.as_ref().and_then(column.value);
                row.push(value.map_or_else(|| "-".to_owned(), column.show));
                if column.compared && place != baseline {
                    let base = base.as_ref().and_then(column.value);
                    row.push(super::table::ratio(value, base).unwrap_or_default());
                }
            }
        }
        rows.push(row);
    }
    align(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(name: &str, ops_s: f64, threads: &[u64]) -> Measurement {
        let case = |&threads: &u64| ReadCase {
            read: "point".to_owned(),
            keys: "uniform".to_owned(),
            threads,
            ops_s,
            cpu_us_per_op: 12.5,
            read_bytes_per_op: 2048.0,
            ms_max: 3.0,
            ..ReadCase::default()
        };
        Measurement {
            engine: name.to_owned(),
            workload: "reads".to_owned(),
            variant: "8x".to_owned(),
            reads: threads.iter().map(case).collect(),
            ..Measurement::default()
        }
    }

    #[test]
    fn each_case_is_a_line_with_the_engines_side_by_side() {
        let engines = [engine("a", 3_000.0, &[1, 2]), engine("b", 2_000.0, &[1])];
        let expected = "\
reads 8x: an operation        a                                     b
                          ops/s         CPU us   KiB  requests  ops/s  CPU us   KiB  requests
point uniform, 1 thread   3,000  1.50x    12.5  2.00         -  2,000    12.5  2.00         -
point uniform, 2 threads  3,000           12.5  2.00         -      -       -     -         -

reads 8x: ms                 a                         b
                           p50   p99  p99.9  worst   p50   p99  p99.9  worst
point uniform, 1 thread   0.00  0.00   0.00   3.00  0.00  0.00   0.00   3.00
point uniform, 2 threads  0.00  0.00   0.00   3.00     -     -      -      -
";
        assert_eq!(read_tables(&engines, 1), expected);
        assert_eq!(read_tables(&[Measurement::default()], 0), "");
    }
}
