//! The row of iiBench: one entry in a primary tree and one in each of three secondary trees.
//!
//! All integers are big-endian, so byte order is numeric order.
//!
//! | tree              | key                                              | value     |
//! |-------------------|--------------------------------------------------|-----------|
//! | primary           | id u64                                           | 88 bytes  |
//! | price, customer   | price u32, customer u32, id u64                  | empty     |
//! | register, price   | register u32, price u32, customer u32, id u64    | empty     |
//! | price, date       | price u32, date u64, customer u32, id u64        | empty     |
//!
//! | value bytes | field                                        |
//! |-------------|----------------------------------------------|
//! | 0..8        | date u64: grows by one every 1,000 rows      |
//! | 8..12       | cash register u32, below 1,000               |
//! | 12..16      | customer u32, below 100,000                  |
//! | 16..20      | product u32, below 10,000                    |
//! | 20..24      | price u32, below 50,000                      |
//! | 24..56      | random                                       |
//! | 56..88      | the letter x                                 |
//!
//! The id is sequential, the other key columns but the date are random: a B-tree appends to the
//! primary tree and dirties a random page in each secondary tree. A row has 156 raw bytes.

use frondb_core::prng::Prng;

use crate::engine::{Batch, TreeSpec};

/// The primary tree's number.
pub const PRIMARY: usize = 0;
/// The number of the secondary tree by (price, customer, id).
pub const SECONDARY_CUSTOMER: usize = 1;
/// The number of the secondary tree by (cash register, price, customer, id).
pub const SECONDARY_REGISTER: usize = 2;
/// The number of the secondary tree by (price, date, customer, id).
const SECONDARY_DATE: usize = 3;

/// The trees of the table, in the order of their numbers.
pub const TABLE_TREES: [TreeSpec; 4] = [
    TreeSpec { name: "primary", unique: true },
    TreeSpec { name: "price_customer", unique: false },
    TreeSpec { name: "register_price_customer", unique: false },
    TreeSpec { name: "price_date_customer", unique: false },
];

const REGISTERS: u64 = 1_000;
const CUSTOMERS: u64 = 100_000;
const PRODUCTS: u64 = 10_000;
const PRICES: u64 = 50_000;
const ROWS_PER_DATE: u64 = 1_000;

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRow {
    id: u64,
    date: u64,
    register: u32,
    customer: u32,
    product: u32,
    price: u32,
    random: [u8; 32],
}

impl TableRow {
    /// Computes row `id` of the table of `seed`. `revision` 0 is the first content of the row;
    /// other revisions are the contents that overwrite it.
    #[must_use]
    pub fn new(seed: u64, id: u64, revision: u64) -> Self {
        // The odd multipliers spread (seed, id, revision) over all seeds; `Prng::new` mixes the
        // bits.
        let mix = seed.wrapping_mul(0xA076_1D64_78BD_642F)
            ^ id.wrapping_mul(0xE703_7ED1_A0B4_28DB)
            ^ revision.wrapping_mul(0x8EBC_6AF0_9C88_C6E3);
        let mut prng = Prng::new(mix);
        let mut random = [0; 32];
        prng.fill(&mut random);
        Self {
            id,
            date: id / ROWS_PER_DATE,
            register: below(&mut prng, REGISTERS),
            customer: below(&mut prng, CUSTOMERS),
            product: below(&mut prng, PRODUCTS),
            price: below(&mut prng, PRICES),
            random,
        }
    }

    /// Returns the date, and cash register, customer, product and price in this order.
    #[must_use]
    pub fn numbers(&self) -> (u64, [u32; 4]) {
        (self.date, [self.register, self.customer, self.product, self.price])
    }

    /// Returns the random bytes of the value. As many letters `x` follow them in the value.
    #[must_use]
    pub fn random(&self) -> &[u8; 32] {
        &self.random
    }

    /// Returns the first eight bytes of the row's key in the first secondary tree.
    #[must_use]
    pub fn price_customer(&self) -> [u8; 8] {
        probes::pair(self.price, self.customer)
    }

    /// Returns the first eight bytes of the row's key in the second secondary tree.
    #[must_use]
    pub fn register_price(&self) -> [u8; 8] {
        probes::pair(self.register, self.price)
    }

    /// Adds the row to `batch`, in all four trees.
    pub fn insert(&self, batch: &mut Batch) {
        self.insert_primary(batch);
        batch.put(SECONDARY_CUSTOMER, &self.customer_key(), &[]);
        batch.put(SECONDARY_REGISTER, &self.register_key(), &[]);
        batch.put(SECONDARY_DATE, &self.date_key(), &[]);
    }

    /// Adds the row to `batch`, in the primary tree only.
    pub fn insert_primary(&self, batch: &mut Batch) {
        batch.put(PRIMARY, &self.id.to_be_bytes(), &self.primary_value());
    }

    /// Returns the value of the entry in the primary tree.
    #[must_use]
    pub fn primary_value(&self) -> [u8; 88] {
        let mut value = [b'x'; 88];
        value[0..8].copy_from_slice(&self.date.to_be_bytes());
        value[8..12].copy_from_slice(&self.register.to_be_bytes());
        value[12..16].copy_from_slice(&self.customer.to_be_bytes());
        value[16..20].copy_from_slice(&self.product.to_be_bytes());
        value[20..24].copy_from_slice(&self.price.to_be_bytes());
        value[24..56].copy_from_slice(&self.random);
        value
    }

