//! *What is a performance model for SSDs?*

use crate::Result;
use crate::report::claim::{Claim, Document};
use crate::report::results::Results;
use crate::report::text::{bytes, kib, number, seconds};

/// The document's claim about the fit.
const MODEL: &str = "T = S + B/W, fitted to measurements of a real file";

/// Number of threads of the concurrent reads.
const THREADS: u32 = 16;

pub(super) fn document(r: &Results) -> Document {
    let hardware = "Another drive: the figures describe drives, not engines";
    let claims = vec![
        Claim::measured(MODEL, "fitted; no figure", "device", line(r, "reads", 1))
            .remark("Random reads by one thread"),
        Claim::measured(
            "The same: reads by threads",
            "fitted; no figure",
            "device",
            line(r, "reads", THREADS),
        )
        .remark("16 threads; S and W of the device as a whole"),
        Claim::measured("The same: writes", "fitted; no figure", "device", line(r, "writes", 1))
            .remark("Random writes by one thread"),
        Claim::measured("Half-power size S*W: reads", "60 KB", "device", half_power(r, "reads", 1))
            .remark(hardware),
        Claim::measured(
            "Half-power size: reads by threads",
            "30 KB",
            "device",
            half_power(r, "reads", THREADS),
        )
        .remark(hardware),
        Claim::measured("Half-power size: writes", "40 KB", "device", half_power(r, "writes", 1))
            .remark(hardware),
        Claim::measured("It says which block size to use", "as above", "device", advice(r)).remark(
            "Half-power size on disk, times the compression; [devices.md](operating/devices.md)",
        ),
    ];
    Document { title: "What is a performance model for SSDs?", year: None, claims }
}

/// Returns a field of the line that was fitted to an operation by this number of threads. There is
/// no line if a limit of the device determined the times.
fn fitted(r: &Results, operation: &str, threads: u32, field: &str) -> Result<f64> {
    let at =
        |line: usize, field: &str| r.at("device", &format!("/{operation}/lines/{line}/{field}"));
    let lines = (0..).take_while(|line| at(*line, "threads").is_ok());
    let is_wanted = |line: &usize| at(*line, "threads") == Ok(f64::from(threads));
    let line = lines.into_iter().find(is_wanted).ok_or_else(|| {
        // If the whole step is missing, its error is the better reason.
        let no_step = r.at("device", "/seconds").err();
        no_step.unwrap_or_else(|| format!("device.json has no line of {operation} by {threads}"))
    })?;
    at(line, field)
}

fn line(r: &Results, operation: &str, threads: u32) -> Result<String> {
    let of = |field: &str| fitted(r, operation, threads, field);
    Ok(format!(
        "S = {}, W = {}/s (the worst point is {} % off)",
        seconds(of("startup_seconds")?),
        bytes(of("bytes_per_second")?),
        number(of("worst_residual")? * 100.0)
    ))
}

fn half_power(r: &Results, operation: &str, threads: u32) -> Result<String> {
    fitted(r, operation, threads, "half_power_bytes").map(bytes)
}

fn advice(r: &Results) -> Result<String> {
    Ok(format!(
        "`block_bytes` {}, `slice_bytes_min` {}",
        kib(r.at("device", "/blocks/block_bytes")?),
        kib(r.at("device", "/slices/slice_bytes_min")?)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::results::tests::results;
    use serde_json::{Value, json};

    #[test]
    fn a_line_is_found_by_its_threads() {
        let line = json!({"threads": 16, "half_power_bytes": 30_000.0});
        let device = json!({"seconds": 30.0, "reads": {"lines": [line]}});
        let r = results(Value::Null, &[("device", device)]);
        assert_eq!(half_power(&r, "reads", THREADS), Ok("30.0 KB".to_owned()));
        let missing = half_power(&r, "reads", 1);
        assert_eq!(missing, Err("device.json has no line of reads by 1".to_owned()));
        let nothing = half_power(&results(Value::Null, &[]), "reads", 1);
        assert_eq!(nothing, Err("step device was not measured".to_owned()));
    }
}
