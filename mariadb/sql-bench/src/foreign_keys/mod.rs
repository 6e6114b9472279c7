//! `sql-foreign-keys`: inserts orders with two foreign keys, deletes a parent with 100,000 children
//! by a cascade, and adds a foreign key to the orders, alone and beside a writer.
//!
//! ```text
//!  parents loaded -> orders in statements of 1,000 rows    rows a second, server CPU a row
//!  DELETE of a customer with 100,000 orders, one in eight  time
//!  ALTER .. ADD FOREIGN KEY, alone and beside a writer     rows a second; the writer's rate kept
//! ```
//!
//! An order refers to a random customer and product, so its index entries go to random places.

mod orders;

use std::time::{Duration, Instant};

use frondb_bench::driver::Progress;
use frondb_bench::report::{Figure, Measurement};
use frondb_bench::{Error, Result};
use frondb_mariadb_harness::Client;

use crate::args::Args;
use crate::contender::Contender;
use crate::host::Host;
use crate::writer::{BATCH, Writer};

use orders::Orders;

/// Children of customer 0, which is deleted, and how many of them each of the first statements
/// inserts. The children are spread over the first 800,000 orders.
const CHILDREN: u64 = 100_000;
const CHILDREN_A_BATCH: u64 = 125;
/// Seconds that the writer works alone, to measure its rate without an ALTER.
const ALONE_SECONDS: u64 = 10;

/// Names of the figures that are compared between engines.
pub(crate) const CASCADE: &str = "delete of a parent with 100,000 children";
pub(crate) const ADD: &str = "add a foreign key: rows/s";

/// Measures one engine once.
pub(crate) fn measure(
    contender: Contender,
    args: &Args,
    progress: &Progress,
) -> Result<Measurement> {
    let host = Host::start(contender, args)?;
    let mut client = host.connect()?;
    orders::create(&mut client, contender.engine().name(), args.rows() / 5)?;
    host.settle()?;
    let mut m = Measurement::default();
    progress.say("inserting children");
    let mut orders = Orders::new(args.common.seed, args.rows() / 5);
    insert(&host, &mut client, &mut orders, args, &mut m)?;
    progress.say("deleting a parent");
    m.figures.push(Figure::plain(CASCADE, cascade(&mut client)?, "s"));
    host.settle()?;
    progress.say("adding a foreign key");
    add_key(&host, &mut client, orders, &mut m)?;
    m.rss_peak_bytes = Some(host.process()?.resident_peak_bytes()?);
    drop(client);
    m.disk_bytes = Some(host.stop()?);
    Ok(m)
}

/// Inserts orders until there are enough or the time limit is reached. Then, without measuring,
/// inserts the children of customer 0 that are still missing.
fn insert(
    host: &Host,
    client: &mut Client,
    orders: &mut Orders,
    args: &Args,
    m: &mut Measurement,
) -> Result<()> {
    let process = host.process()?;
    let (cpu, io, begin) = (process.cpu_time()?, process.io()?, Instant::now());
    let limit = args.common.limit_seconds.map(Duration::from_secs_f64);
    let (mut rows, mut children, mut statement) = (0, 0, Vec::new());
    while rows < args.rows() && limit.is_none_or(|limit| begin.elapsed() < limit) {
        let of_first = if children < CHILDREN { CHILDREN_A_BATCH } else { 0 };
        orders.next(&mut statement, of_first);
        client.query(&statement).map_err(Error::engine)?;
        children += of_first;
        rows += BATCH;
    }
    let (seconds, count) = (begin.elapsed().as_secs_f64(), rows.max(1) as f64);
    m.rows = Some(rows);
    m.rows_per_s = Some(count / seconds.max(1e-9));
    m.server_cpu_us_per_row = Some((process.cpu_time()? - cpu).as_secs_f64() * 1e6 / count);
    m.set_writes(&io, &process.io()?);
    while children < CHILDREN {
        orders.next(&mut statement, CHILDREN_A_BATCH);
        client.query(&statement).map_err(Error::engine)?;
        children += CHILDREN_A_BATCH;
    }
    Ok(())
}

/// Deletes customer 0; returns the seconds that the DELETE took.
fn cascade(client: &mut Client) -> Result<f64> {
    let before = client.number("SELECT COUNT(*) FROM orders").map_err(Error::engine)?;
    let begin = Instant::now();
    client.query("DELETE FROM customers WHERE id = 0").map_err(Error::engine)?;
    let seconds = begin.elapsed().as_secs_f64();
    let after = client.number("SELECT COUNT(*) FROM orders").map_err(Error::engine)?;
    match before - after {
        CHILDREN => Ok(seconds),
        gone => Err(Error::Wrong(format!("{gone} children were deleted, not {CHILDREN}"))),
    }
}

/// Adds a third foreign key, whose index already exists: first alone, then beside a writer of
/// orders.
fn add_key(
    host: &Host,
    client: &mut Client,
    mut orders: Orders,
    m: &mut Measurement,
) -> Result<()> {
    let rows = client.number("SELECT COUNT(*) FROM orders").map_err(Error::engine)?;
    let alone = add(client)?;
    client.query("ALTER TABLE orders DROP FOREIGN KEY of_seller").map_err(Error::engine)?;
    host.settle()?;
    m.figures.push(Figure::plain("add a foreign key", alone, "s"));
    m.figures.push(Figure::plain(ADD, rows as f64 / alone.max(1e-9), "/s"));
    let writer = Writer::start(host.connect()?, Duration::ZERO, move |statement| {
        orders.next(statement, 0);
    });
    std::thread::sleep(Duration::from_secs(ALONE_SECONDS));
    let before = writer.lap();
    let seconds = add(client)?;
    let beside = writer.lap();
    writer.end()?;
    m.figures.push(Figure::plain("add a foreign key beside a writer", seconds, "s"));
    let kept = Figure::plain("its rate kept", beside.rows_per_s / before.rows_per_s, "x");
    m.figures.push(kept.at_least(0.8, 0.95));
    m.figures.push(Figure::plain("its worst statement", beside.worst_ms, "ms"));
    Ok(())
}

/// Executes the ALTER; returns its seconds.
fn add(client: &mut Client) -> Result<f64> {
    let begin = Instant::now();
    client
        .query(
            "ALTER TABLE orders ADD CONSTRAINT of_seller FOREIGN KEY (seller) REFERENCES sellers (id)",
        )
        .map_err(Error::engine)?;
    Ok(begin.elapsed().as_secs_f64())
}
