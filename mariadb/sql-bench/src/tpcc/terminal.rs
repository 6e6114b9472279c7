//! A terminal: a client that runs the five transactions in the standard mix.

use frondb_bench::Result;
use frondb_mariadb_harness::{self as harness, Client, Reply};

use super::random::Random;
use super::schema::DISTRICTS;
use crate::clients::Worker;
use crate::mix::Mix;
use crate::session::{Conflicts, Session, number};

/// Names of the transactions, in the order of their numbers.
pub(super) const NAMES: [&str; 5] =
    ["new order", "payment", "order status", "delivery", "stock level"];
/// The number of the new order in [`NAMES`].
pub(super) const NEW_ORDER: usize = 0;
/// The standard mix, percent.
const WEIGHTS: [u64; 5] = [45, 43, 4, 4, 4];

pub(super) struct Terminal {
    pub(super) session: Session,
    pub(super) random: Random,
    pub(super) warehouses: u64,
    mix: Mix,
}

impl Terminal {
    pub(super) fn new(client: Client, warehouses: u64, seed: u64, number: u64) -> Result<Self> {
        let random = Random::new(seed.rotate_left(16) ^ (number + 1));
        Ok(Self { session: Session::new(client)?, random, warehouses, mix: Mix::new(&WEIGHTS) })
    }

    /// Draws a warehouse and one of its districts.
    pub(super) fn place(&mut self) -> (u64, u64) {
        (self.random.number(1, self.warehouses), self.random.number(1, DISTRICTS))
    }
}

impl Worker for Terminal {
    fn step(&mut self) -> Result<usize> {
        let kind = self.mix.pick(self.random.prng());
        match kind {
            NEW_ORDER => self.new_order(),
            1 => self.payment(),
            2 => self.order_status(),
            3 => self.delivery(),
            _ => self.stock_level(),
        }?;
        Ok(kind)
    }

    fn conflicts(&self) -> Conflicts {
        self.session.conflicts()
    }
}

/// How a terminal names a customer.
pub(super) enum Customer {
    Id(u64),
    LastName(String),
}

impl Customer {
    /// Draws a last name in 60 of 100 cases, otherwise a number.
    pub(super) fn choose(random: &mut Random) -> Self {
        match random.chance(60) {
            true => Self::LastName(random.last_name()),
            false => Self::Id(random.customer()),
        }
    }

    /// The statement that finds the customers with this number or last name.
    pub(super) fn select(&self, w: u64, d: u64) -> String {
        let is_customer = match self {
            Self::Id(id) => format!("c_id = {id}"),
            Self::LastName(name) => format!("c_last = '{name}' ORDER BY c_first"),
        };
        format!("SELECT c_id FROM customer WHERE c_w_id = {w} AND c_d_id = {d} AND {is_customer}")
    }
}

/// The customer's number from the answer to [`Customer::select`]. Of several customers with the
/// same name, takes the middle one in the order of first names.
pub(super) fn middle(found: &Reply) -> harness::Result<u64> {
    let middle = found.rows.len().div_ceil(2).saturating_sub(1);
    number(found.rows.get(middle).map_or(&[], Vec::as_slice), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mix_is_complete_and_three_of_five_customers_have_names() {
        assert_eq!(WEIGHTS.iter().sum::<u64>(), 100);
        let mut random = Random::new(1);
        let chosen = (0..10_000).map(|_| Customer::choose(&mut random));
        let named = chosen.filter(|chosen| matches!(chosen, Customer::LastName(_))).count();
        assert!((5_700..6_300).contains(&named), "{named}");
    }
}
