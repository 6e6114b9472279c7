//! Reads over one connection for a fixed time. Checks the answers where the check does not affect
//! the rate.

use frondb_bench::workload::{Timed, timed};
use frondb_bench::{Error, Result};
use frondb_core::prng::Prng;
use frondb_mariadb_harness::Client;

const REGISTERS: u64 = 1_000;
const CUSTOMERS: u64 = 100_000;
const PRICES: u64 = 50_000;

/// Reads rows by primary key for `seconds`, uniformly over `rows` rows.
pub(crate) fn points(
    client: &mut Client,
    prng: &mut Prng,
    rows: u64,
    seconds: f64,
) -> Result<Timed> {
    timed(seconds, || {
        let id = prng.below(rows.max(1));
        let found = rows_of(client, &format!("SELECT data FROM purchases WHERE id = {id}"))?;
        match found {
            1 => Ok(()),
            _ => Err(Error::Wrong(format!("row {id} was acknowledged and is not found"))),
        }
    })
}

/// Reads ten entries of the first secondary index from a random (price, customer).
pub(crate) fn scan10(client: &mut Client, prng: &mut Prng, seconds: f64) -> Result<Timed> {
    timed(seconds, || {
        let (price, customer) = (prng.below(PRICES), prng.below(CUSTOMERS));
        let query = format!(
            "SELECT price, customer, id FROM purchases FORCE INDEX (price_customer) WHERE price >= {price} \
             AND (price > {price} OR customer >= {customer}) ORDER BY price, customer LIMIT 10"
        );
        rows_of(client, &query).map(drop)
    })
}

/// Reads a thousand entries of the second secondary index from a random (register, price).
pub(crate) fn scan1000(client: &mut Client, prng: &mut Prng, seconds: f64) -> Result<Timed> {
    timed(seconds, || {
        let (register, price) = (prng.below(REGISTERS), prng.below(PRICES));
        let query = format!(
            "SELECT register, price, customer, id FROM purchases FORCE INDEX (register_price_customer) \
             WHERE register >= {register} AND (register > {register} OR price >= {price}) \
             ORDER BY register, price, customer LIMIT 1000"
        );
        rows_of(client, &query).map(drop)
    })
}

/// Counts and sums up all entries of the first secondary index, so that the engine reads them all.
/// Returns the entries a second, and the count and the sums as text.
pub(crate) fn full_scan(client: &mut Client, expected: u64) -> Result<(f64, String)> {
    let begin = std::time::Instant::now();
    let query = "SELECT COUNT(*), SUM(price), SUM(customer), SUM(id) FROM purchases \
                 FORCE INDEX (price_customer) WHERE price >= 0";
    let reply = client.query(query).map_err(Error::engine)?;
    let values: Vec<String> = reply.rows.first().into_iter().flatten().map(text).collect();
    if values.first().map(String::as_str) != Some(expected.to_string().as_str()) {
        return Err(Error::Wrong(format!("a full scan found {values:?} and not {expected} rows")));
    }
    Ok((expected as f64 / begin.elapsed().as_secs_f64().max(1e-9), values.join(" ")))
}

fn text(value: &Option<Vec<u8>>) -> String {
    value.as_deref().map_or_else(|| "NULL".into(), |v| String::from_utf8_lossy(v).into_owned())
}

fn rows_of(client: &mut Client, query: &str) -> Result<usize> {
    Ok(client.query(query).map_err(Error::engine)?.rows.len())
}
