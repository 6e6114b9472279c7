//! The table of ratios at the top of heritage.md.

use std::fmt::Write as _;

use super::claims::{linkbench, optimize, ssd};
use super::results::Results;
use super::text::{number, seconds};
use crate::Result;

/// Renders the table. The section about missing figures at the end of the page has the reasons.
pub(super) fn table(r: &Results) -> String {
    let [bytes, requests] = ssd::wear(r);
    let rows = [
        ("rows a second at the end of a load with three secondary indexes", "9x", inserts(r)),
        ("LinkBench on a SATA SSD, operations a second", "2.4x", graph(r, "graph-sata")),
        ("LinkBench on NVMe, operations a second", "0.74x", graph(r, "graph-own")),
        ("bytes written a row, times fewer", "17x", bytes.map(times)),
        ("write requests a row, times fewer", "161x", requests.map(times)),
    ];
    let mut table =
        "| against InnoDB | TokuDB, by the documents | FronDB, here |\n|---|---|---|\n".to_owned();
    for (what, toku, ours) in rows {
        let _ = writeln!(table, "| {what} | {toku} | {} |", shown(ours));
    }
    let min = optimize::key_ms(r, "first_key_ms").map(|ms| seconds(ms / 1e3));
    let _ = write!(
        table,
        "\n`MIN` of the key, after half of the rows was deleted from the left: 26.13 s with TokuDB, {} with FronDB. \
         Log lines become up to 26 times smaller by the document, {} times with FronDB's codec `aggressive`.\n",
        shown(min),
        shown(ssd::ratio(r, "logs", "aggressive").map(number))
    );
    table
}

fn inserts(r: &Results) -> Result<String> {
    let (ours, theirs) = ssd::last_fifths(r)?;
    Ok(times(ours / theirs.max(f64::MIN_POSITIVE)))
}

fn graph(r: &Results, step: &str) -> Result<String> {
    let (ours, theirs) = linkbench::rates(r, step)?;
    Ok(times(ours / theirs.max(f64::MIN_POSITIVE)))
}

fn times(ratio: f64) -> String {
    format!("{}x", number(ratio))
}

fn shown(figure: Result<String>) -> String {
    figure.map_or_else(|_| "not measured".to_owned(), |figure| format!("**{figure}**"))
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::results;
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn ratios_are_computed_or_not_measured() {
        let graph = json!([
            {"engine": "frondb", "variant": "", "transactions_per_s": 30.0},
            {"engine": "innodb", "variant": "", "transactions_per_s": 20.0},
        ]);
        let text = table(&results(Value::Null, &[("graph-own", graph)]));
        assert!(text.contains("NVMe, operations a second | 0.74x | **1.50x** |"), "{text}");
        assert!(text.contains("SATA SSD, operations a second | 2.4x | not measured |"), "{text}");
    }
}
