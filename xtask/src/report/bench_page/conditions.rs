//! Fills the text of a section with the variables of the commands that ran, so that the text stays
//! right when the sizes of the steps change.

use super::row::Section;
use crate::Result;
use crate::report::results::Results;
use crate::report::text::number;

/// Returns `text` with each `{NAME}` replaced by this variable of the section's first step, and
/// each `{step.NAME}` by the variable of the named step.
pub(super) fn filled(r: &Results, section: &Section, text: &str) -> Result<String> {
    fill(text, |name| variable(r, section, name))
}

/// Returns `text` with each name in braces replaced by its value.
pub(super) fn fill(text: &str, value: impl Fn(&str) -> Result<String>) -> Result<String> {
    let mut parts = text.split('{');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) =
            part.split_once('}').ok_or_else(|| format!("no brace closes `{{{part}`"))?;
        out.push_str(&value(name)?);
        out.push_str(rest);
    }
    Ok(out)
}

/// Returns the variable `NAME` of the section's first step, or `step.NAME` of another step.
pub(super) fn variable(r: &Results, section: &Section, name: &str) -> Result<String> {
    let (step, name) = name.split_once('.').unwrap_or((section.steps[0], name));
    Ok(shown(name, r.variable(step, name)?))
}

/// Formats the value of a variable for a sentence.
fn shown(variable: &str, value: &str) -> String {
    match (variable, value.parse::<f64>()) {
        ("ROWS", Ok(rows)) if rows >= 1e6 && rows % 1e5 == 0.0 => format!("{} M", rows / 1e6),
        ("ROWS", Ok(rows)) if rows >= 1e3 => number(rows),
        // A number with a unit: `256MiB` becomes `256 MiB`.
        (_, Err(_)) => match value.find(|c: char| !c.is_ascii_digit()) {
            Some(unit) if unit > 0 => format!("{} {}", &value[..unit], &value[unit..]),
            _ => value.to_owned(),
        },
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::results::tests::results;
    use serde_json::json;

    #[test]
    fn variables_of_commands_stand_in_the_text() {
        let section = Section {
            title: "t",
            steps: &["one"],
            variant: "",
            peers: &[],
            text: "",
            short: "",
            rows: &[],
        };
        let run = json!({"steps": [
            {"name": "one", "command": "make bench ROWS=10000000 MEMORY=256MiB LIMIT_SECONDS=0.50"},
            {"name": "two", "command": "make bench ROWS=819200"},
        ]});
        let r = results(run, &[]);
        let of = |text: &str| filled(&r, &section, text);
        assert_eq!(of("{ROWS} rows, {MEMORY}."), Ok("10 M rows, 256 MiB.".to_owned()));
        assert_eq!(of("{two.ROWS} and {LIMIT_SECONDS} s"), Ok("819,200 and 0.50 s".to_owned()));
        let error = of("{SLICES}").unwrap_err();
        assert_eq!(error, "run.json: the command of the step one has no SLICES");
        assert!(of("{three.ROWS}").is_err_and(|e| e.contains("run.json has no text `command`")));
        assert!(of("{ROWS").is_err());
    }
}
