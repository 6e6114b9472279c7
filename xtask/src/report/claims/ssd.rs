//! *Three ways that fractal tree indexes improve SSD*: index maintenance, compression, wear.

use crate::Result;
use crate::report::claim::{Claim, Document};
use crate::report::measured::Measured;
use crate::report::results::Results;
use crate::report::text::{bytes, number, seconds, times};

/// Names of figures of the step `wear`.
const BYTES: &str = "bytes written a row";
const REQUESTS: &str = "write requests a thousand rows";
const LIFETIME: &str =
    "lifetime of a Samsung 990 PRO 1 TB at 10000 rows/s, if it writes 1 times inside";

pub(super) fn document(r: &Results) -> Document {
    let mut claims = vec![
        Claim::measured(
            "Three secondary indexes hardly slow inserts down: rows a second at the end of a load",
            "14,532; InnoDB 1,607 (9x); 1 billion rows",
            "wear",
            index_maintenance(r),
        )
        .remark(format!(
            "Last fifth of the rows, {}; 128 MiB of memory, 1,000 rows a statement. InnoDB's rate falls \
             as its table outgrows the memory, and its load ends after a time limit",
            loaded(r)
        )),
    ];
    claims.extend([
        compression(
            r,
            "logs",
            "Compression of log-style data: raw / disk",
            "up to 26 (others 2 to 4)",
        ),
        compression(r, "json", "The same, typical data: JSON events", "5 to 10"),
    ]);
    claims.extend([
        Claim::measured(
            "The aggressive mode is slow to compress and fast to decompress",
            "no figure",
            "compression",
            aggressive(r),
        )
        .remark(
            "Lines of logs. Writers do not wait for the slow codec: rows are packed afterwards",
        ),
        Claim::measured("Fewer write requests than InnoDB", "161x", "wear", fewer(r, REQUESTS))
            .remark(
                "Requests of the server, until it has stopped, before the kernel joins neighbours",
            ),
        Claim::measured("Fewer bytes written than InnoDB", "17x", "wear", fewer(r, BYTES))
            .remark("Per row; InnoDB's dirty pages are written when it stops"),
        Claim::measured(
            "How long a drive lasts, from bytes written, its size and its amplification",
            "a method, no figure",
            "wear",
            lifetime(r),
        )
        .remark(
            "A drive of 1 TB (600 TBW) at 10,000 rows/s, which writes each byte once inside. \
             [`frondb stats --wear`](operating/wear.md) tells it of a database",
        ),
        Claim::measured(
            "Readers asked for mixed loads: TPC-C, transactions a second",
            "no figure",
            "tpcc",
            tpcc(r),
        )
        .remark("Four clients, 128 MiB of memory"),
        Claim::measured(
            "The same: reads while rows are written, in the library",
            "no figure",
            "mixed",
            mixed(r),
        )
        .remark("Two readers beside a writer at a fixed rate; 256 MiB of memory"),
    ]);
    Document { title: "Three ways that fractal tree indexes improve SSD", year: Some(2012), claims }
}

fn index_maintenance(r: &Results) -> Result<String> {
    let (ours, theirs) = last_fifths(r)?;
    Ok(format!("**{}**; InnoDB {} ({})", number(ours), number(theirs), times(ours, theirs)))
}

/// Returns the rows a second of FronDB and InnoDB in the last fifth of their rows.
pub(crate) fn last_fifths(r: &Results) -> Result<(f64, f64)> {
    let of = |engine| r.engine("wear", engine)?.number("rows_per_s_last_fifth");
    Ok((of("frondb")?, of("innodb")?))
}

/// Describes the rows of both loads.
fn loaded(r: &Results) -> String {
    let of = |engine| r.engine("wear", engine)?.number("rows").map(number);
    match (of("frondb"), of("innodb")) {
        (Ok(ours), Ok(theirs)) => format!("of {ours} (FronDB) and {theirs} (InnoDB)"),
        _ => "which were not counted".to_owned(),
    }
}

