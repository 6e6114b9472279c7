//! `sql-memory`: whether a server with very many connections stays within its engine's memory
//! option.
//!
//! ```text
//!  start   the server as it has started
//!  load    a table with one index, four times as large as the memory
//!  busy    200 connections, each of which reads points and ranges and writes
//!  rest    the same connections, idle
//!  closed  they have ended
//!  insert  one statement adds a million rows with two secondary keys to a table that has rows
//!  delete  one statement deletes half of them
//!  foreign one statement adds half a million rows, each of which refers to a remaining row
//!  status  SHOW TABLE STATUS of 5,000 tables of three indexes, just created, twice
//! ```
//!
//! No engine is responsible for the memory that the server itself needs for so many connections.
//! The control is InnoDB under the same load, with a buffer pool of 8 MiB. At each stage, the
//! growth of FronDB's server since its start, less the control's growth and 32 KiB for each
//! connection, must stay within 1.15 times the memory option. If the option is at least 200 MiB,
//! the bound also holds without subtracting the control's growth. With a smaller option, the 66 MiB
//! that the server itself needs would decide the result. A server whose engine has used little of
//! its memory proves nothing, so the report shows how much it used.

use std::thread;
use std::time::{Duration, Instant};

use frondb_bench::driver::Progress;
use frondb_bench::report::{Figure, Measurement};
use frondb_bench::{Error, Result};
use frondb_core::prng::Prng;
use frondb_mariadb_harness::Client;

use crate::args::Args;
use crate::contender::Contender;
use crate::host::Host;

const CONNECTIONS: u64 = 200;
/// Transactions of each connection.
const TRANSACTIONS: u64 = 100;
const CONNECTION_BYTES: u64 = 32 << 10;
const FLOOR: f64 = 1.15;
/// Smallest memory option for which the bound holds even if the server's own memory is counted.
const WHOLE_BYTES_MIN: u64 = 200 << 20;
/// Wait before the memory at rest is measured: an idle engine frees memory after one second.
const REST: Duration = Duration::from_secs(3);
/// The stages at which memory is bounded.
const STAGES: [&str; 8] = [
    "load, peak",
    "busy, peak",
    "at rest",
    "closed",
    "insert, two secondary keys, peak",
    "delete, peak",
    "insert, a foreign key, peak",
    "table status, peak",
];
/// The stages that allow [`CONNECTION_BYTES`] for each connection beyond the option.
const CONNECTED: [&str; 2] = ["busy, peak", "at rest"];
/// Rows that the statement of the stage *insert* adds.
const INSERTED: u64 = 1_000_000;
const TABLES: u64 = 5000;
/// Longest time of SHOW TABLE STATUS for 5,000 tables; the limit for 20,000 tables is 2 seconds.
const STATUS_SECONDS: f64 = 0.5;

pub(crate) fn measure(
    contender: Contender,
    args: &Args,
    progress: &Progress,
) -> Result<Measurement> {
    let host = Host::start(contender, args)?;
    let mut owner = host.connect()?;
    let process = host.process()?;
    let start = process.resident_bytes()?;
    let rows = args.rows();
    progress.say("load");
    load(contender, &mut owner, rows)?;
    let mut stages = vec![process.resident_peak_bytes()?];
    process.forget_peak()?;
    progress.say("busy");
    let connections = CONNECTIONS + 50;
    owner.run([format!("SET GLOBAL max_connections = {connections}")]).map_err(Error::engine)?;
    let cpu = process.cpu_time()?;
    let idle = busy(&host, rows, args.common.seed)?;
    let cpu = process.cpu_time()? - cpu;
    let busy = process.resident_peak_bytes()?;
    stages.push(busy);
    let used = used(contender, &mut owner)?;
    progress.say("rest");
    thread::sleep(REST);
    stages.push(process.resident_bytes()?);
    drop(idle);
    thread::sleep(REST);
    stages.push(process.resident_bytes()?);
    progress.say("insert, delete, foreign key");
    for statements in [insert(contender), delete(), insert_children(contender)] {
        process.forget_peak()?;
        owner.run(statements).map_err(Error::engine)?;
        stages.push(process.resident_peak_bytes()?);
    }
    progress.say("table status");
    process.forget_peak()?;
    owner.run(create_tables(contender)).map_err(Error::engine)?;
    let begun = Instant::now();
    owner.query("SHOW TABLE STATUS FROM many").map_err(Error::engine)?;
    let first = begun.elapsed().as_secs_f64();
    owner.query("SHOW TABLE STATUS FROM many").map_err(Error::engine)?;
    let second = begun.elapsed().as_secs_f64() - first;
    stages.push(process.resident_peak_bytes()?);
    drop(owner);
    let disk = host.stop()?;
    let mut figures = vec![
        Figure::plain("option", mib(args.memory_of(contender)), "MiB"),
        Figure::plain("server, at its start", mib(start), "MiB"),
    ];
    for (stage, bytes) in STAGES.iter().zip(stages) {
        let above = mib(bytes.saturating_sub(start));
        figures.push(Figure::plain(above_start(stage), above, "MiB"));
    }
    if let Some(used) = used {
        figures.push(Figure::plain("used by the engine's own count", mib(used), "MiB"));
    }
    let transactions = (CONNECTIONS * TRANSACTIONS) as f64;
    let cpu = cpu.as_secs_f64() * 1e6 / transactions;
    figures.push(Figure::plain("server CPU of a transaction", cpu, "us"));
    for (what, seconds) in [("first", first), ("again", second)] {
        let figure = Figure::plain(format!("table status of 5,000 tables, {what}"), seconds, "s");
        figures.push(match contender {
            Contender::Frondb => figure.at_most(STATUS_SECONDS, None),
            _ => figure,
        });
    }
    Ok(Measurement {
        rows: Some(rows),
        rss_empty_bytes: Some(start),
        rss_peak_bytes: Some(busy),
        disk_bytes: Some(disk),
        figures,
        ..Measurement::default()
    })
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}

