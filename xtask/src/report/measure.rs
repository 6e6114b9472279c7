//! Runs the steps one after another. A step that fails leaves its error in run.json and has no
//! figures, so the page says that they are missing. The other steps still run. The figures of each
//! step are written when it ends, so only the current step is lost when the run is interrupted.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use super::machine;
use super::results::RUN;
use super::step::{Program, Step};
use super::steps::STEPS;
use crate::step::Cmd;
use crate::workspace::{read, target_folder};
use crate::{Result, bench};

/// What to measure, and where.
pub(super) struct Plan<'a> {
    /// Factor on the sizes of all steps.
    pub(super) scale: f64,
    /// Directory for the data, on a disk.
    pub(super) dir: &'a str,
    /// The steps to run; figures of other steps stay as they are.
    pub(super) steps: Vec<&'static Step>,
    /// The folder for the figures.
    pub(super) figures: PathBuf,
}

/// Runs all steps of the plan. The error names the steps that failed.
pub(super) fn run(plan: &Plan) -> Result {
    let raw = target_folder().join("report");
    for folder in [&plan.figures, &raw] {
        fs::create_dir_all(folder)
            .map_err(|e| format!("cannot create {}: {e}", folder.display()))?;
    }
    let commit = machine::commit();
    let mut log = Log::open(&plan.figures)?;
    let start = Instant::now();
    let mut failed = Vec::new();
    for (number, step) in plan.steps.iter().enumerate() {
        announce(plan, number, start);
        let from = Instant::now();
        let file = plan.figures.join(format!("{}.json", step.name));
        let result = measure(step, plan, &raw).and_then(|text| keep(&text, &file));
        if let Err(error) = &result {
            eprintln!("error: step {}: {error}", step.name);
            // Figures of an earlier run must not appear as figures of this run.
            let _ = fs::remove_file(&file);
            failed.push(step.name);
        }
        log.add(json!({
            "name": step.name,
            "command": step.command(plan.scale),
            "scale": plan.scale,
            "commit": commit,
            "date": machine::now(),
            "seconds": from.elapsed().as_secs(),
            "error": result.err().map(|error| short(&error)),
        }))?;
    }
    println!("measured in {:.1} minutes", start.elapsed().as_secs_f64() / 60.0);
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "{} of {} steps failed: {names}; repeat them with `make report STEPS={names}`",
            failed.len(),
            plan.steps.len(),
            names = failed.join(","),
        )),
    }
}

/// Prints which step begins, and how long the remaining steps take.
fn announce(plan: &Plan, number: usize, start: Instant) {
    let step = plan.steps[number];
    let left: f64 = plan.steps[number..].iter().map(|step| step.minutes).sum();
    println!(
        "\nstep {} of {}: {} (at scale 1 about {:.1} minutes, and {left:.0} for all that are left; {:.1} minutes so far)",
        number + 1,
        plan.steps.len(),
        step.name,
        step.minutes,
        start.elapsed().as_secs_f64() / 60.0
    );
}

/// Runs one step and returns its JSON.
fn measure(step: &Step, plan: &Plan, raw: &Path) -> Result<String> {
    let file = raw.join(format!("{}.json", step.name));
    let _ = fs::remove_file(&file);
    match step.program {
        Program::Device => device(step, plan),
        Program::Bench => {
            let mut args: Vec<String> =
                step.variables(plan.scale).iter().map(|(name, v)| format!("{name}={v}")).collect();
            args.push(format!("DIR={}", plan.dir));
            args.push(format!("JSON={}", file.display()));
            bench::run(&args)?;
            read(&file)
        }
    }
}

fn device(step: &Step, plan: &Plan) -> Result<String> {
    fs::create_dir_all(plan.dir).map_err(|e| format!("cannot create {}: {e}", plan.dir))?;
    let mut cmd = Cmd::new("cargo", "run --release --package frondb-cli --bin frondb --")
        .arg("device")
        .arg("--quiet");
    for word in step.command(plan.scale).split(' ').skip(2) {
        cmd = cmd.arg(word);
    }
    let dir = fs::canonicalize(plan.dir).map_err(|e| format!("{}: {e}", plan.dir))?;
    cmd.arg(&dir.display().to_string()).output()
}

/// Shortens an error: removes the command, which the page shows anyway and which has paths of this
/// machine.
fn short(error: &str) -> String {
    match error.rsplit_once("` failed: ") {
        Some((_, status)) => format!("its command ended with {status}; its output says why"),
        None => error.to_owned(),
    }
}

