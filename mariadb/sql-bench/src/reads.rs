//! Reads over one connection. Checks an answer if the check does not affect the rate.

use frondb_bench::rows::probes;
use frondb_bench::workload::TableReads;
use frondb_bench::{Error, Result};
use frondb_core::prng::Prng;
use frondb_mariadb_harness::Client;

/// Reads the benchmark's table over a connection.
pub(crate) struct OfClient<'a>(pub(crate) &'a mut Client);

impl TableReads for OfClient<'_> {
    fn point(&mut self, prng: &mut Prng, rows: u64) -> Result<()> {
        let id = u64::from_be_bytes(probes::primary(prng, rows));
        let found = rows_of(self.0, &format!("SELECT data FROM purchases WHERE id = {id}"))?;
        match found {
            1 => Ok(()),
            _ => Err(Error::Wrong(format!("row {id} was acknowledged and is not found"))),
        }
    }

    fn scan10(&mut self, prng: &mut Prng) -> Result<()> {
        let [price, customer] = numbers(probes::price_customer(prng));
        let query = format!(
            "SELECT price, customer, id FROM purchases FORCE INDEX (price_customer) WHERE price >= {price} \
             AND (price > {price} OR customer >= {customer}) ORDER BY price, customer LIMIT 10"
        );
        rows_of(self.0, &query).map(drop)
    }

    fn scan1000(&mut self, prng: &mut Prng) -> Result<()> {
        let [register, price] = numbers(probes::register_price(prng));
        let query = format!(
            "SELECT register, price, customer, id FROM purchases FORCE INDEX (register_price_customer) \
             WHERE register >= {register} AND (register > {register} OR price >= {price}) \
             ORDER BY register, price, customer LIMIT 1000"
        );
        rows_of(self.0, &query).map(drop)
    }
}

/// The two 32-bit numbers of a key.
fn numbers(key: [u8; 8]) -> [u64; 2] {
    let key = u64::from_be_bytes(key);
    [key >> 32, key & u64::from(u32::MAX)]
}

/// Counts and sums up all entries of the first secondary index, so that the engine reads every
/// entry. Returns the entries a second, and the count and the sums as text.
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
