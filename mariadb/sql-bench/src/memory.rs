//! `sql-memory`: whether a server keeps to the memory its engine was given, with very many connections.
//!
//! ```text
//!  empty   the server with all connections open, none of which has touched a table
//!  load    a table with one index, several times as large as the memory
//!  busy    every connection reads points and ranges and writes, at once
//!  rest    the same connections, idle
//! ```
//!
//! What the empty process takes (the server's own memory of each connection too) is subtracted; the rest
//! is held to 1.15 times the option, and 32 KiB a connection. A server whose engine has hardly used what it was
//! given shows nothing: the report says how much that was.

use std::thread;
use std::time::Duration;

use frondb_bench::driver::Progress;
use frondb_bench::report::{Figure, Measurement};
use frondb_bench::{Error, Result};
use frondb_mariadb_harness::Client;

use crate::args::Args;
use crate::contender::Contender;
use crate::host::Host;

const CONNECTIONS: u64 = 200;
/// Transactions of each connection.
const TRANSACTIONS: u64 = 100;
const CONNECTION_BYTES: u64 = 32 << 10;
const FLOOR: f64 = 1.15;

pub(crate) fn measure(
    contender: Contender,
    args: &Args,
    progress: &Progress,
) -> Result<Measurement> {
    let host = Host::start(contender, args)?;
    let mut owner = host.connect()?;
    owner
        .run([format!("SET GLOBAL max_connections = {}", CONNECTIONS + 50)])
        .map_err(Error::engine)?;
    let mut clients = (0..CONNECTIONS).map(|_| host.connect()).collect::<Result<Vec<_>>>()?;
    for client in &mut clients {
        client.run(["SELECT 1"]).map_err(Error::engine)?;
    }
    let process = host.process()?;
    let empty = process.resident_bytes()?;
    let rows = args.rows();
    progress.say("load");
    // Made by the bulk loader; a kilobyte a row, so that rows are few where they are more than the memory.
    let table = "CREATE TABLE t (id INT PRIMARY KEY, k INT UNSIGNED NOT NULL, c VARCHAR(1000) NOT NULL, KEY (k))";
    let rows_of = "SELECT seq AS id, CRC32(seq) AS k, REPEAT(MD5(seq), 30) AS c";
    owner.run([format!("{table} {rows_of} FROM seq_1_to_{rows}")]).map_err(Error::engine)?;
    let loaded = process.resident_bytes()?;
    progress.say("busy");
    let seed = args.seed;
    let workers: Vec<_> = clients
        .into_iter()
        .zip(0..)
        .map(|(client, number)| thread::spawn(move || work(client, number, rows, seed)))
        .collect();
    let mut idle = Vec::new();
    for worker in workers {
        let client = worker.join().map_err(|_| Error::Engine("a client panicked".to_owned()))?;
        idle.push(client?);
    }
    let peak = process.resident_peak_bytes()?;
    let used = used(contender, &mut owner)?;
    thread::sleep(Duration::from_secs(3));
    let rest = process.resident_bytes()?;
    drop(idle);
    drop(owner);
    host.stop()?;
    let mib = |bytes: u64| bytes as f64 / 1_048_576.0;
    let allowed = args.memory() + CONNECTIONS * CONNECTION_BYTES;
    let ratio = |bytes: u64| {
        bytes.saturating_sub(empty + CONNECTIONS * CONNECTION_BYTES) as f64 / args.memory() as f64
    };
    let mut figures = vec![
        Figure::plain("busy, above empty / option", ratio(peak), "x").at_most(FLOOR, None),
        Figure::plain("at rest, above empty / option", ratio(rest), "x").at_most(FLOOR, None),
        Figure::plain("option and 32 KiB a connection", mib(allowed), "MiB"),
        Figure::plain("server, empty", mib(empty), "MiB"),
        Figure::plain("server, loaded", mib(loaded), "MiB"),
        Figure::plain("server, peak", mib(peak), "MiB"),
        Figure::plain("server, at rest", mib(rest), "MiB"),
    ];
    if let Some(used) = used {
        let share = used as f64 / args.memory() as f64;
        figures.push(Figure::plain("used by the engine's own count / option", share, "x"));
    }
    Ok(Measurement {
        rows: Some(rows),
        rss_peak_bytes: Some(peak),
        figures,
        ..Measurement::default()
    })
}

/// What the engine says it has taken, if it says so.
fn used(contender: Contender, client: &mut Client) -> Result<Option<u64>> {
    if contender != Contender::Frondb {
        return Ok(None);
    }
    let count = "SELECT variable_value FROM information_schema.global_status \
                 WHERE variable_name = 'frondb_memory_used'";
    client.number(count).map(Some).map_err(Error::engine)
}

/// What one connection does.
fn work(mut client: Client, number: u64, rows: u64, seed: u64) -> Result<Client> {
    let mut at = seed.wrapping_add(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut row = || {
        at = at.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (at >> 33) % rows.max(1) + 1
    };
    for _ in 0..TRANSACTIONS {
        let mut statements = vec!["BEGIN".to_owned()];
        statements.extend((0..5).map(|_| format!("SELECT c FROM t WHERE id = {}", row())));
        let lo = row();
        statements.push(format!("SELECT SUM(k) FROM t WHERE id BETWEEN {lo} AND {}", lo + 99));
        statements
            .push(format!("SELECT c FROM t WHERE id BETWEEN {lo} AND {} ORDER BY c", lo + 99));
        // Each has rows of its own: they wait for each other nowhere.
        let own = row() / CONNECTIONS * CONNECTIONS + number;
        statements.push(format!("UPDATE t SET k = k + 1 WHERE id = {own}"));
        statements.push("COMMIT".to_owned());
        client.run(statements).map_err(Error::engine)?;
    }
    Ok(client)
}
