//! The figures of a run, read from JSON. A look-up returns a figure, or the reason why there is
//! none.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::measured::{Measured, Named, named};
use super::steps::STEPS;
use crate::Result;
use crate::workspace::read;

/// The file with the machine and the steps.
pub(super) const RUN: &str = "run.json";

/// All figures.
pub(super) struct Results {
    /// The contents of run.json; null if there is none.
    pub(super) run: Value,
    /// The report of each step that was measured.
    files: BTreeMap<&'static str, Value>,
}

impl Results {
    /// Reads the files in the folder. A step without a file counts as not measured; a file that is
    /// not JSON is an error.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let run = json(&folder.join(RUN))?.unwrap_or(Value::Null);
        let mut files = BTreeMap::new();
        for step in STEPS {
            if let Some(value) = json(&folder.join(format!("{}.json", step.name)))? {
                files.insert(step.name, value);
            }
        }
        Ok(Self { run, files })
    }

    /// Returns the entries of the steps that ran.
    pub(super) fn steps(&self) -> &[Value] {
        self.run["steps"].as_array().map_or(&[], Vec::as_slice)
    }

    /// Returns the smallest scale of all steps, at most 1, the full size.
    pub(super) fn scale(&self) -> f64 {
        self.steps().iter().filter_map(|step| step["scale"].as_f64()).fold(1.0, f64::min)
    }

    /// Returns the entry of a step that ran.
    pub(super) fn entry(&self, step: &str) -> Option<&Value> {
        self.steps().iter().find(|entry| entry["name"] == step)
    }

    /// Returns the text or number at a JSON pointer in run.json.
    pub(super) fn run_text(&self, pointer: &str) -> Result<String> {
        match self.run.pointer(pointer) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(Value::Number(number)) => Ok(number.to_string()),
            _ => Err(format!("{RUN} has nothing at {pointer}")),
        }
    }

    /// Returns a text member of a step's entry in run.json.
    pub(super) fn entry_text(&self, step: &str, member: &str) -> Result<&str> {
        let text = self.entry(step).and_then(|entry| entry[member].as_str());
        text.ok_or_else(|| format!("{RUN} has no text `{member}` of the step {step}"))
    }

    /// Returns a variable of the command with which a step ran.
    pub(super) fn variable(&self, step: &str, name: &str) -> Result<&str> {
        let mut words = self.entry_text(step, "command")?.split_whitespace();
        let value = words.find_map(|word| word.split_once('=').filter(|(n, _)| *n == name));
        let none = || format!("{RUN}: the command of the step {step} has no {name}");
        value.map(|(_, value)| value).ok_or_else(none)
    }

    fn report(&self, step: &str) -> Result<&Value> {
        let entry = self.entry(step);
        if let Some(error) = entry.and_then(|entry| entry["error"].as_str()) {
            return Err(format!("step {step} failed: {error}"));
        }
        self.files.get(step).ok_or_else(|| format!("step {step} was not measured"))
    }

    /// Returns the number at a JSON pointer in a report that is one object.
    pub(super) fn at(&self, step: &str, pointer: &str) -> Result<f64> {
        let found = self.report(step)?.pointer(pointer).and_then(Value::as_f64);
        found.ok_or_else(|| format!("{step}.json has no number at {pointer}"))
    }

    /// Returns a figure by its name from a report that is a list of figures.
    pub(super) fn listed(&self, step: &str, name: &str) -> Result<Named> {
        let list = self.report(step)?.as_array().map_or(&[][..], Vec::as_slice);
        named(list, name, &format!("{step}.json"))
    }

    /// Returns FronDB's figures of all variants of a step; an error if there is none.
    pub(super) fn all_variants(&self, step: &str) -> Result<Vec<Measured<'_>>> {
        let all = self.report(step)?.as_array().map_or(&[][..], Vec::as_slice);
        let names = all.iter().filter(|m| m["engine"] == "frondb");
        let names: Vec<&str> = names.filter_map(|m| m["variant"].as_str()).collect();
        match names.is_empty() {
            true => Err(format!("{step}.json: frondb is missing")),
            false => names.into_iter().map(|name| self.variant(step, "frondb", name)).collect(),
        }
    }

    /// Returns an engine's figures of a step with one variant.
    pub(super) fn engine(&self, step: &str, engine: &str) -> Result<Measured<'_>> {
        self.variant(step, engine, "")
    }

    /// Returns an engine's figures of a variant of a step.
    pub(super) fn variant(&self, step: &str, engine: &str, variant: &str) -> Result<Measured<'_>> {
        let shown = format!("{step}.json: {engine} {variant}").trim_end().to_owned();
        let list = self.report(step)?.as_array();
        let value = list
            .and_then(|all| all.iter().find(|m| m["engine"] == engine && m["variant"] == variant))
            .ok_or_else(|| format!("{shown} is missing"))?;
        match value["error"].as_str() {
            Some(error) => Err(format!("{shown}: {error}")),
            None => Ok(Measured::new(value, shown)),
        }
    }
}

