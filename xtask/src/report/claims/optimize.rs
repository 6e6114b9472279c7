//! *TokuDB table optimization*: deletes from the left, and OPTIMIZE.

use crate::Result;
use crate::report::claim::{Claim, Document};
use crate::report::results::Results;
use crate::report::text::{number, seconds, times};

/// Links to the page and the test of the variables of OPTIMIZE.
const TESTED: &str = "[variables](../mariadb/docs/variables.md), \
                      [test](../mariadb/mysql-test/frondb/t/optimize.test)";

pub(super) fn document(r: &Results) -> Document {
    let scale = format!(
        "{}; TokuDB deleted 100 of 200 million",
        rows(r, "sql-delete-left").map_or_else(
            |_| "Rows were not counted".to_owned(),
            |rows| format!("Half of {rows} rows deleted")
        )
    );
    let claims = vec![
        Claim::measured(
            "`MIN(docid)` after half of the rows was deleted from the left",
            "26.13 s",
            "sql-delete-left",
            key(r, "first_key_ms"),
        )
        .remark(format!("Without OPTIMIZE. {scale}")),
        Claim::measured("`MAX(docid)` then", "0.00 s", "sql-delete-left", key(r, "last_key_ms"))
            .remark("Without OPTIMIZE"),
        Claim::measured(
            "OPTIMIZE repairs it: its time, and `MIN` afterwards",
            "100 s; 0.01 s",
            "optimize",
            repaired(r),
        )
        .remark(format!("{} rows", rows(r, "optimize").unwrap_or_else(|_| "Uncounted".to_owned()))),
        Claim::measured(
            "OPTIMIZE runs while others write",
            "no figure",
            "optimize",
            beside_writer(r),
        )
        .remark("A writer of 20,000 rows/s"),
        Claim::measured(
            "OPTIMIZE compared with a copy of the table",
            "no figure",
            "optimize",
            against_copy(r),
        )
        .remark("`ALTER TABLE .. FORCE` makes the copy"),
        Claim::function(
            "A throttle: leaf nodes a second, 0 to 1,000,000, 0 without a limit",
            "`tokudb_optimize_throttle`",
            "`frondb_optimize_throttle`, leaves a second",
            TESTED,
        )
        .remark(off_by(r, "throttle: off by")),
        Claim::function(
            "One index by its name",
            "`tokudb_optimize_index_name`",
            "`frondb_optimize_index_name`",
            TESTED,
        ),
        Claim::function(
            "A fraction from the left, 0.0 to 1.0",
            "`tokudb_optimize_index_fraction`",
            "`frondb_optimize_index_fraction`",
            TESTED,
        )
        .remark(off_by(r, "fraction: off by")),
        Claim::function(
            "A cleaner in the background",
            "a cleaner thread with a period",
            "background work that chooses what to compact by itself; there is no period to set",
            "[design](design/overview.md)",
        ),
    ];
    Document { title: "TokuDB table optimization", year: Some(2015), claims }
}

fn rows(r: &Results, step: &str) -> Result<String> {
    r.engine(step, "frondb")?.number("rows").map(number)
}

fn key(r: &Results, field: &str) -> Result<String> {
    key_ms(r, field).map(|ms| format!("**{}**", seconds(ms / 1e3)))
}

/// Returns the time of the statement that reads the first or the last key after the deletes.
pub(crate) fn key_ms(r: &Results, field: &str) -> Result<f64> {
    r.engine("sql-delete-left", "frondb")?.number(field)
}

/// Returns the time of `MIN` after OPTIMIZE of half of a table.
pub(crate) fn after_ms(r: &Results) -> Result<f64> {
    r.engine("optimize", "frondb")?.figure("after optimize of half: min")
}

fn repaired(r: &Results) -> Result<String> {
    let m = r.engine("optimize", "frondb")?;
    let min = m.figure("after the deletes: min")?;
    let after = after_ms(r)?;
    let took = m.figure("optimize of half")?;
    Ok(format!(
        "{} (half of the table); `MIN` {}, before it {}",
        seconds(took),
        seconds(after / 1e3),
        seconds(min / 1e3)
    ))
}

fn beside_writer(r: &Results) -> Result<String> {
    let m = r.engine("optimize", "frondb")?;
    Ok(format!(
        "the writer keeps {} % of its rate; its worst batch takes {}, and without OPTIMIZE {}",
        number(m.figure("beside a writer: rate kept")? * 100.0),
        seconds(m.figure("worst batch beside it")? / 1e3),
        seconds(m.figure("worst batch without optimize")? / 1e3)
    ))
}

fn against_copy(r: &Results) -> Result<String> {
    let m = r.engine("optimize", "frondb")?;
    let ours = m.figure("optimize of the loaded table")?;
    let copy = m.figure("copy of it")?;
    Ok(format!("{} against {} ({} the time)", seconds(ours), seconds(copy), times(ours, copy)))
}

fn off_by(r: &Results, name: &str) -> String {
    let off = r.engine("optimize", "frondb").and_then(|m| m.figure(name));
    off.map_or_else(
        |_| "How exactly it is held was not measured".to_owned(),
        |percent| format!("Step `optimize` found it {} % off", number(percent)),
    )
}
