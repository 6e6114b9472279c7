//! The ratios of FronDB to other engines, with the floors and goals that they must reach.

use frondb_bench::report::{Figure, Measurement};

use crate::args::{Args, Disk, Workload};
use crate::contender::Contender;
use crate::memory;

/// A figure of FronDB as a ratio to another engine's.
fn ratio(
    ours: &Measurement,
    theirs: &Measurement,
    of: fn(&Measurement) -> Option<f64>,
) -> Option<f64> {
    let (ours, theirs) = (of(ours)?, of(theirs)?);
    (theirs > 0.0).then(|| ours / theirs)
}

/// Bytes a row, since the time limit may have ended the load of one engine earlier than another's.
fn a_row(m: &Measurement, bytes: Option<u64>) -> Option<f64> {
    let (bytes, rows) = (bytes? as f64, m.rows? as f64);
    (rows > 0.0).then(|| bytes / rows)
}

/// The ratios that FronDB must reach, for one variant.
pub(crate) fn ratios(args: &Args, medians: &[Measurement]) -> Vec<Figure> {
    let find = |contender: Contender| medians.iter().find(|m| m.engine == contender.name());
    let Some(ours) = find(Contender::Frondb) else { return Vec::new() };
    let mut all = Vec::new();
    if args.workload == Workload::SqlDeleteLeft {
        let first = ours.first_key_ms.map(|ms| {
            Figure::plain("smallest key after the deletes", ms, "ms").at_most(20.0, Some(2.0))
        });
        return first.into_iter().collect();
    }
    if args.workload == Workload::SqlMemory {
        let control = find(Contender::Innodb);
        return control.map_or_else(Vec::new, |them| memory::held(args.memory(), ours, them));
    }
    let mut hold = |name: String, value: Option<f64>, at_most: bool, floor: f64, goal: f64| {
        let Some(value) = value else { return };
        let figure = Figure::plain(name, value, "x");
        all.push(if at_most {
            figure.at_most(floor, Some(goal))
        } else {
            figure.at_least(floor, goal)
        });
    };
    if args.workload == Workload::Sysbench {
        if let Some(theirs) = find(Contender::Innodb) {
            let name = format!("innodb: {}", ours.variant);
            let beyond = args.memory() < args.rows() * 200;
            let (floor, goal) = if beyond { (1.0, 1.5) } else { (0.7, 1.0) };
            hold(name, ratio(ours, theirs, |m| m.transactions_per_s), false, floor, goal);
        }
        return all;
    }
    if args.workload == Workload::SqlCounts {
        if let Some(theirs) = find(Contender::Innodb) {
            let name = format!("innodb: server CPU, {}", ours.variant);
            hold(name, ratio(ours, theirs, |m| m.server_cpu_us_per_row), true, 1.0, 0.8);
        }
        return all;
    }
    if args.workload == Workload::Graph {
        if let Some(theirs) = find(Contender::Innodb) {
            let beyond = theirs.disk_bytes.is_some_and(|size| size > args.memory());
            let (floor, goal) = match (beyond, args.disk) {
                (false, _) => (1.1, 1.4),
                (true, Disk::Cloud) => (2.0, 4.0),
                (true, _) => (1.15, 1.6),
            };
            let rate = ratio(ours, theirs, |m| m.transactions_per_s);
            hold("innodb: transactions/s".into(), rate, false, floor, goal);
        }
        return all;
    }
    if let Some(theirs) = find(Contender::Innodb) {
        let (floor, goal) = if args.disk == Disk::Cloud { (15.0, 40.0) } else { (4.0, 9.0) };
        let rate = ratio(ours, theirs, |m| m.rows_per_s_last_fifth);
        hold("innodb: rows/s, last fifth".into(), rate, false, floor, goal);
        let written = ratio(ours, theirs, |m| a_row(m, m.written_bytes));
        hold("innodb: bytes written a row".into(), written, true, 1.0 / 20.0, 1.0 / 60.0);
        let size = ratio(ours, theirs, |m| a_row(m, m.disk_bytes));
        hold("innodb: size on disk a row".into(), size, true, 0.6, 0.4);
    }
    if let Some(theirs) = find(Contender::Myrocks) {
        hold("myrocks: rows/s".into(), ratio(ours, theirs, |m| m.rows_per_s), false, 0.9, 1.3);
        let cpu = ratio(ours, theirs, |m| m.server_cpu_us_per_row);
        hold("myrocks: server CPU a row".into(), cpu, true, 1.0, 0.7);
        let written = ratio(ours, theirs, |m| a_row(m, m.written_bytes));
        hold("myrocks: bytes written a row".into(), written, true, 1.2, 0.8);
        let size = ratio(ours, theirs, |m| a_row(m, m.disk_bytes));
        hold("myrocks: size on disk a row".into(), size, true, 1.1, 0.9);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use frondb_bench::report::Met;

    #[test]
    fn ratios_to_other_engines_meet_their_floors_and_goals() {
        let args = Args::parse_from(["x", "--disk", "cloud"]);
        let m = |engine: &str, rate, rows, written| Measurement {
            engine: engine.to_owned(),
            rows: Some(rows),
            rows_per_s_last_fifth: Some(rate),
            rows_per_s: Some(rate),
            written_bytes: Some(written),
            disk_bytes: Some(rows * 10),
            ..Measurement::default()
        };
        // The time limit ended InnoDB's load at a tenth.
        let all = [
            m("frondb", 150.0, 1_000, 100),
            m("innodb", 10.0, 100, 400),
            m("myrocks", 200.0, 1_000, 100),
        ];
        let figures = ratios(&args, &all);
        let met = |name: &str| figures.iter().find(|f| f.name == name).unwrap().met;
        assert_eq!(met("innodb: rows/s, last fifth"), Some(Met::Floor));
        assert_eq!(met("innodb: bytes written a row"), Some(Met::Floor));
        assert_eq!(met("myrocks: rows/s"), Some(Met::Neither));
        let value = |name: &str| figures.iter().find(|f| f.name == name).unwrap().value;
        assert_eq!(value("innodb: bytes written a row"), 0.025);
        assert_eq!(value("innodb: size on disk a row"), 1.0);
        assert!(ratios(&args, &all[1..]).is_empty());
    }
}
