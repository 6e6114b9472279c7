//! The ratios of FronDB to other engines, with the floors and goals that they must reach.

use frondb_bench::report::{Figure, Measurement};

use crate::args::{Args, Disk, Workload};
use crate::contender::Contender;
use crate::{foreign_keys, timed, wear};

/// A value of FronDB divided by the same value of another engine.
fn ratio(
    ours: &Measurement,
    theirs: &Measurement,
    of: fn(&Measurement) -> Option<f64>,
) -> Option<f64> {
    let (ours, theirs) = (of(ours)?, of(theirs)?);
    (theirs > 0.0).then(|| ours / theirs)
}

/// Bytes a row. Absolute bytes cannot be compared, since the time limit may have ended the load of
/// one engine earlier.
fn a_row(m: &Measurement, bytes: Option<u64>) -> Option<f64> {
    let (bytes, rows) = (bytes? as f64, m.rows? as f64);
    (rows > 0.0).then(|| bytes / rows)
}

/// The ratios of FronDB to the other engines for one variant, with their floors and goals.
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
    if matches!(args.workload, Workload::Optimize | Workload::SqlMemory) {
        return Vec::new();
    }
    if args.workload == Workload::Wear {
        let others = [Contender::Innodb, Contender::Myrocks].into_iter();
        return others.filter_map(find).flat_map(|theirs| of_wear(ours, theirs)).collect();
    }
    if args.workload == Workload::SqlForeignKeys {
        let theirs = find(Contender::Innodb);
        return theirs.map_or_else(Vec::new, |theirs| of_foreign_keys(ours, theirs));
    }
    if matches!(args.workload, Workload::Graph | Workload::Tpcc) {
        let control = find(Contender::Innodb);
        return control.map_or_else(Vec::new, |them| of_clients(args, ours, them));
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
            let (floor, goal) = if beyond { (1.2, 2.0) } else { (1.0, 1.3) };
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

/// The ratios of wear. The floors for InnoDB are TokuDB's: it wrote 1/17 of InnoDB's bytes with
/// 1/161 of its requests. The ratio of requests to MyRocks has no floor: MyRocks has few requests
/// because each is as large as a file, but bytes wear a drive out and not requests, and a reader
/// waits for a large write.
fn of_wear(ours: &Measurement, theirs: &Measurement) -> Vec<Figure> {
    let of = |name: &str, limits: Option<(f64, f64)>| {
        let value = figure(ours, name)? / figure(theirs, name).filter(|value| *value > 0.0)?;
        let figure = Figure::plain(format!("{}: {name}", theirs.engine), value, "x");
        Some(match limits {
            Some((floor, goal)) => figure.at_most(floor, Some(goal)),
            None => figure,
        })
    };
    let is_innodb = theirs.engine == Contender::Innodb.name();
    let bytes = if is_innodb { (1.0 / 17.0, 1.0 / 60.0) } else { (1.2, 0.8) };
    let requests = is_innodb.then_some((1.0 / 161.0, 1.0 / 300.0));
    [of(wear::BYTES, Some(bytes)), of(wear::REQUESTS, requests)].into_iter().flatten().collect()
}

/// A figure of an engine, by the figure's name.
fn figure(m: &Measurement, name: &str) -> Option<f64> {
    m.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value)
}

