//! Slices: two engines have a server each, and their clients work alternately for a few seconds,
//! many times. The ratio of two neighbouring slices is not affected by changes of the machine's
//! speed that last longer than a slice, so the ratios of many pairs show differences that rounds do
//! not.
//!
//! ```text
//!  pair 0          pair 1          pair 2
//!  one    other    other  one      one    other    ...
//! ```
//!
//! While one server's slice runs, the kernel stops the other server's process (SIGSTOP), so a
//! server does its background work only in its own slices.

use frondb_bench::driver::{Progress, note};
use frondb_bench::report::{Figure, Measurement, median_of};
use frondb_bench::{Error, Result};

use crate::args::Args;
use crate::contender::Contender;
use crate::timed::{Spent, Stage};

/// Seconds at the beginning of each slice that are not measured: the processor's caches and the
/// server's timers recover from the stop.
const LEAD_IN_SECONDS: f64 = 0.5;

/// Measures two engines alternately; returns a measurement of each engine over all its slices. The
/// first measurement contains the ratios of the pairs.
pub(crate) fn measure(args: &Args, pairs: usize) -> Result<Vec<Measurement>> {
    let [one, other] = two_engines(args)?;
    let mut stages = [(one, prepare(one, args)?), (other, prepare(other, args)?)];
    let mut slices = Vec::new();
    for pair in 0..pairs {
        note(&format!("pair {} of {pairs}", pair + 1));
        slices.push(slices_of(&mut stages, pair, args.slice_seconds)?);
    }
    let figures = ratios(&slices, other.name());
    let mut all = Vec::new();
    for (place, (contender, stage)) in stages.into_iter().enumerate() {
        let mut sum = Spent::nothing(stage.kinds());
        slices.iter().for_each(|pair| sum.then(&pair[place]));
        stage.host.resume()?;
        all.push(contender.named(stage.finish(args, &sum)?, args.workload.name()));
    }
    all[0].figures.splice(0..0, figures);
    Ok(all)
}

/// The two engines of the command line; an error if it names more or fewer.
pub(crate) fn two_engines(args: &Args) -> Result<[Contender; 2]> {
    <[Contender; 2]>::try_from(args.engines()).map_err(|_| {
        Error::Usage(
            "slices compare two engines; name them, for example ENGINES=frondb,innodb".to_owned(),
        )
    })
}

/// Starts a server, loads its tables, warms it up, and stops its process.
fn prepare(contender: Contender, args: &Args) -> Result<Stage> {
    let progress = Progress::visible(format!("{} {}", contender.name(), args.workload.name()));
    let mut stage = Stage::prepare(contender, args, &progress)?;
    progress.say("warm-up");
    stage.run(args.warm_up_seconds)?;
    stage.host.pause()?;
    Ok(stage)
}

/// Runs a slice of each engine; returns the results in the order of `stages`.
fn slices_of(
    stages: &mut [(Contender, Stage); 2],
    pair: usize,
    seconds: f64,
) -> Result<[Spent; 2]> {
    pair_of(pair, |place| {
        let stage = &mut stages[place].1;
        stage.host.resume()?;
        stage.run(LEAD_IN_SECONDS)?;
        let spent = stage.run(seconds)?;
        stage.host.pause()?;
        Ok(spent)
    })
}

/// Calls `slice` for each of the two engines; returns the results in the order of the engines. The
/// engine that runs first alternates, so that a steady change of the machine's speed favours
/// neither engine.
pub(crate) fn pair_of<T>(pair: usize, mut slice: impl FnMut(usize) -> Result<T>) -> Result<[T; 2]> {
    if pair.is_multiple_of(2) {
        return Ok([slice(0)?, slice(1)?]);
    }
    let late = slice(1)?;
    Ok([slice(0)?, late])
}

fn ratios(slices: &[[Spent; 2]], other: &str) -> Vec<Figure> {
    let of = |what, value: fn(&Spent) -> Option<f64>| ratio(slices, other, what, value);
    let rates = of("transactions/s", |spent| Some(spent.outcome.per_s()));
    let cpu = of("server CPU", |spent| Some(spent.server_cpu_us()));
    let slow =
        of("99th percentile", |spent| Some(spent.outcome.all.quantile_ms(0.99).unwrap_or(0.0)));
    rates.into_iter().chain(cpu).chain(slow).collect()
}

/// The median and the quartiles of the ratios of a value, over the pairs in which both engines have
/// it.
pub(crate) fn ratio<T>(
    slices: &[[T; 2]],
    other: &str,
    what: &str,
    value: impl Fn(&T) -> Option<f64>,
) -> [Figure; 3] {
    let each = slices.iter().filter_map(|[ours, theirs]| Some(value(ours)? / value(theirs)?));
    let figure = |(part, ratio)| Figure::plain(format!("{other}: {what}: {part}"), ratio, "x");
    let [lower, median, upper] = quartiles(each.collect());
    [("lower quartile", lower), ("median of the pairs", median), ("upper quartile", upper)]
        .map(figure)
}

/// The lower quartile, the median and the upper quartile: the medians of the lower half, of all
/// values and of the upper half.
fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let half = values.len().div_ceil(2);
    let upper = values[values.len() - half..].to_vec();
    [median_of(values[..half].to_vec()), median_of(values), median_of(upper)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_alternates() {
        let mut ran = Vec::new();
        for pair in 0..3 {
            let slice = |place| {
                ran.push(place);
                Ok(place)
            };
            assert_eq!(pair_of(pair, slice).unwrap(), [0, 1]);
        }
        assert_eq!(ran, [0, 1, 1, 0, 0, 1]);
    }

    #[test]
    fn quartiles_are_medians_of_halves() {
        assert_eq!(quartiles(vec![5.0, 1.0, 2.0, 4.0, 3.0]), [2.0, 3.0, 4.0]);
        assert_eq!(quartiles(vec![4.0, 1.0, 2.0, 3.0]), [1.5, 2.5, 3.5]);
        assert_eq!(quartiles(vec![1.0]), [1.0; 3]);
    }
}