fn above_start(stage: &str) -> String {
    format!("{stage}: above the start")
}

/// Adds to FronDB's measurement what it holds beyond the control, if both were measured.
pub(crate) fn compare(option: u64, medians: &mut [Measurement]) {
    let place = |contender: Contender| medians.iter().position(|m| m.engine == contender.name());
    let places = (place(Contender::Frondb), place(Contender::Innodb));
    let (Some(ours), Some(control)) = places else { return };
    let figures = held(option, &medians[ours], &medians[control]);
    medians[ours].figures.extend(figures);
}

/// FronDB's growth since the start at each stage, with and without the control's growth, as a
/// multiple of FronDB's memory option. At stages with connections, the connections' allowance is
/// subtracted.
fn held(option: u64, ours: &Measurement, control: &Measurement) -> Vec<Figure> {
    let of = |m: &Measurement, stage: &str| {
        let name = above_start(stage);
        m.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value)
    };
    let hold = |stage: &&str| {
        let allowed =
            if CONNECTED.contains(stage) { mib(CONNECTIONS * CONNECTION_BYTES) } else { 0.0 };
        let whole = of(ours, stage)? - allowed;
        let more = whole - of(control, stage)?;
        let by_option =
            |name: String, mib_held: f64| Figure::plain(name, mib_held / mib(option), "x");
        let whole = by_option(format!("{stage}: less connections, by the option"), whole);
        let name = format!("{stage}: less the control and connections, by the option");
        let is_held = option >= WHOLE_BYTES_MIN;
        Some([
            if is_held { whole.at_most(FLOOR, None) } else { whole },
            by_option(name, more).at_most(FLOOR, None),
        ])
    };
    STAGES.iter().filter_map(hold).flatten().collect()
}

/// Fills the table by one statement, which FronDB executes with its bulk loader.
fn load(contender: Contender, owner: &mut Client, rows: u64) -> Result<()> {
    let engine = contender.engine().name();
    let table = format!(
        "CREATE TABLE t (id INT PRIMARY KEY, k INT UNSIGNED NOT NULL, c VARCHAR(1000) NOT NULL, \
         KEY (k)) ENGINE={engine}"
    );
    let rows_of = "SELECT seq AS id, CRC32(seq) AS k, REPEAT(MD5(seq), 30) AS c";
    owner.run([format!("{table} {rows_of} FROM seq_1_to_{rows}")]).map_err(Error::engine)
}

/// The table has a row, so FronDB does not bulk-load it: each row is locked and written singly.
fn insert(contender: Contender) -> Vec<String> {
    let engine = contender.engine().name();
    vec![
        format!(
            "CREATE TABLE k (id INT PRIMARY KEY, a INT UNSIGNED, b INT UNSIGNED, KEY (a), KEY (b)) \
             ENGINE={engine}"
        ),
        "INSERT INTO k VALUES (0, 0, 0)".to_owned(),
        format!("INSERT INTO k SELECT seq, CRC32(seq), CRC32(seq + 7) FROM seq_1_to_{INSERTED}"),
    ]
}

fn delete() -> Vec<String> {
    vec![format!("DELETE FROM k WHERE id <= {}", INSERTED / 2)]
}

/// Each row locks a random one of the parents that the DELETE has left.
fn insert_children(contender: Contender) -> Vec<String> {
    let (engine, half) = (contender.engine().name(), INSERTED / 2);
    vec![
        format!(
            "CREATE TABLE child (id INT PRIMARY KEY, k INT NOT NULL, KEY (k), \
             FOREIGN KEY (k) REFERENCES k (id)) ENGINE={engine}"
        ),
        format!("INSERT INTO child VALUES (0, {INSERTED})"),
        format!(
            "INSERT INTO child SELECT seq, {half} + 1 + CRC32(seq) % {half} FROM seq_1_to_{half}"
        ),
    ]
}

