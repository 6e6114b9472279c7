//! *LinkBench, InnoDB vs TokuDB; the library as a key-value store; a conference*.

use crate::Result;
use crate::report::claim::{Claim, Document};
use crate::report::measured::Measured;
use crate::report::results::Results;
use crate::report::text::{bytes, number, seconds, times};

pub(super) fn document(r: &Results) -> Document {
    let mut claims = linkbench(r);
    claims.push(Claim::function(
        "Fanout is an option, 16 unless it is set; the document used 128",
        "`fanout`",
        "`TreeOptions::fanout`; under SQL the table option `FANOUT`; 16 unless it is set",
        "[options](operating/options.md), [SQL](../mariadb/README.md#features-and-limits)",
    ));
    claims.extend(key_value(r));
    claims.push(Claim::function(
        "Compound keys; a table is a primary tree and secondary trees: the table `metrics`",
        "described",
        "works, with the keys of the document",
        "[example](../crates/frondb/examples/metrics.rs), \
         [test](../mariadb/mysql-test/frondb/t/metrics.test)",
    ));
    claims.push(Claim::function(
        "The same library under MongoDB: TokuMX, TokuMXse",
        "existed",
        "**not yet**: there is no engine for MongoDB",
        "[README](../README.md)",
    ));
    let title = "LinkBench, InnoDB vs TokuDB; the library as a key-value store; a conference";
    Document { title, year: Some(2015), claims }
}

fn linkbench(r: &Results) -> Vec<Claim> {
    let scale = |step: &str| {
        let nodes = r.engine(step, "frondb").and_then(|m| m.number("rows")).map(number);
        nodes.map_or_else(
            |_| "Nodes were not counted".to_owned(),
            |nodes| format!("{nodes} nodes, two clients, 128 MiB of memory"),
        )
    };
    vec![
        Claim::measured(
            "LinkBench on a SATA SSD, operations a second",
            "14,633; InnoDB 6,029 (2.4x)",
            "graph-sata",
            operations(r, "graph-sata"),
        )
        .remark(format!(
            "{}; a disk that is limited to 10,000 requests and 400 MB a second",
            scale("graph-sata")
        )),
        Claim::measured(
            "LinkBench on NVMe, operations a second",
            "20,594; InnoDB 27,739 (0.74x)",
            "graph-own",
            operations(r, "graph-own"),
        )
        .remark(format!("{}; the disk as it is", scale("graph-own"))),
        Claim::measured("Bytes written, compared with InnoDB", "half", "graph-own", written(r))
            .remark("An operation, in the measured time"),
        Claim::measured(
            "Its operations vary much, because of checkpoints",
            "a large variance, no figure",
            "graph-own",
            longest(r),
        )
        .remark("FronDB has no dirty pages and no page checkpoints ([design](design/overview.md))"),
    ]
}

/// Returns the operations a second of FronDB and of InnoDB.
pub(crate) fn rates(r: &Results, step: &str) -> Result<(f64, f64)> {
    let of = |engine| r.engine(step, engine)?.number("transactions_per_s");
    Ok((of("frondb")?, of("innodb")?))
}

fn operations(r: &Results, step: &str) -> Result<String> {
    let (ours, theirs) = rates(r, step)?;
    Ok(format!("**{}**; InnoDB {} ({})", number(ours), number(theirs), times(ours, theirs)))
}

fn written(r: &Results) -> Result<String> {
    // Both engines run for the same time, so bytes divided by the rate compare bytes per operation.
    let of = |engine| -> Result<f64> {
        let m = r.engine("graph-own", engine)?;
        Ok(m.number("written_bytes")? / m.number("transactions_per_s")?.max(1.0))
    };
    let (ours, theirs) = (of("frondb")?, of("innodb")?);
    Ok(format!("**{}**", times(ours, theirs)))
}

fn longest(r: &Results) -> Result<String> {
    let of = |m: &Measured| -> Result<String> {
        let ms = |field: &str| m.number(field).map(|ms| seconds(ms / 1e3));
        Ok(format!("{}, {}", ms("transaction_ms_p999")?, ms("transaction_ms_max")?))
    };
    Ok(format!(
        "99.9th percentile and longest operation {}; InnoDB {}",
        of(&r.engine("graph-own", "frondb")?)?,
        of(&r.engine("graph-own", "innodb")?)?
    ))
}

/// Returns a claim, with FronDB's figure, for each operation of the library.
fn key_value(r: &Results) -> Vec<Claim> {
    let per_second = |step: &str, field: &str, of: &str| {
        let rate = r.engine(step, "frondb")?.number(field)?;
        Ok(format!("**{}** {of}", number(rate)))
    };
    let loaded = r.engine("iibench", "frondb").and_then(|m| {
        Ok(format!("{} rows, {} raw", number(m.number("rows")?), bytes(m.number("raw_bytes")?)))
    });
    let loaded = loaded.unwrap_or_else(|_| "Rows were not counted".to_owned());
    let none = "no figure";
    vec![
        Claim::measured("Add", none, "iibench", per_second("iibench", "rows_per_s", "rows/s"))
            .remark(format!("Each with three secondary entries, 1,000 a batch; {loaded}")),
        Claim::measured(
            "Update",
            none,
            "overwrite",
            per_second("overwrite", "rows_per_s", "rows/s"),
        )
        .remark("Random rows of one tree are overwritten"),
        Claim::measured(
            "Remove",
            none,
            "sql-delete-left",
            per_second("sql-delete-left", "deletes_per_s", "rows/s"),
        )
        .remark("Under SQL, 10,000 rows a statement, with their secondary entries"),
        Claim::measured("Look up", none, "iibench", per_second("iibench", "point_ops_s", "keys/s"))
            .remark("One thread, 256 MiB of memory"),
        Claim::measured(
            "Look up a range",
            none,
            "iibench",
            per_second("iibench", "scan10_ops_s", "ranges of 10 entries/s"),
        )
        .remark("One thread"),
    ]
}