/// Writes the figures to `file`, without the members that no page needs.
fn keep(text: &str, file: &Path) -> Result {
    let mut value: Value =
        serde_json::from_str(text).map_err(|e| format!("its report is not JSON: {e}"))?;
    slim(&mut value);
    write(file, &value)
}

/// Members that no page needs: samples over time, single points, and a path of the machine.
const LEFT_OUT: [&str; 3] = ["series", "points", "directory"];

/// Removes null members and the members in [`LEFT_OUT`].
fn slim(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, value| !value.is_null() && !LEFT_OUT.contains(&name.as_str()));
            members.values_mut().for_each(slim);
        }
        Value::Array(items) => items.iter_mut().for_each(slim),
        _ => {}
    }
}

fn write(file: &Path, value: &Value) -> Result {
    let text = serde_json::to_string_pretty(value).map_err(|e| format!("cannot write: {e}"))?;
    fs::write(file, text + "\n").map_err(|e| format!("cannot write {}: {e}", file.display()))
}

/// run.json: the machine, and how each step ran. A step that has not run yet keeps its old entry,
/// so a run that is interrupted loses nothing.
struct Log {
    file: PathBuf,
    value: Value,
}

impl Log {
    /// Opens the log in the folder of the figures, or creates it.
    fn open(figures: &Path) -> Result<Self> {
        let file = figures.join(RUN);
        let old: Value = match file.exists() {
            true => serde_json::from_str(&read(&file)?)
                .map_err(|e| format!("{} is not JSON: delete it ({e})", file.display()))?,
            false => Value::Null,
        };
        let machine = machine::describe();
        let mut steps = old["steps"].as_array().cloned().unwrap_or_default();
        steps.retain(|entry| STEPS.iter().any(|step| entry["name"] == step.name));
        // The pages name one machine, so figures of another one are dropped. benchmarks.md and
        // README.md are then not written until this machine has measured every step.
        if old["machine"] != machine && !steps.is_empty() {
            println!(
                "{} has figures of another machine or kernel: they are dropped",
                file.display()
            );
            for entry in steps.drain(..) {
                let name = entry["name"].as_str().unwrap_or_default();
                let _ = fs::remove_file(figures.join(format!("{name}.json")));
            }
        }
        Ok(Self { file, value: json!({"machine": machine, "steps": steps}) })
    }

    /// Replaces the entry of a step, and writes the file.
    fn add(&mut self, entry: Value) -> Result {
        if let Some(all) = self.value["steps"].as_array_mut() {
            all.retain(|old| old["name"] != entry["name"]);
            all.push(entry);
        }
        write(&self.file, &self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_kept_without_nulls_samples_and_paths() {
        let mut value = json!([{"a": 1, "b": null, "series": [1, 2], "c": {"points": [], "d": 2, "directory": "/here"}}]);
        slim(&mut value);
        assert_eq!(value, json!([{"a": 1, "c": {"d": 2}}]));
    }

    #[test]
    fn errors_of_commands_are_shortened() {
        let long = "`cargo run --json /here` failed: exit status: 1";
        assert_eq!(short(long), "its command ended with exit status: 1; its output says why");
        assert_eq!(short("no disk"), "no disk");
    }

    #[test]
    fn an_interrupted_run_keeps_the_entries_of_the_other_steps() {
        let folder = std::env::temp_dir().join(format!("frondb-xtask-log-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let entry = |name: &str, commit: &str| json!({"name": name, "commit": commit});
        let old = ["wear", "no-such-step", "tpcc"].map(|name| entry(name, "a"));
        let run = json!({"machine": machine::describe(), "steps": old});
        write(&folder.join(RUN), &run).unwrap();
        Log::open(&folder).unwrap().add(entry("wear", "b")).unwrap();
        let log = Log::open(&folder).unwrap();
        assert_eq!(log.value["steps"], json!([entry("tpcc", "a"), entry("wear", "b")]));
        write(&folder.join(RUN), &json!({"machine": {"cores": 0}, "steps": old})).unwrap();
        assert_eq!(Log::open(&folder).unwrap().value["steps"], json!([]), "of another machine");
        fs::write(folder.join(RUN), "{").unwrap();
        assert!(Log::open(&folder).is_err_and(|e| e.contains("is not JSON: delete it")));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_report_that_is_no_json_is_an_error() {
        let file = std::env::temp_dir().join("frondb-xtask-report-no-json");
        assert!(keep("{", &file).is_err_and(|e| e.contains("not JSON")));
        assert!(!file.exists());
    }
}
