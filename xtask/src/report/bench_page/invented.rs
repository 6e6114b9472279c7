//! Invented figures for tests: all figures that the sections need. In each of them FronDB is twice
//! as good as the other engines.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::row::{Compare, Quantity, Row, Section};
use super::sections::sections;
use crate::report::results::Results;
use crate::report::results::tests::results;
use crate::report::steps::STEPS;

/// The JSON file of each step, and run.json.
pub(crate) struct Invented {
    pub(crate) run: Value,
    pub(crate) files: BTreeMap<&'static str, Value>,
}

impl Invented {
    pub(crate) fn new() -> Self {
        let entry = |step: &crate::report::step::Step| {
            json!({"name": step.name, "command": step.command(1.0), "scale": 1.0, "seconds": 60,
                   "commit": "0123abcd", "date": "2026-12-01 10:00", "error": null})
        };
        let steps: Vec<Value> = STEPS.iter().map(entry).collect();
        let machine =
            json!({"cores": 2, "processor": "AMD EPYC", "memory_mib": 24_105, "kernel": "6.18"});
        let mut invented =
            Self { run: json!({"machine": machine, "steps": steps}), files: BTreeMap::new() };
        for section in sections() {
            for row in section.rows {
                invented.add(section, row);
            }
        }
        invented
    }

    pub(crate) fn results(&self) -> Results {
        let files: Vec<_> = self.files.iter().map(|(step, value)| (*step, value.clone())).collect();
        results(self.run.clone(), &files)
    }

    /// Returns the measurement of an engine in a step. Creates it if it is missing.
    pub(crate) fn measurement(
        &mut self,
        step: &'static str,
        engine: &str,
        variant: &str,
    ) -> &mut Map<String, Value> {
        let file = self.files.entry(step).or_insert_with(|| json!([])).as_array_mut().unwrap();
        let is_it = |m: &Value| m["engine"] == engine && m["variant"] == variant;
        let at = file.iter().position(is_it).unwrap_or_else(|| {
            file.push(json!({"engine": engine, "variant": variant, "figures": [], "reads": []}));
            file.len() - 1
        });
        file[at].as_object_mut().unwrap()
    }

    fn add(&mut self, section: &Section, row: &Row) {
        let (step, variant) = row.place.unwrap_or((section.steps[0], section.variant));
        if let Quantity::Listed(name) = row.what {
            let file = self.files.entry(step).or_insert_with(|| json!([]));
            file.as_array_mut().unwrap().push(figure(name, ours(row), row.is_less_better));
            return;
        }
        fill(self.measurement(step, "frondb", variant), row, ours(row));
        if row.compare == Compare::Nothing {
            return;
        }
        for peer in section.peers {
            fill(self.measurement(step, peer.engine, variant), row, theirs(row));
            if let Compare::Pairs(what) = row.compare {
                let median = ours(row) / theirs(row);
                let ours = self.measurement(step, "frondb", variant);
                for (part, value) in [
                    ("lower quartile", median * 0.95),
                    ("median of the pairs", median),
                    ("upper quartile", median * 1.05),
                ] {
                    let name = format!("{}: {what}: {part}", peer.engine);
                    push(ours, "figures", figure(&name, value, false));
                }
            }
        }
    }
}

/// FronDB's figure.
fn ours(row: &Row) -> f64 {
    if row.is_less_better { 0.75 } else { 24_690.0 }
}

/// The figure of another engine.
fn theirs(row: &Row) -> f64 {
    if row.is_less_better { 1.5 } else { 12_345.0 }
}

/// Puts the figure that a row shows into a measurement.
fn fill(m: &mut Map<String, Value>, row: &Row, value: f64) {
    match row.what {
        Quantity::Member(name) => drop(m.insert(name.to_owned(), json!(value))),
        Quantity::Per(one, other) | Quantity::PerThousand(one, other) => {
            m.insert(one.to_owned(), json!(value));
            m.insert(other.to_owned(), json!(1.0));
        }
        Quantity::Less(one, other) => {
            m.insert(one.to_owned(), json!(value + 1.0));
            m.insert(other.to_owned(), json!(1.0));
        }
        Quantity::Figure(name) => push(m, "figures", figure(name, value, row.is_less_better)),
        Quantity::Highest(ending) => {
            push(m, "figures", figure(&format!("a case{ending}"), value, true));
        }
        Quantity::Case((read, keys, threads), member) => {
            let case = json!({"read": read, "keys": keys, "threads": threads, member: value});
            let cases = m["reads"].as_array_mut().unwrap();
            let is_it =
                |c: &&mut Value| c["read"] == read && c["keys"] == keys && c["threads"] == threads;
            match cases.iter_mut().find(is_it) {
                Some(known) => known[member] = json!(value),
                None => cases.push(case),
            }
        }
        Quantity::RawPerData => {
            m.insert("raw_bytes".to_owned(), json!(value));
            m.insert("disk_bytes".to_owned(), json!(2.0));
            m.insert("reserved_bytes".to_owned(), json!(1.0));
        }
        Quantity::Listed(_) => {}
    }
}

fn push(m: &mut Map<String, Value>, list: &str, value: Value) {
    m[list].as_array_mut().unwrap().push(value);
}

fn figure(name: &str, value: f64, is_most: bool) -> Value {
    json!({"name": name, "value": value, "floor": 1.0, "at_most": is_most})
}
