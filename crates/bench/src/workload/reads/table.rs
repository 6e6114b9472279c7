//! The reads of iiBench's table: one operation of each kind, with checked answers.

use frondb_core::prng::Prng;

use super::permutation::Permutation;
use super::tail::Tail;
use super::zipfian::{THETA, Zipfian};
use crate::engine::{Digest, Reader};
use crate::error::{Error, Result};
use crate::rows::{PRIMARY, SECONDARY_CUSTOMER, SECONDARY_REGISTER, TableRow};

const MULTI_GET_KEYS: usize = 100;

/// Operations, of each kind and choice of keys, whose answers are compared between engines.
const COMPARED: usize = 200;

/// What an operation reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// A row by its primary key.
    Point,
    /// 10 entries of the first secondary tree, from the (price, customer) of a row.
    Scan10,
    /// 1,000 entries of the second secondary tree, from the (cash register, price) of a row.
    Scan1000,
    /// 100 rows by their primary keys, with one call.
    MultiGet100,
}

impl Read {
    pub(super) const ALL: [Self; 4] =
        [Self::Point, Self::Scan10, Self::Scan1000, Self::MultiGet100];

    /// Returns the name in reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Point => "point",
            Self::Scan10 => "scan10",
            Self::Scan1000 => "scan1000",
            Self::MultiGet100 => "multi_get100",
        }
    }
}

/// How the rows are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// Each row with the same probability.
    Uniform,
    /// Some rows far more often than others. The popular rows are scattered over the table.
    Zipfian,
}

impl Keys {
    pub(super) const ALL: [Self; 2] = [Self::Uniform, Self::Zipfian];

    /// Returns the name in reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipfian => "zipfian",
        }
    }
}

/// The loaded table. Threads share it.
pub(super) struct Table {
    seed: u64,
    rows: u64,
    zipfian: Zipfian,
    /// Maps ranks to rows.
    scattered: Permutation,
    /// The last keys of the two secondary trees.
    customers: Tail,
    registers: Tail,
}

impl Table {
    /// Describes the table with the first `rows` rows, at least one, of a seed.
    pub(super) fn new(seed: u64, rows: u64) -> Self {
        Self {
            seed,
            rows,
            zipfian: Zipfian::new(rows, THETA),
            scattered: Permutation::new(rows, seed),
            customers: Tail::new(seed, rows, 10, TableRow::price_customer),
            registers: Tail::new(seed, rows, 1_000, TableRow::register_price),
        }
    }

    /// Runs a fixed set of operations of all kinds and returns their digest.
    pub(super) fn answers(&self, reader: &mut dyn Reader) -> Result<String> {
        let (mut prng, mut digest) = (Prng::new(self.seed), Digest::default());
        for keys in Keys::ALL {
            for read in Read::ALL {
                for _ in 0..COMPARED {
                    self.digested(read, keys, reader, &mut prng, &mut digest)?;
                }
            }
        }
        Ok(format!("{:016x}", digest.value()))
    }

    /// Runs one operation. It is an error if an acknowledged row is missing, or if a scan finds too
    /// few entries.
    pub(super) fn read(
        &self,
        read: Read,
        keys: Keys,
        reader: &mut dyn Reader,
        prng: &mut Prng,
    ) -> Result<()> {
        self.digested(read, keys, reader, prng, &mut Digest::default())
    }

    fn digested(
        &self,
        read: Read,
        keys: Keys,
        reader: &mut dyn Reader,
        prng: &mut Prng,
        digest: &mut Digest,
    ) -> Result<()> {
        match read {
            Read::Point => {
                let id = self.row(keys, prng);
                let found = reader.get(PRIMARY, &id.to_be_bytes(), digest)?;
                let missing = || format!("row {id} was acknowledged and is not found");
                if found { Ok(()) } else { Err(Error::Wrong(missing())) }
            }
            Read::MultiGet100 => {
                let ids: [_; MULTI_GET_KEYS] =
                    std::array::from_fn(|_| self.row(keys, prng).to_be_bytes());
                let keys = ids.each_ref().map(<[u8; 8]>::as_slice);
                let found = reader.multi_get(PRIMARY, &keys, digest)?;
                enough(found, ids.len() as u64, || "rows of a multi-get".to_owned())
            }
            Read::Scan10 => {
                let from = TableRow::new(self.seed, self.row(keys, prng), 0).price_customer();
                let found = reader.scan(SECONDARY_CUSTOMER, &from, 10, digest)?;
                enough(found, self.customers.least(&from), || scanned(SECONDARY_CUSTOMER, &from))
            }
            Read::Scan1000 => {
                let from = TableRow::new(self.seed, self.row(keys, prng), 0).register_price();
                let found = reader.scan(SECONDARY_REGISTER, &from, 1_000, digest)?;
                enough(found, self.registers.least(&from), || scanned(SECONDARY_REGISTER, &from))
            }
        }
    }

    /// Draws the number of a row.
    fn row(&self, keys: Keys, prng: &mut Prng) -> u64 {
        match keys {
            Keys::Uniform => prng.below(self.rows),
            Keys::Zipfian => self.scattered.of(self.zipfian.rank(prng)),
        }
    }
}

fn scanned(tree: usize, from: &[u8; 8]) -> String {
    format!("entries of tree {tree} from {:016x}", u64::from_be_bytes(*from))
}

fn enough(found: u64, least: u64, what: impl FnOnce() -> String) -> Result<()> {
    if found >= least {
        return Ok(());
    }
    Err(Error::Wrong(format!("it found {found} {} and not at least {least}", what())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipfian_keys_are_few_popular_rows_and_uniform_keys_are_not() {
        let (table, draws) = (Table::new(5, 10_000), 20_000);
        let most = |keys: Keys| {
            let (mut prng, mut counts) = (Prng::new(1), vec![0_u64; 10_000]);
            (0..draws).for_each(|_| counts[table.row(keys, &mut prng) as usize] += 1);
            counts.sort_unstable();
            counts[9_900..].iter().sum::<u64>() as f64 / draws as f64
        };
        let (uniform, zipfian) = (most(Keys::Uniform), most(Keys::Zipfian));
        assert!(uniform < 0.05 && zipfian > 0.4, "{uniform} and {zipfian}");
    }
}