/// The ratios of foreign keys. The speed of the ALTER is compared in rows a second, since the time
/// limit may have ended the load of one engine earlier.
fn of_foreign_keys(ours: &Measurement, theirs: &Measurement) -> Vec<Figure> {
    let of = |name: &str, value: Option<f64>| {
        value.map(|value| Figure::plain(format!("innodb: {name}"), value, "x"))
    };
    let quotient = |ours: Option<f64>, theirs: Option<f64>| Some(ours? / theirs?);
    let rate = of("children inserted/s", ratio(ours, theirs, |m| m.rows_per_s));
    let cpu = of("server CPU a child", ratio(ours, theirs, |m| m.server_cpu_us_per_row));
    let cascade =
        quotient(figure(theirs, foreign_keys::CASCADE), figure(ours, foreign_keys::CASCADE));
    let cascade = of("speed of the cascade", cascade);
    let add = of(
        "speed of the added key",
        quotient(figure(ours, foreign_keys::ADD), figure(theirs, foreign_keys::ADD)),
    );
    [
        rate.map(|rate| rate.at_least(2.0, 5.0)),
        cpu.map(|cpu| cpu.at_most(1.0, Some(0.6))),
        cascade.map(|cascade| cascade.at_least(1.5, 4.0)),
        add.map(|add| add.at_least(3.0, 8.0)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The ratios of a workload of several clients. The limits depend on whether InnoDB's tables are
/// larger than the memory.
fn of_clients(args: &Args, ours: &Measurement, theirs: &Measurement) -> Vec<Figure> {
    let tables = theirs.figures.iter().find(|figure| figure.name == timed::TABLES);
    let beyond = tables.is_some_and(|mib| mib.value * 1_048_576.0 > args.memory() as f64);
    let limits = match (args.workload, beyond, args.disk) {
        (Workload::Graph, true, Disk::Cloud) => Some((2.0, 4.0)),
        (Workload::Graph, true, _) => Some((1.15, 1.6)),
        (Workload::Graph, false, _) => Some((1.1, 1.4)),
        (_, true, _) => Some((1.6, 2.5)),
        (_, false, _) => None,
    };
    let of = |name: &str, value| Some(Figure::plain(format!("innodb: {name}"), value?, "x"));
    let rate = of("transactions/s", ratio(ours, theirs, |m| m.transactions_per_s));
    let rate = rate.map(|rate| match limits {
        Some((floor, goal)) => rate.at_least(floor, goal),
        None => rate,
    });
    let slow = of("99.9th percentile", ratio(ours, theirs, |m| m.transaction_ms_p999));
    let is_limited = beyond && args.workload == Workload::Tpcc;
    let slow = slow.map(|slow| if is_limited { slow.at_most(1.0, Some(0.5)) } else { slow });
    let cpu = of("server CPU", ratio(ours, theirs, |m| m.server_cpu_us_per_row));
    let written = of("bytes written a transaction", ratio(ours, theirs, written_each));
    let size = of("size on disk", ratio(ours, theirs, |m| m.disk_bytes.map(|size| size as f64)));
    [rate, slow, cpu, written, size].into_iter().flatten().collect()
}

/// Bytes written in the measured time, divided by the transactions a second. All engines are
/// measured for the same time, so this is proportional to the bytes written for each transaction.
fn written_each(m: &Measurement) -> Option<f64> {
    Some(m.written_bytes? as f64 / m.transactions_per_s?)
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
        // The time limit ended InnoDB's load at a tenth of the rows.
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
    #[test]
    fn wear_is_compared_in_bytes_and_requests() {
        let args = Args::parse_from(["x", "--workload", "wear"]);
        let m = |engine: &str, bytes, requests| Measurement {
            engine: engine.to_owned(),
            figures: vec![
                Figure::plain(wear::BYTES, bytes, "B"),
                Figure::plain(wear::REQUESTS, requests, ""),
            ],
            ..Measurement::default()
        };
        let all = [m("frondb", 100.0, 1.0), m("innodb", 2000.0, 100.0), m("myrocks", 120.0, 0.5)];
        let figures = ratios(&args, &all);
        let found: Vec<_> = figures.iter().map(|f| (f.name.as_str(), f.value, f.met)).collect();
        assert_eq!(
            found,
            [
                ("innodb: bytes written a row", 0.05, Some(Met::Floor)),
                ("innodb: write requests a thousand rows", 0.01, Some(Met::Neither)),
                ("myrocks: bytes written a row", 100.0 / 120.0, Some(Met::Floor)),
                ("myrocks: write requests a thousand rows", 2.0, None),
            ]
        );
    }

    #[test]
    fn limits_of_clients_depend_on_memory_and_disk() {
        let m = |engine: &str, rate, worst| Measurement {
            engine: engine.to_owned(),
            transactions_per_s: Some(rate),
            transaction_ms_p999: Some(worst),
            figures: vec![Figure::plain(timed::TABLES, 1_024.0, "MiB")],
            ..Measurement::default()
        };
        let all = [m("frondb", 180.0, 9.0), m("innodb", 100.0, 10.0)];
        let limits = |line: &str| {
            let args = Args::parse_from(line.split_whitespace());
            let of = |figure: &Figure| (figure.floor, figure.goal, figure.met);
            let figures = ratios(&args, &all);
            (of(&figures[0]), of(&figures[1]))
        };
        let none = (None, None, None);
        let met = |floor, goal, met| (Some(floor), Some(goal), Some(met));
        let graph = "x --workload graph --memory";
        assert_eq!(limits(&format!("{graph} 128MiB")), (met(1.15, 1.6, Met::Goal), none));
        assert_eq!(limits(&format!("{graph} 2GiB")), (met(1.1, 1.4, Met::Goal), none));
        let cloud = limits(&format!("{graph} 128MiB --disk cloud"));
        assert_eq!(cloud, (met(2.0, 4.0, Met::Neither), none));
        let tpcc = limits("x --workload tpcc --memory 128MiB");
        assert_eq!(tpcc, (met(1.6, 2.5, Met::Floor), met(1.0, 0.5, Met::Floor)));
        assert_eq!(limits("x --workload tpcc --memory 2GiB"), (none, none));
    }
}
