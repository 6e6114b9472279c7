//! Rounds in which engines of any kind run in turn, the medians of the rounds, and the checks and
//! reports at the end of every benchmark.

use std::fs;
use std::path::Path;

use serde::Serialize;

use super::note;
use crate::error::{Error, Result};
use crate::report::{self, Measurement};

/// The number of rounds, and the chart of the first one.
pub struct Rounds<'a> {
    /// Rounds, at least one.
    pub count: u64,
    /// Where to write the chart, with its title.
    pub chart: Option<(&'a Path, String)>,
}

impl Rounds<'_> {
    /// Measures all engines in each round and returns the medians, by variant and then by engine.
    /// `measure` gets an engine and whether the round is the last one, and returns a measurement
    /// for each variant. Rounds are the outer loop, so that a machine that gets slower in the
    /// course of an hour slows down every engine alike.
    pub fn run<E>(
        &self,
        engines: &[E],
        name: impl Fn(&E) -> &str,
        mut measure: impl FnMut(&E, bool) -> Result<Vec<Measurement>>,
    ) -> Result<Vec<Vec<Measurement>>> {
        let mut rounds: Vec<Vec<Vec<Measurement>>> = engines.iter().map(|_| Vec::new()).collect();
        for round in 1..=self.count {
            for (engine, results) in engines.iter().zip(&mut rounds) {
                note(&format!("round {round} of {}: {}", self.count, name(engine)));
                results.push(measure(engine, round == self.count)?);
            }
        }
        if let Some((path, title)) = &self.chart {
            let firsts = || rounds.iter().filter_map(|rounds| rounds.first()?.first());
            let series: Vec<_> =
                firsts().map(|m| (m.engine.as_str(), m.series.as_slice())).collect();
            write(path, report::rows_chart(title, &series)?)?;
        }
        medians(&rounds)
    }
}

fn medians(rounds: &[Vec<Vec<Measurement>>]) -> Result<Vec<Vec<Measurement>>> {
    let variants = rounds.first().and_then(|rounds| rounds.first()).map_or(0, Vec::len);
    let of = |rounds: &Vec<Vec<Measurement>>, variant: usize| {
        let same: Vec<_> = rounds.iter().filter_map(|r| r.get(variant).cloned()).collect();
        report::median(&same)
    };
    (0..variants).map(|variant| rounds.iter().map(|rounds| of(rounds, variant)).collect()).collect()
}

/// Checks that engines with the same rows have given the same answers.
pub fn check_answers(results: &[Measurement]) -> Result<()> {
    for (place, one) in results.iter().enumerate() {
        for other in results[place + 1..].iter().filter(|other| other.rows == one.rows) {
            for (what, ours, theirs) in [
                ("full scan", &one.fullscan_digest, &other.fullscan_digest),
                ("reads", &one.answers_digest, &other.answers_digest),
            ] {
                if let (Some(ours), Some(theirs)) = (ours, theirs)
                    && ours != theirs
                {
                    return Err(Error::Wrong(format!(
                        "{} and {} gave different answers to the same {what}: {ours}, {theirs}",
                        one.engine, other.engine
                    )));
                }
            }
        }
    }
    Ok(())
}

/// Returns the error of the first engine that has no figures, if there is one.
pub fn first_error<'a>(results: impl IntoIterator<Item = &'a Measurement>) -> Result<()> {
    match results.into_iter().find_map(|m| m.error.as_ref().map(|error| (&m.engine, error))) {
        Some((engine, error)) => Err(Error::Child(format!("{engine}: {error}"))),
        None => Ok(()),
    }
}

/// Writes a report as JSON.
pub fn write_json(path: &Path, report: &impl Serialize) -> Result<()> {
    write(path, serde_json::to_string_pretty(report).map_err(Error::engine)? + "\n")
}

fn write(path: &Path, text: String) -> Result<()> {
    fs::write(path, text).map_err(Error::io(format!("write {}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(engine: &str, rows: u64, digest: Option<&str>) -> Measurement {
        Measurement {
            engine: engine.to_owned(),
            rows: Some(rows),
            fullscan_digest: digest.map(str::to_owned),
            ..Measurement::default()
        }
    }

    #[test]
    fn engines_with_different_answers_are_found() {
        assert!(check_answers(&[of("a", 1, Some("x")), of("b", 1, Some("x"))]).is_ok());
        assert!(check_answers(&[of("a", 1, Some("x")), of("b", 2, Some("y"))]).is_ok());
        assert!(check_answers(&[of("a", 1, Some("x")), of("b", 1, None)]).is_ok());
        assert!(check_answers(&[of("a", 1, Some("x")), of("b", 1, Some("y"))]).is_err());
        let apart = [of("a", 1, Some("x")), of("b", 2, None), of("c", 1, Some("y"))];
        assert!(check_answers(&apart).is_err());
        let answered = |answers: &str| Measurement {
            answers_digest: Some(answers.to_owned()),
            ..of("a", 1, None)
        };
        assert!(check_answers(&[answered("x"), answered("x")]).is_ok());
        assert!(check_answers(&[answered("x"), answered("y")]).is_err());
    }

    #[test]
    fn each_variant_has_a_median_of_each_engine() {
        let mut number = 0;
        let mut measure = |engine: &&str, _: bool| {
            number += 1;
            Ok(vec![of(engine, number, None), of(engine, 10 * number, None)])
        };
        let rounds = Rounds { count: 3, chart: None };
        let medians = rounds.run(&["a", "b"], |engine| engine, &mut measure).unwrap();
        let rows: Vec<Vec<_>> =
            medians.iter().map(|all| all.iter().filter_map(|m| m.rows).collect()).collect();
        assert_eq!(rows, [[3, 4], [30, 40]]);
        assert!(rounds.run(&[], |engine| engine, &mut measure).unwrap().is_empty());
    }
}
