//! Rounds in which the engines run in turn, the medians of the rounds, and the report.

use std::fs;
use std::io::Write;

use frondb_bench::driver::{Progress, note, prepare_dir};
use frondb_bench::report::{self, Measurement};
use frondb_bench::{Error, Result};

use crate::args::{Args, Workload};
use crate::contender::Contender;
use crate::ratios::ratios;
use crate::{
    counts, delete_left, foreign_keys, host, iibench, memory, optimize, slices, sysbench,
    sysbench_slices, timed, wear,
};

/// Measures all engines and reports.
pub(crate) fn run(args: &Args) -> Result<()> {
    if cfg!(debug_assertions) {
        note("warning: this is a debug build; its figures mean nothing");
    }
    prepare_dir(&args.dir)?;
    host::clear(args)?;
    if let Some(pairs) = args.slices {
        let measured = match args.workload {
            Workload::Sysbench => sysbench_slices::measure(args, pairs as usize),
            _ => slices::measure(args, pairs as usize).map(|all| vec![all]),
        };
        host::clear(args)?;
        return report_all(args, &measured?);
    }
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

/// Measures one engine once: a measurement for each variant. A failure becomes its `error`.
fn measure(contender: Contender, args: &Args) -> Vec<Measurement> {
    let label = format!("{} {}", contender.name(), args.workload.name());
    let progress = Progress::visible(label);
    let measured = match args.workload {
        Workload::SqlIibench => iibench::measure(contender, args, &progress).map(|m| vec![m]),
        Workload::Wear => wear::measure(contender, args, &progress).map(|m| vec![m]),
        Workload::SqlDeleteLeft => {
            delete_left::measure(contender, args, &progress).map(|m| vec![m])
        }
        Workload::SqlForeignKeys => {
            foreign_keys::measure(contender, args, &progress).map(|m| vec![m])
        }
        Workload::Optimize => optimize::measure(contender, args, &progress).map(|m| vec![m]),
        Workload::Sysbench => sysbench::measure(contender, args, &progress),
        Workload::SqlCounts => counts::measure(contender, args, &progress),
        Workload::SqlMemory => memory::measure(contender, args, &progress).map(|m| vec![m]),
        Workload::Graph | Workload::Tpcc => {
            timed::measure(contender, args, &progress).map(|m| vec![m])
        }
    };
    let all = measured.unwrap_or_else(|error| {
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
    all.into_iter().map(|m| contender.named(m, args.workload.name())).collect()
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
    let disk = args.disk.describe();
    let how = match args.slices {
        Some(pairs) => format!("{pairs} pairs of slices of {} s", args.slice_seconds),
        None => format!("medians of {} rounds", args.rounds),
    };
    text.push_str(&format!(
        "{how}, seed {}, {} MiB of memory for data, the disk {disk}\n",
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
