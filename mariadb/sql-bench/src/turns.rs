//! Measures the engines in turn, each by its workload, and reports the results.

use frondb_bench::Result;
use frondb_bench::driver::{Progress, Rounds, check_answers, first_error, note, print, write_json};
use frondb_bench::report::{self, Measurement};

use crate::args::{Args, Workload};
use crate::contender::Contender;
use crate::ratios::ratios;
use crate::{
    counts, delete_left, foreign_keys, host, iibench, memory, optimize, slices, sysbench,
    sysbench_slices, timed, wear,
};

/// Measures all engines and reports.
pub(crate) fn run(args: &Args) -> Result<()> {
    args.common.prepare()?;
    host::clear(args)?;
    if let Some(pairs) = args.slices {
        let measured = match args.workload {
            Workload::Sysbench => sysbench_slices::measure(args, pairs as usize),
            _ => slices::measure(args, pairs as usize).map(|all| vec![all]),
        };
        host::clear(args)?;
        return report_all(args, &measured?);
    }
    let chart = args.common.chart.as_deref().map(|path| (path, "rows a second".to_owned()));
    let rounds = Rounds { count: args.rounds(), chart };
    let mut medians = rounds.run(
        &args.engines(),
        |contender| contender.name(),
        |contender, _| {
            let measured = measure(*contender, args);
            host::clear(args)?;
            Ok(measured)
        },
    )?;
    if args.workload == Workload::SqlMemory {
        medians.iter_mut().for_each(|medians| memory::compare(args.memory(), medians));
    }
    report_all(args, &medians)
}

/// Measures one engine once; returns a measurement for each variant. If the workload fails, each of
/// them has the `error`.
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
        check_answers(medians)?;
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
        None => format!("medians of {} rounds", args.rounds()),
    };
    text.push_str(&format!(
        "{how}, seed {}, {} MiB of memory for data, the disk {disk}\n",
        args.common.seed,
        args.memory() >> 20
    ));
    for contender in args.engines() {
        text.push_str(&format!("  {}\n", contender.describe()));
    }
    print(&text)?;
    let all: Vec<&Measurement> = variants.iter().flatten().collect();
    if let Some(path) = &args.common.json {
        write_json(path, &all)?;
    }
    first_error(all)
}
