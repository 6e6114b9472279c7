//! The tables, the orders, and a thread that writes orders as fast as it can.

use std::io::Write;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use frondb_bench::{Error, Result};
use frondb_core::prng::Prng;
use frondb_core::sync::{Arc, Mutex};
use frondb_mariadb_harness::Client;

/// Rows of a statement, which is also a commit.
pub(super) const BATCH: u64 = 1_000;
const SELLERS: u64 = 10_000;

/// Creates the tables with `parents` customers and products each.
pub(super) fn create(client: &mut Client, engine: &str, parents: u64) -> Result<()> {
    let parent = |name: &str| {
        format!(
            "CREATE TABLE {name} (id BIGINT UNSIGNED PRIMARY KEY, name VARCHAR(64) NOT NULL) ENGINE={engine}"
        )
    };
    let fill = |name: &str, rows: u64| {
        format!("INSERT INTO {name} SELECT seq, md5(seq) FROM seq_0_to_{}", rows - 1)
    };
    let orders = format!(
        "CREATE TABLE orders (id BIGINT UNSIGNED PRIMARY KEY, customer BIGINT UNSIGNED NOT NULL, \
         product BIGINT UNSIGNED NOT NULL, seller BIGINT UNSIGNED NOT NULL, price INT NOT NULL, \
         note VARCHAR(64) NOT NULL, KEY (customer), KEY (product), KEY (seller), \
         FOREIGN KEY (customer) REFERENCES customers (id) ON DELETE CASCADE, \
         FOREIGN KEY (product) REFERENCES products (id)) ENGINE={engine}"
    );
    client
        .run([
            parent("customers"),
            parent("products"),
            parent("sellers"),
            fill("customers", parents),
            fill("products", parents),
            fill("sellers", SELLERS),
            orders,
        ])
        .map_err(Error::engine)
}

/// Makes the statements that insert orders.
pub(super) struct Orders {
    prng: Prng,
    parents: u64,
    next: u64,
    statement: Vec<u8>,
}

impl Orders {
    pub(super) fn new(seed: u64, parents: u64) -> Self {
        Self { prng: Prng::new(seed), parents, next: 0, statement: Vec::new() }
    }

    /// The next statement. Of its orders, `of_first` belong to customer 0.
    pub(super) fn next(&mut self, of_first: u64) -> &[u8] {
        self.statement.clear();
        self.statement.extend_from_slice(b"INSERT INTO orders VALUES ");
        for row in 0..BATCH {
            let id = self.next;
            self.next += 1;
            let is_of_first = row * of_first / BATCH != (row + 1) * of_first / BATCH;
            let customer = if is_of_first { 0 } else { 1 + self.prng.below(self.parents - 1) };
            let (product, seller) = (self.prng.below(self.parents), self.prng.below(SELLERS));
            let (price, note) = (self.prng.below(100_000), self.prng.next_u64());
            // Writing to a vector cannot fail.
            let _ = write!(
                self.statement,
                "({id},{customer},{product},{seller},{price},'a note to an order {note:016x}'),"
            );
        }
        self.statement.pop();
        &self.statement
    }
}

/// What was written since the last look.
struct Since {
    begin: Instant,
    rows: u64,
    worst: Duration,
    is_over: bool,
}

impl Since {
    fn now() -> Self {
        Self { begin: Instant::now(), rows: 0, worst: Duration::ZERO, is_over: false }
    }
}

/// A part of the writer's time.
pub(super) struct Lap {
    pub(super) rows_per_s: f64,
    pub(super) worst_ms: f64,
}

/// A thread that inserts orders.
pub(super) struct Writer {
    since: Arc<Mutex<Since>>,
    thread: JoinHandle<Result<()>>,
}

impl Writer {
    pub(super) fn start(mut client: Client, mut orders: Orders) -> Self {
        let since = Arc::new(Mutex::new(Since::now()));
        let shared = Arc::clone(&since);
        let thread = thread::spawn(move || {
            while !shared.lock().is_over {
                let statement = orders.next(0);
                let begin = Instant::now();
                client.query(statement).map_err(Error::engine)?;
                let took = begin.elapsed();
                let mut since = shared.lock();
                since.rows += BATCH;
                since.worst = since.worst.max(took);
            }
            Ok(())
        });
        Self { since, thread }
    }

    /// What was written since the start or the last call.
    pub(super) fn lap(&self) -> Lap {
        let since = std::mem::replace(&mut *self.since.lock(), Since::now());
        let seconds = since.begin.elapsed().as_secs_f64();
        Lap {
            rows_per_s: since.rows as f64 / seconds.max(1e-9),
            worst_ms: since.worst.as_secs_f64() * 1e3,
        }
    }

    pub(super) fn end(self) -> Result<()> {
        self.since.lock().is_over = true;
        let panicked = |_| Error::Engine("the writer panicked".to_owned());
        self.thread.join().map_err(panicked)?
    }
}