    /// Adds the removal of the row to `batch`, in all four trees.
    pub fn delete(&self, batch: &mut Batch) {
        batch.delete(PRIMARY, &self.id.to_be_bytes());
        batch.delete(SECONDARY_CUSTOMER, &self.customer_key());
        batch.delete(SECONDARY_REGISTER, &self.register_key());
        batch.delete(SECONDARY_DATE, &self.date_key());
    }

    fn customer_key(&self) -> [u8; 16] {
        let mut key = [0; 16];
        key[0..4].copy_from_slice(&self.price.to_be_bytes());
        key[4..8].copy_from_slice(&self.customer.to_be_bytes());
        key[8..16].copy_from_slice(&self.id.to_be_bytes());
        key
    }

    fn register_key(&self) -> [u8; 20] {
        let mut key = [0; 20];
        key[0..4].copy_from_slice(&self.register.to_be_bytes());
        key[4..8].copy_from_slice(&self.price.to_be_bytes());
        key[8..12].copy_from_slice(&self.customer.to_be_bytes());
        key[12..20].copy_from_slice(&self.id.to_be_bytes());
        key
    }

    fn date_key(&self) -> [u8; 24] {
        let mut key = [0; 24];
        key[0..4].copy_from_slice(&self.price.to_be_bytes());
        key[4..12].copy_from_slice(&self.date.to_be_bytes());
        key[12..16].copy_from_slice(&self.customer.to_be_bytes());
        key[16..24].copy_from_slice(&self.id.to_be_bytes());
        key
    }
}

/// Random keys at which reads of the table begin.
pub mod probes {
    use super::{CUSTOMERS, PRICES, Prng, REGISTERS, below};

    /// Draws the primary key of one of `rows` rows.
    pub fn primary(prng: &mut Prng, rows: u64) -> [u8; 8] {
        prng.below(rows.max(1)).to_be_bytes()
    }

    /// Draws a (price, customer): the start of a 10-entry scan.
    pub fn price_customer(prng: &mut Prng) -> [u8; 8] {
        pair(below(prng, PRICES), below(prng, CUSTOMERS))
    }

    /// Draws a (cash register, price): the start of a 1,000-entry scan.
    pub fn register_price(prng: &mut Prng) -> [u8; 8] {
        pair(below(prng, REGISTERS), below(prng, PRICES))
    }

    pub(super) fn pair(high: u32, low: u32) -> [u8; 8] {
        (u64::from(high) << 32 | u64::from(low)).to_be_bytes()
    }
}

fn below(prng: &mut Prng, bound: u64) -> u32 {
    prng.below(bound) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Change;

    #[test]
    fn a_row_is_156_raw_bytes_in_four_trees() {
        let mut batch = Batch::default();
        TableRow::new(1, 12_345, 0).insert(&mut batch);
        assert_eq!(batch.len(), 4);
        assert_eq!(batch.raw_bytes(), 156);
        let lengths: Vec<_> = batch
            .changes()
            .map(|change| match change {
                Change::Put { tree, key, value } => (tree, key.len(), value.len()),
                Change::Delete { .. } => panic!("an insert deletes nothing"),
            })
            .collect();
        assert_eq!(lengths, [(0, 8, 88), (1, 16, 0), (2, 20, 0), (3, 24, 0)]);
    }

    #[test]
    fn a_delete_names_the_keys_that_the_insert_wrote() {
        let row = TableRow::new(7, 99, 0);
        let (mut put, mut deleted) = (Batch::default(), Batch::default());
        row.insert(&mut put);
        row.delete(&mut deleted);
        for (put, deleted) in put.changes().zip(deleted.changes()) {
            let Change::Put { tree, key, .. } = put else { panic!("not a put") };
            assert_eq!(deleted, Change::Delete { tree, key });
        }
    }

    #[test]
    fn secondary_keys_begin_with_their_scan_starts() {
        let row = TableRow::new(7, 99, 0);
        assert!(row.customer_key().starts_with(&row.price_customer()));
        assert!(row.register_key().starts_with(&row.register_price()));
    }

    #[test]
    fn rows_depend_on_seed_number_and_revision_and_on_nothing_else() {
        assert_eq!(TableRow::new(3, 5, 0), TableRow::new(3, 5, 0));
        assert_ne!(TableRow::new(3, 5, 0), TableRow::new(4, 5, 0));
        assert_ne!(TableRow::new(3, 5, 0).random, TableRow::new(3, 6, 0).random);
        assert_ne!(TableRow::new(3, 5, 0).random, TableRow::new(3, 5, 1).random);
    }

    #[test]
    fn the_first_row_never_changes() {
        // Published figures are comparable only as long as the rows stay the same.
        let row = TableRow::new(1, 0, 0);
        let fields = (row.register, row.customer, row.product, row.price);
        assert_eq!(fields, (540, 9_093, 5_624, 16_706));
    }

    #[test]
    fn fields_stay_below_their_bounds_and_spread_over_them() {
        let rows: Vec<_> = (0..20_000).map(|id| TableRow::new(1, id, 0)).collect();
        for (place, bound) in [REGISTERS, CUSTOMERS, PRODUCTS, PRICES].into_iter().enumerate() {
            let field = |row: &TableRow| {
                u64::from([row.register, row.customer, row.product, row.price][place])
            };
            let sum: u64 = rows.iter().map(field).sum();
            let mean = sum as f64 / rows.len() as f64;
            assert!(rows.iter().all(|row| field(row) < bound));
            assert!((mean / bound as f64 - 0.5).abs() < 0.02, "mean {mean} of {bound}");
        }
        assert_eq!(rows[999].date, 0);
        assert_eq!(rows[1000].date, 1);
    }
}
