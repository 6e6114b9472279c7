//! Creates the tables of `sql-foreign-keys` and makes the orders.

use std::io::Write;

use frondb_bench::{Error, Result};
use frondb_core::prng::Prng;
use frondb_mariadb_harness::Client;

use crate::writer::BATCH;

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
}

impl Orders {
    pub(super) fn new(seed: u64, parents: u64) -> Self {
        Self { prng: Prng::new(seed), parents, next: 0 }
    }

    /// Replaces `statement` by the next INSERT, in which `of_first` orders belong to customer 0.
    pub(super) fn next(&mut self, statement: &mut Vec<u8>, of_first: u64) {
        statement.clear();
        statement.extend_from_slice(b"INSERT INTO orders VALUES ");
        for row in 0..BATCH {
            let id = self.next;
            self.next += 1;
            let is_of_first = row * of_first / BATCH != (row + 1) * of_first / BATCH;
            let customer = if is_of_first { 0 } else { 1 + self.prng.below(self.parents - 1) };
            let (product, seller) = (self.prng.below(self.parents), self.prng.below(SELLERS));
            let (price, note) = (self.prng.below(100_000), self.prng.next_u64());
            // Writing to a vector cannot fail.
            let _ = write!(
                statement,
                "({id},{customer},{product},{seller},{price},'a note to an order {note:016x}'),"
            );
        }
        statement.pop();
    }
}
