//! Rounds of engines in turn, their medians, and the ratios that FronDB must reach.

use std::fs;
use std::io::Write;

use frondb_bench::driver::{Progress, note, prepare_dir};
use frondb_bench::report::{self, Figure, Measurement};
use frondb_bench::{Error, Result};

use crate::args::{Args, Disk, Workload};
use crate::contender::Contender;
use crate::{counts, delete_left, host, iibench, memory, sysbench};

/// Measures all engines and reports.
pub(crate) fn run(args: &Args) -> Result<()> {
    if cfg!(debug_assertions) {
        note("warning: this is a debug build; its figures mean nothing");
    }
    prepare_dir(&args.dir)?;
    host::clear(args)?;
    let engines = args.engines();
    let mut rounds: Vec<Vec<Vec<Measurement>>> = engines.iter().map(|_| Vec::new()).collect();
    for round in 0..args.rounds {
        for (contender, results) in engines.iter().zip(&mut rounds) {
            note(&format!("round {} of {}: {}", round + 1, args.rounds, contender.name()));
            results.push(measure(*contender, args));
            host::clear(args)?;
        }
    }
    if let Some(path) = &args.chart {
        let firsts: Vec<&Measurement> =
            rounds.iter().filter_map(|rounds| rounds.first()?.first()).collect();
        let series: Vec<_> =
            firsts.iter().map(|m| (m.engine.as_str(), m.series.as_slice())).collect();
        let svg = report::rows_chart("rows a second", &series)?;
        fs::write(path, svg).map_err(Error::io(format!("write {}", path.display())))?;
    }
    report_all(args, &medians(&rounds)?)
}

/// Measures one engine once: a measurement for each variant. A failure is in the measurement.
fn measure(contender: Contender, args: &Args) -> Vec<Measurement> {
    let label = format!("{} {}", contender.name(), args.workload.name());
    let progress = Progress::visible(label);
    let measured = match args.workload {
        Workload::SqlIibench => iibench::measure(contender, args, &progress).map(|m| vec![m]),
        Workload::SqlDeleteLeft => {
            delete_left::measure(contender, args, &progress).map(|m| vec![m])
        }
        Workload::Sysbench => sysbench::measure(contender, args, &progress),
        Workload::SqlCounts => counts::measure(contender, args, &progress),
        Workload::SqlMemory => memory::measure(contender, args, &progress).map(|m| vec![m]),
    };
    let mut all = measured.unwrap_or_else(|error| {
        note(&format!("{}: {error}", contender.name()));
        let failed = Measurement { error: Some(error.to_string()), ..Measurement::default() };
        let variants = match args.workload {
            Workload::Sysbench => sysbench::TESTS.to_vec(),
            Workload::SqlCounts => counts::QUERIES.map(|(name, _)| name).to_vec(),
            _ => vec![""],
        };
        let of = |variant: &&str| Measurement { variant: (*variant).to_owned(), ..failed.clone() };
        variants.iter().map(of).collect()
    });
    for m in &mut all {
        m.engine = contender.name().to_owned();
        m.workload = args.workload.name().to_owned();
        m.settings = contender.describe();
    }
    all
}

/// The medians of all engines, for each variant.
fn medians(rounds: &[Vec<Vec<Measurement>>]) -> Result<Vec<Vec<Measurement>>> {
    let variants = rounds.first().and_then(|rounds| rounds.first()).map_or(0, Vec::len);
    (0..variants)
        .map(|variant| {
            let of = |rounds: &Vec<Vec<Measurement>>| {
                let same: Vec<_> = rounds.iter().filter_map(|r| r.get(variant).cloned()).collect();
                report::median(&same)
            };
            rounds.iter().map(of).collect()
        })
        .collect()
}

fn report_all(args: &Args, variants: &[Vec<Measurement>]) -> Result<()> {
    let mut text = String::new();
    let mut figures = Vec::new();
    for medians in variants {
        let name = medians.first().map_or("", |m| m.variant.as_str());
        if !name.is_empty() {
            text.push_str(&format!("\n{name}\n"));
        }
        let ours = medians.iter().position(|m| m.engine == Contender::Frondb.name());
        text.push_str(&report::table(medians, ours.unwrap_or(0)));
        figures.extend(ratios(args, medians));
        answers_agree(medians)?;
        for m in medians.iter().filter(|m| !m.figures.is_empty()) {
            text.push_str(&format!("\n{}", report::figures(&m.engine, &m.figures)));
        }
    }
    if !figures.is_empty() {
        text.push_str(&format!("\n{}", report::figures("frondb against", &figures)));
    }
    let disk = if args.disk == Disk::Cloud { "as slow as a cloud's" } else { "as it is" };
    text.push_str(&format!(
        "medians of {} rounds, seed {}, {} MiB of memory for data, the disk {disk}\n",
        args.rounds,
        args.seed,
        args.memory() >> 20
    ));
    for contender in args.engines() {
        text.push_str(&format!("  {}\n", contender.describe()));
    }
    let mut out = std::io::stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::io("print"))?;
    let all: Vec<&Measurement> = variants.iter().flatten().collect();
    if let Some(path) = &args.json {
        let json = serde_json::to_string_pretty(&all).map_err(Error::engine)? + "\n";
        fs::write(path, json).map_err(Error::io(format!("write {}", path.display())))?;
    }
    match all.iter().find_map(|m| m.error.as_ref().map(|error| (&m.engine, error))) {
        Some((engine, error)) => Err(Error::Child(format!("{engine}: {error}"))),
        None => Ok(()),
    }
}

/// Checks that engines with the same rows have given the same answers.
fn answers_agree(medians: &[Measurement]) -> Result<()> {
    for (i, one) in medians.iter().enumerate() {
        let with_rows = |m: &&Measurement| m.rows == one.rows && m.fullscan_digest.is_some();
        for other in medians[i + 1..].iter().filter(with_rows) {
            let (Some(ours), Some(theirs)) = (&one.fullscan_digest, &other.fullscan_digest) else {
                continue;
            };
            if ours != theirs {
                let (one, other) = (&one.engine, &other.engine);
                return Err(Error::Wrong(format!("{one} answers {ours}, {other} {theirs}")));
            }
        }
    }
    Ok(())
}

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
fn ratios(args: &Args, medians: &[Measurement]) -> Vec<Figure> {
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
    fn answers_are_compared_where_the_rows_are_the_same() {
        let m = |engine: &str, rows, digest: &str| Measurement {
            engine: engine.to_owned(),
            rows: Some(rows),
            fullscan_digest: (!digest.is_empty()).then(|| digest.to_owned()),
            ..Measurement::default()
        };
        assert!(answers_agree(&[m("frondb", 5, "a"), m("innodb", 5, "a")]).is_ok());
        assert!(answers_agree(&[m("frondb", 5, "a"), m("innodb", 4, "b")]).is_ok());
        assert!(answers_agree(&[m("frondb", 5, "a"), m("innodb", 5, "")]).is_ok());
        assert!(answers_agree(&[m("frondb", 5, "a"), m("innodb", 5, "b")]).is_err());
    }

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
