//! The commands that measure. Each is an existing benchmark. The sizes are chosen so that the whole
//! report takes less than 90 minutes on two processors; SCALE multiplies them.

mod list;

pub(super) use list::STEPS;

use super::step::Step;
use crate::Result;

/// Parses SCALE.
pub(super) fn scale(text: &str) -> Result<f64> {
    let scale: f64 = text.parse().map_err(|_| format!("SCALE is a number, not `{text}`"))?;
    match scale > 0.0 && scale <= 10.0 {
        true => Ok(scale),
        false => Err(format!("SCALE is above 0 and at most 10, not {text}")),
    }
}

/// Returns the steps that STEPS names, separated by commas; all steps if it is not given.
pub(super) fn chosen(names: Option<&str>) -> Result<Vec<&'static Step>> {
    let Some(names) = names else { return Ok(STEPS.iter().collect()) };
    let find = |name: &str| {
        STEPS.iter().find(|step| step.name == name).ok_or_else(|| {
            let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
            format!("unknown step `{name}`; known are {}", known.join(", "))
        })
    };
    names.split(',').map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_multiplies_rows_and_seconds() {
        let wear = chosen(Some("wear")).unwrap()[0];
        let full = "make bench WORKLOAD=wear ENGINES=frondb,innodb MEMORY=128MiB ROWS=5000000 \
                    LIMIT_SECONDS=180";
        assert_eq!(wear.command(1.0), full);
        assert!(wear.command(0.1).ends_with("ROWS=500000 LIMIT_SECONDS=18"));
        assert!(wear.command(1e-9).ends_with("ROWS=50000 LIMIT_SECONDS=10"));
        let device = chosen(Some("device")).unwrap()[0];
        assert_eq!(device.command(0.2), "frondb device --json --write --seconds 8");
    }

    #[test]
    fn names_are_unique_and_the_whole_takes_less_than_90_minutes() {
        let names: std::collections::BTreeSet<&str> = STEPS.iter().map(|step| step.name).collect();
        assert_eq!(names.len(), STEPS.len());
        assert!(STEPS.iter().map(|step| step.minutes).sum::<f64>() < 90.0);
    }

    #[test]
    fn wrong_variables_are_refused() {
        assert!(chosen(Some("wear,no-such")).is_err_and(|e| e.contains("unknown step `no-such`")));
        for text in ["x", "0", "-1", "11", "NaN"] {
            assert!(scale(text).is_err(), "{text}");
        }
        assert_eq!(scale("0.5"), Ok(0.5));
    }
}