/// Reads a JSON file; none if there is no file.
fn json(path: &Path) -> Result<Option<Value>> {
    if !path.exists() {
        return Ok(None);
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let steps = if stem == "run" { String::new() } else { format!(" STEPS={stem}") };
    serde_json::from_str(&read(path)?).map(Some).map_err(|e| {
        format!("{stem}.json is not JSON ({e}): delete it and measure again, `make report{steps}`")
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    /// Creates results from JSON values in place of files.
    pub(in crate::report) fn results(run: Value, files: &[(&'static str, Value)]) -> Results {
        Results { run, files: files.iter().cloned().collect() }
    }

    #[test]
    fn a_figure_is_found_or_its_absence_has_a_reason() {
        let wear = json!([
            {"engine": "frondb", "variant": "", "rows": 3, "figures": [{"name": "a", "value": 2.5}]},
            {"engine": "innodb", "variant": "", "error": "killed"},
        ]);
        let failed = json!({"steps": [{"name": "tpcc", "error": "no server"}]});
        let all = results(failed, &[("wear", wear), ("device", json!({"reads": [{"s": 4}]}))]);
        let ours = all.engine("wear", "frondb").unwrap();
        assert_eq!((ours.number("rows"), ours.figure("a")), (Ok(3.0), Ok(2.5)));
        assert_eq!(ours.number("b"), Err("wear.json: frondb has no number `b`".to_owned()));
        assert_eq!(ours.figure("b"), Err("wear.json: frondb has no figure `b`".to_owned()));
        let reason = |step, engine| all.engine(step, engine).err().unwrap_or_default();
        assert_eq!(reason("wear", "innodb"), "wear.json: innodb: killed");
        assert_eq!(reason("wear", "myrocks"), "wear.json: myrocks is missing");
        assert_eq!(reason("tpcc", "frondb"), "step tpcc failed: no server");
        assert_eq!(reason("graph-own", "frondb"), "step graph-own was not measured");
        assert_eq!(all.at("device", "/reads/0/s"), Ok(4.0));
        assert!(all.at("device", "/reads/1/s").is_err_and(|e| e.contains("/reads/1/s")));
    }

    #[test]
    fn a_missing_file_is_not_measured_and_a_damaged_one_an_error() {
        let folder =
            std::env::temp_dir().join(format!("frondb-xtask-report-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let empty = Results::read(&folder).unwrap();
        assert!(empty.run.is_null() && empty.report("wear").is_err());
        std::fs::write(folder.join("wear.json"), "[{").unwrap();
        let error = Results::read(&folder).err().unwrap_or_default();
        assert!(error.starts_with("wear.json is not JSON"), "{error}");
        assert!(error.ends_with("`make report STEPS=wear`"), "{error}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
