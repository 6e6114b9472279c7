//! sysbench in slices: two engines have a server each, and alternate many times in each of the
//! tests. All tests use the same rows, so the slices also show whether reads get slower as rows are
//! updated.

use frondb_bench::Result;
use frondb_bench::driver::{Progress, note};
use frondb_bench::report::{self, Figure, Measurement, median_of};

use crate::args::Args;
use crate::contender::Contender;
use crate::slices::{pair_of, ratio, two_engines};
use crate::sysbench::{TESTS, Table};

/// Measures two engines alternately; returns for each test a measurement of each engine over all
/// its slices. The first measurement of a test contains the ratios of the pairs.
pub(crate) fn measure(args: &Args, pairs: usize) -> Result<Vec<Vec<Measurement>>> {
    let engines = two_engines(args)?;
    let tables = [prepare(engines[0], args)?, prepare(engines[1], args)?];
    let mut slices = TESTS.map(|_| Vec::new());
    for pair in 0..pairs {
        note(&format!("pair {} of {pairs}", pair + 1));
        for (test, slices) in TESTS.iter().zip(&mut slices) {
            let slice = |place: usize| slice_of(&tables[place], test, args.slice_seconds.ceil());
            slices.push(pair_of(pair, slice)?);
        }
    }
    let mut all = [Vec::new(), Vec::new()];
    for slices in &slices {
        for (place, measured) in all.iter_mut().enumerate() {
            measured.push(summary(slices, place, engines[1].name())?);
        }
    }
    let mut finished = Vec::new();
    for ((table, contender), measured) in tables.into_iter().zip(engines).zip(all) {
        table.host.resume()?;
        let named = move |m| contender.named(m, args.workload.name());
        finished.push(table.finish(measured)?.into_iter().map(named));
    }
    let variant = |_| finished.iter_mut().filter_map(Iterator::next).collect();
    Ok(TESTS.iter().map(variant).collect())
}

/// Starts a server, fills its table, and stops its process.
fn prepare(contender: Contender, args: &Args) -> Result<Table> {
    let progress = Progress::visible(format!("{} sysbench", contender.name()));
    let table = Table::prepare(contender, args, &progress)?;
    table.host.pause()?;
    Ok(table)
}

/// Runs a slice of an engine, whose server's process is stopped before and after the slice.
fn slice_of(table: &Table, test: &str, seconds: f64) -> Result<Measurement> {
    table.host.resume()?;
    let measured = table.test(test, seconds)?;
    table.host.pause()?;
    Ok(measured)
}

/// The medians of an engine's slices in one test.
fn summary(slices: &[[Measurement; 2]], place: usize, other: &str) -> Result<Measurement> {
    let own: Vec<Measurement> = slices.iter().map(|pair| pair[place].clone()).collect();
    let mut median = report::median(&own)?;
    median.figures = if place == 0 { ratios(slices, other) } else { Vec::new() };
    median.figures.push(Figure::plain(
        "rate, last third of the slices to the first",
        kept(&own),
        "x",
    ));
    Ok(median)
}

fn ratios(slices: &[[Measurement; 2]], other: &str) -> Vec<Figure> {
    let rates = ratio(slices, other, "transactions/s", |m| m.transactions_per_s);
    let cpu = ratio(slices, other, "server CPU", |m| m.server_cpu_us_per_row);
    rates.into_iter().chain(cpu).collect()
}

/// The median rate of the last third of the slices, divided by the median rate of the first third.
fn kept(slices: &[Measurement]) -> f64 {
    let third = slices.len().div_ceil(3);
    let rate = |slices: &[Measurement]| {
        median_of(slices.iter().filter_map(|m| m.transactions_per_s).collect())
    };
    rate(&slices[slices.len() - third..]) / rate(&slices[..third])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(rates: &[f64]) -> Vec<Measurement> {
        let of =
            |rate: &f64| Measurement { transactions_per_s: Some(*rate), ..Measurement::default() };
        rates.iter().map(of).collect()
    }

    #[test]
    fn the_last_third_is_compared_with_the_first() {
        assert_eq!(kept(&rates(&[8.0, 10.0, 12.0, 0.0, 0.0, 5.0, 4.0, 6.0, 5.0])), 0.5);
        assert_eq!(kept(&rates(&[7.0])), 1.0);
    }

    #[test]
    fn ratios_are_of_neighbours() {
        let (ours, theirs) = (rates(&[10.0, 40.0, 30.0]), rates(&[10.0, 20.0, 10.0]));
        let pairs: Vec<_> = ours.into_iter().zip(theirs).map(|(one, other)| [one, other]).collect();
        let values: Vec<f64> = ratios(&pairs, "innodb").iter().map(|f| f.value).collect();
        assert_eq!(values[..3], [1.5, 2.0, 2.5]);
    }
}
