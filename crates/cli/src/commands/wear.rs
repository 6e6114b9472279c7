//! `stats --wear`: prints how much a database has written to its files, and how long a drive lasts.

use frondb::{Db, Wear, WriteCause, Writes, Written};
use serde_json::{Map, Value, json};

use super::session::of_database;
use crate::args::{Common, Stats};
use crate::failure::Failure;
use crate::output::Output;

/// Prints how much the database has written, as last recorded. Does not open the database.
pub(super) fn print(common: &Common, args: &Stats) -> Result<(), Failure> {
    let recorded = Db::recorded_wear(&args.dir).map_err(|error| of_database(&args.dir, error))?;
    let wear = recorded.ok_or_else(|| {
        let dir = args.dir.display();
        Failure::not_found(format!("the database in {dir} has no record of its writes"))
            .with_hint("this version records them from its first open on")
    })?;
    let tbw = args.tbw.unwrap_or(0.0);
    let mut out = Output::new(common);
    out.line(&as_json(&wear, tbw), |_| wear.page(tbw).to_string().trim_end().to_owned())?;
    out.finish()
}

fn as_json(wear: &Wear, tbw: f64) -> Value {
    json!({
        "since": wear.since,
        "until": wear.until,
        "last_hour": period(&wear.last_hour, tbw),
        "total": period(&wear.total, tbw),
    })
}

fn period(written: &Written, tbw: f64) -> Value {
    let sums = &written.sums;
    let writes = |writes: Writes| json!({ "bytes": writes.bytes, "requests": writes.requests });
    let causes: Map<String, Value> = WriteCause::ALL
        .iter()
        .map(|&cause| (cause.name().into(), writes(sums.of(cause))))
        .collect();
    let mut period = json!({
        "seconds": written.seconds,
        "user_bytes": sums.user_bytes(),
        "all": writes(sums.total()),
        "causes": causes,
        "amplification": sums.amplification(),
        "bytes_per_second": written.bytes_per_second(),
    });
    if tbw > 0.0 {
        let days = |(inside, lifetime): (f64, Option<std::time::Duration>)| {
            let days = lifetime.map(|long| long.as_secs_f64() / (24.0 * 3600.0));
            json!({ "drive_amplification": inside, "days": days })
        };
        period["tbw"] = tbw.into();
        period["lifetimes"] = written.lifetimes(tbw).map(days).into_iter().collect();
    }
    period
}
