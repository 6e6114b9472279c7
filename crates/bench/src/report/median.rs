//! The median of several rounds, figure by figure.
//!
//! The code takes the medians of the numbers in the JSON form, so that a new figure of
//! [`Measurement`] needs no code here. The figures of one report may come from different rounds:
//! each is the median of its own values.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Figure, Measurement, ReadCase};
use crate::error::{Error, Result};

/// Returns the median of each figure over the rounds that have it. If a round failed, returns that
/// round with its error.
///
/// # Errors
/// If there is no round, or the rounds give different answers to the same reads.
pub fn median(rounds: &[Measurement]) -> Result<Measurement> {
    let Some(first) = rounds.first() else {
        return Err(Error::Usage("there is no round to take a median of".to_owned()));
    };
    if let Some(failed) = rounds.iter().find(|round| round.error.is_some()) {
        return Ok(Measurement { rounds: Some(rounds.len() as u64), ..failed.clone() });
    }
    if rounds.iter().any(|round| round.rows == first.rows && digests(round) != digests(first)) {
        return Err(Error::Wrong(format!(
            "{} gave different answers to the same reads in different rounds",
            first.engine
        )));
    }
    let plain = |round: &Measurement| Measurement { series: Vec::new(), ..round.clone() };
    let mut result: Measurement = middle_fields(&rounds.iter().map(plain).collect::<Vec<_>>())?;
    result.rounds = Some(rounds.len() as u64);
    result.figures = middle_figures(rounds);
    result.reads = middle_cases(rounds)?;
    Ok(result)
}

/// Returns the digests, which must be equal in rounds with the same rows.
fn digests(round: &Measurement) -> [&Option<String>; 2] {
    [&round.fullscan_digest, &round.answers_digest]
}

/// Returns the first round, each number replaced by the median of that number over all rounds.
/// There must be at least one round.
fn middle_fields<T: DeserializeOwned>(rounds: &[impl Serialize]) -> Result<T> {
    let objects: Vec<Value> = rounds
        .iter()
        .map(serde_json::to_value)
        .collect::<std::result::Result<_, _>>()
        .map_err(Error::engine)?;
    let mut result = objects[0].clone();
    if let Some(fields) = result.as_object_mut() {
        for (key, field) in fields {
            let values: Vec<&Value> = objects.iter().filter_map(|object| object.get(key)).collect();
            if let Some(middle) = middle(&values) {
                *field = middle;
            }
        }
    }
    serde_json::from_value(result).map_err(Error::engine)
}

/// Returns the cases of reads with the median of each figure. All rounds have the same cases.
fn middle_cases(rounds: &[Measurement]) -> Result<Vec<ReadCase>> {
    let middle = |case: &ReadCase| {
        let all = rounds.iter().flat_map(|round| &round.reads);
        middle_fields(&all.filter(|other| other.is_same_case(case)).collect::<Vec<_>>())
    };
    rounds.first().into_iter().flat_map(|round| &round.reads).map(middle).collect()
}

/// Returns the list of figures with the median value of each, by name.
fn middle_figures(rounds: &[Measurement]) -> Vec<Figure> {
    let first = rounds.iter().map(|round| &round.figures).max_by_key(|figures| figures.len());
    let middle = |figure: &Figure| {
        let all = rounds.iter().flat_map(|round| &round.figures);
        let same = all.filter(|other| other.name == figure.name);
        let values: Vec<f64> = same.map(|other| other.value).collect();
        Figure { value: median_of(values), ..figure.clone() }.judged()
    };
    first.into_iter().flatten().map(middle).collect()
}

/// Returns the median: the middle number, or the mean of the two middle numbers; 0 for an empty
/// list.
#[must_use]
pub fn median_of(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.get(half) {
        None => 0.0,
        Some(&high) if values.len() % 2 == 1 => high,
        Some(&high) => f64::midpoint(values[half - 1], high),
    }
}

/// Returns the median of the values that are numbers. The mean of two whole numbers is rounded down
/// to a whole number.
fn middle(values: &[&Value]) -> Option<Value> {
    let mut numbers: Vec<&Value> = values.iter().copied().filter(|v| v.is_number()).collect();
    numbers.sort_by(|a, b| a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0)));
    let half = numbers.len() / 2;
    let high = *numbers.get(half)?;
    if numbers.len() % 2 == 1 {
        return Some(high.clone());
    }
    let low = numbers[half - 1];
    match (low.as_u64(), high.as_u64()) {
        (Some(low), Some(high)) => Some(low.midpoint(high).into()),
        _ => Some(f64::midpoint(low.as_f64()?, high.as_f64()?).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(rows_per_s: f64, disk_bytes: u64, point_ops_s: Option<f64>) -> Measurement {
        Measurement {
            engine: "x".to_owned(),
            rows_per_s: Some(rows_per_s),
            disk_bytes: Some(disk_bytes),
            point_ops_s,
            ..Measurement::default()
        }
    }

    #[test]
    fn each_figure_has_a_median_of_its_own() {
        let rounds = [round(3.0, 10, None), round(1.0, 30, Some(5.0)), round(2.0, 20, None)];
        let result = median(&rounds).unwrap();
        assert_eq!(result.rounds, Some(3));
        assert_eq!((result.rows_per_s, result.disk_bytes), (Some(2.0), Some(20)));
        assert_eq!(result.point_ops_s, Some(5.0));
        assert_eq!(result.scan10_ops_s, None);
    }

    #[test]
    fn two_rounds_meet_in_the_middle() {
        let result = median(&[round(1.0, 10, None), round(2.0, 21, None)]).unwrap();
        assert_eq!((result.rows_per_s, result.disk_bytes), (Some(1.5), Some(15)));
    }

    #[test]
    fn a_failed_round_is_not_hidden_by_good_ones() {
        let failed = Measurement { error: Some("killed".to_owned()), ..round(9.0, 9, None) };
        let result = median(&[round(1.0, 1, None), failed]).unwrap();
        assert_eq!(result.error.as_deref(), Some("killed"));
    }

    #[test]
    fn named_figures_have_medians_too() {
        let with = |value: f64| Measurement {
            figures: vec![Figure::plain("a", value, "x").at_least(2.0, 4.0)],
            ..round(1.0, 1, None)
        };
        let result = median(&[with(1.0), with(5.0), with(3.0)]).unwrap();
        assert_eq!(result.figures, [Figure::plain("a", 3.0, "x").at_least(2.0, 4.0)]);
        assert_eq!((median_of(vec![4.0, 1.0]), median_of(Vec::new())), (2.5, 0.0));
    }

    #[test]
    fn each_case_of_reads_has_medians() {
        let case = |threads, ops_s, device_reads_per_op| ReadCase {
            read: "point".to_owned(),
            threads,
            ops_s,
            device_reads_per_op,
            ..ReadCase::default()
        };
        let with = |first: f64, second: Option<f64>| Measurement {
            reads: vec![case(1, first, None), case(8, 2.0 * first, second)],
            ..round(1.0, 1, None)
        };
        let result = median(&[with(1.0, None), with(5.0, Some(4.0)), with(3.0, None)]).unwrap();
        assert_eq!(result.reads, [case(1, 3.0, None), case(8, 6.0, Some(4.0))]);
    }

    #[test]
    fn different_answers_are_an_error() {
        let with = |digest: &str| Measurement {
            fullscan_digest: Some(digest.to_owned()),
            ..round(1.0, 1, None)
        };
        assert!(median(&[with("a"), with("a")]).is_ok());
        assert!(matches!(median(&[with("a"), with("b")]), Err(Error::Wrong(_))));
    }
}
