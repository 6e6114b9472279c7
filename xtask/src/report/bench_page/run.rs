//! The paragraph of the page about the run: machine, commit and time.

use std::fmt::Write as _;

use crate::Result;
use crate::report::results::{RUN, Results};
use crate::report::text::number;

/// Renders the paragraph, and a warning if the run was a trial.
pub(super) fn run(r: &Results, steps: &[&str]) -> Result<String> {
    let mut text = format!(
        "\n**Machine:** {}. **Run:** {}.\n",
        machine(r)?,
        commits(r, steps)? + &when(r, steps)?
    );
    if r.scale() < 1.0 {
        let _ = write!(
            text,
            "\n**A trial** at a scale of {}: the tables fit into memory and the figures mean nothing.\n",
            r.scale()
        );
    }
    Ok(text)
}

fn machine(r: &Results) -> Result<String> {
    let of = |name: &str| r.run_text(&format!("/machine/{name}"));
    let mib = of("memory_mib")?;
    let mib: f64 = mib.parse().map_err(|_| format!("{RUN}: /machine/memory_mib is `{mib}`"))?;
    let (cores, processor, kernel) = (of("cores")?, of("processor")?, of("kernel")?);
    let memory = number(mib / 1024.0);
    Ok(format!("{cores} processors ({processor}), memory {memory} GiB, Linux {kernel}"))
}

/// Names the commit of most steps. If steps were repeated at other commits, names these with their
/// steps.
fn commits(r: &Results, steps: &[&str]) -> Result<String> {
    let mut commits: Vec<(&str, Vec<&str>)> = Vec::new();
    for step in steps {
        let commit = r.entry_text(step, "commit")?;
        match commits.iter_mut().find(|(known, _)| *known == commit) {
            Some((_, steps)) => steps.push(step),
            None => commits.push((commit, vec![step])),
        }
    }
    commits.sort_by_key(|(_, steps)| std::cmp::Reverse(steps.len()));
    let mut text = String::new();
    for (place, (commit, steps)) in commits.iter().enumerate() {
        let _ = match place {
            0 => write!(text, "commit {commit}"),
            _ => write!(text, ", but commit {commit} for {}", steps.join(", ")),
        };
    }
    Ok(text)
}

/// Formats the first and the last date, and the minutes of all steps of the page.
fn when(r: &Results, steps: &[&str]) -> Result<String> {
    let (mut dates, mut seconds) = (Vec::new(), 0.0);
    for step in steps {
        dates.push(r.entry_text(step, "date")?);
        let took = r.entry(step).and_then(|entry| entry["seconds"].as_f64());
        seconds += took.ok_or_else(|| format!("{RUN} has no `seconds` of the step {step}"))?;
    }
    dates.sort_unstable();
    let (first, last) = (dates.first().unwrap_or(&""), dates.last().unwrap_or(&""));
    Ok(format!(", {first} to {last} (UTC), {} minutes", number(seconds / 60.0)))
}
