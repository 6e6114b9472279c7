//! The payment, clause 2.5: 15 of 100 customers pay at a warehouse that is not their own.

use frondb_bench::Result;
use frondb_mariadb_harness::{self as harness, Client};

use super::random::{Random, amount};
use super::schema::DISTRICTS;
use super::terminal::{Customer, Terminal, middle};
use crate::session::{Batch, text};

/// The input of a terminal.
struct Payment {
    /// Warehouse and district of the terminal.
    place: (u64, u64),
    /// Warehouse and district of the customer.
    home: (u64, u64),
    customer: Customer,
    /// The amount as an SQL literal.
    amount: String,
}

impl Payment {
    fn enter(random: &mut Random, place: (u64, u64), warehouses: u64) -> Self {
        let home = match random.chance(15) {
            true => (random.other_warehouse(place.0, warehouses), random.number(1, DISTRICTS)),
            false => place,
        };
        let customer = Customer::choose(random);
        Self { place, home, customer, amount: amount(random.number(100, 500_000)) }
    }
}

impl Terminal {
    pub(super) fn payment(&mut self) -> Result<()> {
        let place = self.place();
        let payment = Payment::enter(&mut self.random, place, self.warehouses);
        self.session.transaction(|client| execute(client, &payment))
    }
}

fn execute(client: &mut Client, payment: &Payment) -> harness::Result<()> {
    let Payment { place: (w, d), home: (c_w, c_d), customer, amount } = payment;
    let is_district = format!("d_w_id = {w} AND d_id = {d}");
    let found = Batch::begin()
        .add(format_args!("UPDATE warehouse SET w_ytd = w_ytd + {amount} WHERE w_id = {w}"))
        .add(format_args!(
            "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse \
             WHERE w_id = {w}"
        ))
        .add(format_args!("UPDATE district SET d_ytd = d_ytd + {amount} WHERE {is_district}"))
        .add(format_args!(
            "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district \
             WHERE {is_district}"
        ))
        .add(customer.select(*c_w, *c_d))
        .run(client)?;
    let c = middle(&found[5])?;
    let names = [text(&found[2], 0), text(&found[4], 0)].join("    ");
    let history =
        format!("INSERT INTO history VALUES ({c},{c_d},{c_w},{d},{w},NOW(),{amount},'{names}')");
    pay(client, payment, c, &history)
}

/// Subtracts the amount from the customer's balance. If the customer has bad credit, also prepends
/// the payment to the customer's data.
fn pay(client: &mut Client, payment: &Payment, c: u64, history: &str) -> harness::Result<()> {
    let Payment { place: (w, d), home: (c_w, c_d), amount, .. } = payment;
    let is_customer = format!("c_w_id = {c_w} AND c_d_id = {c_d} AND c_id = {c}");
    let found = client.query(format!(
        "SELECT c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, \
         c_zip, c_phone, c_since, c_credit_lim, c_discount, c_balance FROM customer \
         WHERE {is_customer} FOR UPDATE"
    ))?;
    let data = match text(&found, 0).as_str() {
        "BC" => {
            format!(", c_data = LEFT(CONCAT('{c} {c_d} {c_w} {d} {w} {amount} | ', c_data), 500)")
        }
        _ => String::new(),
    };
    Batch::next()
        .add(format_args!(
            "UPDATE customer SET c_balance = c_balance - {amount}, \
             c_ytd_payment = c_ytd_payment + {amount}, c_payment_cnt = c_payment_cnt + 1{data} \
             WHERE {is_customer}"
        ))
        .add(history)
        .add("COMMIT")
        .run(client)
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifteen_of_a_hundred_customers_come_from_another_warehouse() {
        let mut random = Random::new(1);
        let all = (0..10_000).map(|_| Payment::enter(&mut random, (2, 5), 3));
        let remote = all.filter(|payment| payment.home.0 != 2).count();
        assert!((1_300..1_700).contains(&remote), "{remote}");
    }
}