fn create_tables(contender: Contender) -> Vec<String> {
    let engine = contender.engine().name();
    let table = |n| {
        format!(
            "CREATE TABLE many.t{n} (id INT PRIMARY KEY, a INT, b INT, KEY (a), KEY (b)) ENGINE={engine}"
        )
    };
    std::iter::once("CREATE DATABASE many".to_owned()).chain((0..TABLES).map(table)).collect()
}

/// Lets all connections work at the same time; returns them when their work is done.
fn busy(host: &Host, rows: u64, seed: u64) -> Result<Vec<Client>> {
    let clients = (0..CONNECTIONS).map(|_| host.connect()).collect::<Result<Vec<_>>>()?;
    let begin = |(client, number)| thread::spawn(move || work(client, number, rows, seed));
    let workers: Vec<_> = clients.into_iter().zip(0..).map(begin).collect();
    let panicked = |_| Error::Engine("a client panicked".to_owned());
    workers.into_iter().map(|worker| worker.join().map_err(panicked)?).collect()
}

/// The memory that the engine itself reports as used; none if it reports nothing.
fn used(contender: Contender, client: &mut Client) -> Result<Option<u64>> {
    if contender != Contender::Frondb {
        return Ok(None);
    }
    let count = "SELECT variable_value FROM information_schema.global_status \
                 WHERE variable_name = 'frondb_memory_used'";
    client.number(count).map(Some).map_err(Error::engine)
}

/// The work of one connection.
fn work(mut client: Client, number: u64, rows: u64, seed: u64) -> Result<Client> {
    let mut prng = Prng::new(seed.wrapping_add(number));
    let mut row = || prng.below(rows.max(1)) + 1;
    for _ in 0..TRANSACTIONS {
        let mut statements = vec!["BEGIN".to_owned()];
        statements.extend((0..5).map(|_| format!("SELECT c FROM t WHERE id = {}", row())));
        let lo = row();
        statements.push(format!("SELECT SUM(k) FROM t WHERE id BETWEEN {lo} AND {}", lo + 99));
        statements
            .push(format!("SELECT c FROM t WHERE id BETWEEN {lo} AND {} ORDER BY c", lo + 99));
        // Each connection updates its own rows, so that none waits for another.
        let own = row() / CONNECTIONS * CONNECTIONS + number;
        statements.push(format!("UPDATE t SET k = k + 1 WHERE id = {own}"));
        statements.push("COMMIT".to_owned());
        client.run(statements).map_err(Error::engine)?;
    }
    Ok(client)
}

#[cfg(test)]
mod tests {
    use super::*;
    use frondb_bench::report::Met;

    #[test]
    fn memory_of_the_server_itself_does_not_count_for_the_engine() {
        let m = |busy: f64, closed: f64| Measurement {
            figures: vec![
                Figure::plain(above_start("busy, peak"), busy, "MiB"),
                Figure::plain(above_start("closed"), closed, "MiB"),
            ],
            ..Measurement::default()
        };
        let figures = held(100 << 20, &m(191.25, 135.0), &m(70.0, 10.0));
        // 32 KiB for each of 200 connections are 6.25 MiB.
        let values: Vec<_> = figures.iter().map(|figure| (figure.value, figure.met)).collect();
        let (busy, closed) =
            ([(1.85, None), (1.15, Some(Met::Goal))], [(1.35, None), (1.25, Some(Met::Neither))]);
        assert_eq!(values, [busy, closed].concat());
        // From an option of 200 MiB on, the bound holds without the control too.
        let figures = held(200 << 20, &m(256.25, 230.0), &m(70.0, 10.0));
        let values: Vec<_> = figures.iter().map(|figure| (figure.value, figure.met)).collect();
        let (busy, closed) = (
            [(1.25, Some(Met::Neither)), (0.9, Some(Met::Goal))],
            [(1.15, Some(Met::Goal)), (1.1, Some(Met::Goal))],
        );
        assert_eq!(values, [busy, closed].concat());
        assert!(held(1, &m(1.0, 1.0), &Measurement::default()).is_empty());
    }

    /// The JSON file of the workload has them, and the page of figures shows them.
    #[test]
    fn the_growth_beyond_the_control_is_among_the_figures_of_frondb() {
        let of = |contender: Contender, closed: f64| Measurement {
            engine: contender.name().to_owned(),
            figures: vec![Figure::plain(above_start("closed"), closed, "MiB")],
            ..Measurement::default()
        };
        let mut medians = [of(Contender::Innodb, 10.0), of(Contender::Frondb, 110.0)];
        compare(200 << 20, &mut medians);
        let figures = |m: &Measurement| {
            let named = m.figures.iter().map(|figure| (figure.name.clone(), figure.value));
            named.skip(1).collect::<Vec<_>>()
        };
        assert!(figures(&medians[0]).is_empty());
        let whole = "closed: less connections, by the option".to_owned();
        let more = "closed: less the control and connections, by the option".to_owned();
        assert_eq!(figures(&medians[1]), [(whole, 0.55), (more, 0.5)]);
        compare(200 << 20, &mut medians[1..]);
        assert_eq!(figures(&medians[1]).len(), 2, "without a control nothing is added");
    }
}