/// Returns how many times smaller a kind of data is on disk with a codec.
pub(crate) fn ratio(r: &Results, kind: &str, codec: &str) -> Result<f64> {
    let engine = if codec.starts_with("toku") { "tokudb" } else { "frondb" };
    let m = r.variant("compression", engine, &format!("{kind} {codec}"))?;
    let disk = m.number("disk_bytes")? - m.number_or("reserved_bytes", 0.0);
    Ok(m.number("raw_bytes")? / disk.max(1.0))
}

fn compression(r: &Results, kind: &str, what: &'static str, toku: &'static str) -> Claim {
    let ours = || {
        let of = |codec| ratio(r, kind, codec).map(number);
        let (standard, aggressive) = (of("standard")?, of("aggressive")?);
        let lzma = of("toku-lzma")?;
        Ok(format!("{standard}, aggressive **{aggressive}**; lzma {lzma}"))
    };
    let size = || {
        let m = r.variant("compression", "frondb", &format!("{kind} standard"))?;
        Ok::<_, String>(format!(
            "{} rows, {}",
            number(m.number("rows")?),
            bytes(m.number("raw_bytes")?)
        ))
    };
    let remark = format!(
        "{}. FronDB's size includes its filters and manifest, and the log that recovery would read; lzma is TokuDB's aggressive algorithm alone, \
         on blocks of 4 MiB",
        size().unwrap_or_else(|_| "Rows were not counted".to_owned())
    );
    Claim::measured(what, toku, "compression", ours()).remark(remark)
}

fn aggressive(r: &Results) -> Result<String> {
    let standard = r.variant("compression", "frondb", "logs standard")?;
    let aggressive = r.variant("compression", "frondb", "logs aggressive")?;
    let both = |field: &str| -> Result<String> {
        let of = |m: &Measured| m.number(field).map(number);
        Ok(format!("{}, aggressive {}", of(&standard)?, of(&aggressive)?))
    };
    Ok(format!(
        "rows/s written {}; rows/s scanned {}; packed {} after the last row",
        both("rows_per_s")?,
        both("fullscan_items_s")?,
        seconds(aggressive.number("pack_s")?)
    ))
}

/// Returns a figure of the step `wear`, of FronDB and of InnoDB.
pub(crate) fn less(r: &Results, name: &str) -> Result<(f64, f64)> {
    Ok((r.engine("wear", "frondb")?.figure(name)?, r.engine("wear", "innodb")?.figure(name)?))
}

/// Returns InnoDB's bytes and write requests, each divided by FronDB's.
pub(crate) fn wear(r: &Results) -> [Result<f64>; 2] {
    [BYTES, REQUESTS].map(|name| {
        let (ours, theirs) = less(r, name)?;
        match ours > 0.0 {
            true => Ok(theirs / ours),
            false => Err(format!("wear.json: {name} is 0")),
        }
    })
}

fn fewer(r: &Results, name: &str) -> Result<String> {
    let (ours, theirs) = less(r, name)?;
    let unit = if name == BYTES { "bytes a row" } else { "a thousand rows" };
    Ok(format!("**{}** ({} against {} {unit})", times(theirs, ours), number(ours), number(theirs)))
}

fn lifetime(r: &Results) -> Result<String> {
    let (ours, theirs) = less(r, LIFETIME)?;
    let years = |days: f64| number(days / 365.25);
    Ok(format!("**{}** years; with InnoDB {}", years(ours), years(theirs)))
}

fn tpcc(r: &Results) -> Result<String> {
    let of = |engine| r.engine("tpcc", engine)?.number("transactions_per_s");
    let (ours, theirs) = (of("frondb")?, of("innodb")?);
    Ok(format!("**{}**; InnoDB {} ({})", number(ours), number(theirs), times(ours, theirs)))
}

fn mixed(r: &Results) -> Result<String> {
    let m = r.engine("mixed", "frondb")?;
    let of = |field: &str| m.number(field).map(number);
    Ok(format!(
        "{} rows/s written; {} points/s, {} ranges of 10/s; the writer is {} late at most",
        of("paced_rows_per_s")?,
        of("point_ops_s")?,
        of("scan10_ops_s")?,
        seconds(m.number("writer_lag_ms_max")? / 1e3)
    ))
}
