//! Statements that count and group over one table that fits into memory, as reports do. They show
//! how much it costs to read an index entry and to seek in an index.

use std::time::Instant;

use frondb_bench::driver::Progress;
use frondb_bench::report::Measurement;
use frondb_bench::{Error, Result};
use frondb_mariadb_harness::Client;

use crate::args::Args;
use crate::contender::Contender;
use crate::host::Host;

/// Rows of an INSERT.
const BATCH: usize = 1_000;

/// The queries, with their names in the report. Every answer is one row.
pub(crate) const QUERIES: [(&str, &str); 7] = [
    ("count", "SELECT COUNT(*) FROM counts"),
    ("covered range", "SELECT SUM(a + b) FROM counts FORCE INDEX (ab) WHERE a BETWEEN 100 AND 900"),
    ("count distinct", "SELECT COUNT(DISTINCT a) FROM counts"),
    (
        "group by",
        "SELECT COUNT(*), SUM(n) FROM (SELECT a, COUNT(*) n FROM counts GROUP BY a) groups",
    ),
    (
        "min and max of a group",
        "SELECT SUM(least), SUM(most) FROM (SELECT a, MIN(b) least, MAX(b) most FROM counts GROUP BY a) groups",
    ),
    ("rows by primary key", "SELECT SUM(LENGTH(c)) FROM counts"),
    (
        "covered join",
        "SELECT COUNT(*) FROM (SELECT a, b FROM counts WHERE a < 50) x JOIN counts y ON y.a = x.a + 100 WHERE y.b < 5",
    ),
];

/// Measures one engine once; returns a measurement for each query.
pub(crate) fn measure(
    contender: Contender,
    args: &Args,
    progress: &Progress,
) -> Result<Vec<Measurement>> {
    let host = Host::start(contender, args)?;
    let mut client = host.connect()?;
    progress.say("loading");
    load(&mut client, contender, args)?;
    host.settle()?;
    let mut all = Vec::new();
    for (name, sql) in QUERIES {
        progress.say(name);
        let expected = answer(&mut client, sql)?;
        let process = host.process()?;
        let (cpu, begin) = (process.cpu_time()?, Instant::now());
        let mut count = 0u32;
        while count == 0 || begin.elapsed().as_secs_f64() < args.read_seconds {
            let found = answer(&mut client, sql)?;
            if found != expected {
                return Err(Error::Wrong(format!(
                    "{name} returned {found}, but {expected} before"
                )));
            }
            count += 1;
        }
        let statements = f64::from(count);
        all.push(Measurement {
            variant: name.to_owned(),
            rows: Some(args.rows()),
            transactions_per_s: Some(statements / begin.elapsed().as_secs_f64().max(1e-9)),
            // In this workload the field has the microseconds of a statement.
            server_cpu_us_per_row: Some(
                (process.cpu_time()? - cpu).as_secs_f64() * 1e6 / statements,
            ),
            fullscan_digest: Some(expected),
            ..Measurement::default()
        });
    }
    drop(client);
    let disk = host.stop()?;
    for m in &mut all {
        m.disk_bytes = Some(disk);
    }
    Ok(all)
}

fn load(client: &mut Client, contender: Contender, args: &Args) -> Result<()> {
    let create = format!(
        "CREATE TABLE counts (id INT PRIMARY KEY, a INT NOT NULL, b INT NOT NULL, c VARCHAR(40) NOT NULL, \
         KEY a (a), KEY ab (a, b)) ENGINE={}",
        contender.engine().name()
    );
    let rows = args.rows();
    // Insert in small statements, so that each row goes into every index as from an application:
    // one statement with all rows would be a bulk load.
    let inserts = (1..=rows).step_by(BATCH).map(|from| {
        format!(
            "INSERT INTO counts SELECT seq, CRC32(seq) % 1000, CRC32(seq + 7) % 100000, MD5(seq) \
             FROM seq_{from}_to_{}",
            rows.min(from + BATCH as u64 - 1)
        )
    });
    let analyze = "ANALYZE TABLE counts".to_owned();
    let statements = std::iter::once(create).chain(inserts).chain([analyze]);
    client.run(statements).map_err(Error::engine)
}

/// The only row of an answer, as text.
fn answer(client: &mut Client, sql: &str) -> Result<String> {
    let reply = client.query(sql).map_err(Error::engine)?;
    let [row] = reply.rows.as_slice() else {
        return Err(Error::Wrong(format!("{} rows and not one: {sql}", reply.rows.len())));
    };
    let text = |value: &Option<Vec<u8>>| {
        value.as_deref().map_or_else(|| "NULL".into(), String::from_utf8_lossy).into_owned()
    };
    Ok(row.iter().map(text).collect::<Vec<_>>().join(" "))
}
