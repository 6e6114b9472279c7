//! Random numbers, names and text as in clauses 2.1.6 and 4.3.2 of the specification.

use frondb_core::prng::Prng;

use super::schema::{CUSTOMERS, ITEMS};

/// The constants C of the non-uniform random numbers. The two constants of last names, for the load
/// and for the run, must differ by 65 to 119, but not by 96 or 112.
const C_LAST_LOADED: u64 = 157;
const C_LAST: u64 = 223;
const C_CUSTOMER: u64 = 259;
const C_ITEM: u64 = 7_911;

const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
/// Number of last names. The first customers of a district have the names 0 to 999 in order, the
/// others random names.
pub(super) const NAMES: u64 = 1_000;

/// The specification's source of randomness.
pub(super) struct Random {
    prng: Prng,
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self { prng: Prng::new(seed) }
    }

    /// A number from `least` to `most`, both included.
    pub(super) fn number(&mut self, least: u64, most: u64) -> u64 {
        least + self.prng.below(most - least + 1)
    }

    /// True with a probability of `percent`.
    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.prng.chance(percent, 100)
    }

    pub(super) fn prng(&mut self) -> &mut Prng {
        &mut self.prng
    }

    /// NURand(a, least, most) of clause 2.1.6, with the constant `c`.
    fn uneven(&mut self, a: u64, c: u64, least: u64, most: u64) -> u64 {
        let either = self.number(0, a) | self.number(least, most);
        (either + c) % (most - least + 1) + least
    }

    pub(super) fn customer(&mut self) -> u64 {
        self.uneven(1_023, C_CUSTOMER, 1, CUSTOMERS)
    }

    pub(super) fn item(&mut self) -> u64 {
        self.uneven(8_191, C_ITEM, 1, ITEMS)
    }

    /// Draws the last name that a terminal enters.
    pub(super) fn last_name(&mut self) -> String {
        let number = self.uneven(255, C_LAST, 0, NAMES - 1);
        last_name(number)
    }

    /// The last name that the load gives a customer.
    pub(super) fn loaded_last_name(&mut self, customer: u64) -> String {
        match customer <= NAMES {
            true => last_name(customer - 1),
            false => last_name(self.uneven(255, C_LAST_LOADED, 0, NAMES - 1)),
        }
    }

    /// Random text of `least` to `most` letters.
    pub(super) fn text(&mut self, least: u64, most: u64) -> String {
        self.letters(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", least, most)
    }

    /// Random text of `least` to `most` digits.
    pub(super) fn digits(&mut self, least: u64, most: u64) -> String {
        self.letters(b"0123456789", least, most)
    }

    fn letters(&mut self, of: &[u8], least: u64, most: u64) -> String {
        let length = self.number(least, most);
        (0..length).map(|_| char::from(of[self.prng.index(of.len())])).collect()
    }

    /// Random data of an item or a stock; one in ten contains ORIGINAL.
    pub(super) fn data(&mut self) -> String {
        let mut text = self.text(26, 50);
        if self.chance(10) {
            let at = self.prng.index(text.len() - 8);
            text.replace_range(at..at + 8, "ORIGINAL");
        }
        text
    }

    /// Draws a warehouse other than this one; returns this one if it is the only one.
    pub(super) fn other_warehouse(&mut self, warehouse: u64, warehouses: u64) -> u64 {
        if warehouses < 2 {
            return warehouse;
        }
        let other = self.number(1, warehouses - 1);
        other + u64::from(other >= warehouse)
    }
}

/// The last name of a number below 1,000: a syllable for each digit.
fn last_name(number: u64) -> String {
    [number / 100, number / 10 % 10, number % 10].map(|digit| SYLLABLES[digit as usize]).concat()
}

/// Cents as an amount in SQL.
pub(super) fn amount(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_have_a_syllable_for_each_digit() {
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(40), "BARPRESBAR");
        let apart = C_LAST - C_LAST_LOADED;
        assert!((65..=119).contains(&apart) && apart != 96 && apart != 112);
    }

    #[test]
    fn uneven_numbers_stay_in_their_range_and_prefer_some() {
        let mut random = Random::new(1);
        let mut seen = vec![0_u32; CUSTOMERS as usize + 1];
        for _ in 0..300_000 {
            seen[random.customer() as usize] += 1;
        }
        assert_eq!(seen[0], 0);
        seen.sort_unstable();
        let most: u32 = seen.iter().rev().take(300).sum();
        assert!(most > 60_000, "a tenth of the customers has {most} of 300,000");
        assert!((0..10_000).all(|_| (1..=ITEMS).contains(&random.item())));
    }

    #[test]
    fn another_warehouse_is_another_one() {
        let mut random = Random::new(2);
        let others: Vec<u64> = (0..200).map(|_| random.other_warehouse(2, 3)).collect();
        assert!(others.contains(&1) && others.contains(&3) && !others.contains(&2));
        assert_eq!(random.other_warehouse(1, 1), 1);
    }

    #[test]
    fn one_in_ten_data_is_original() {
        let mut random = Random::new(3);
        let original = (0..2_000).filter(|_| random.data().contains("ORIGINAL")).count();
        assert!((150..250).contains(&original), "{original}");
        assert_eq!(amount(12_305), "123.05");
    }
}
