//! The new order, clause 2.4, of about ten items. One item in a hundred comes from another
//! warehouse. One order in a hundred names an item that does not exist, and is rolled back.

use std::fmt::Write;

use frondb_bench::Result;
use frondb_mariadb_harness::{self as harness, Client, Reply};

use super::random::{Random, amount};
use super::schema::{DISTRICTS, ITEMS, dist};
use super::terminal::Terminal;
use crate::session::{Batch, only, text};

/// The input of a terminal.
struct Order {
    warehouse: u64,
    district: u64,
    customer: u64,
    lines: Vec<Line>,
}

struct Line {
    supplier: u64,
    item: u64,
    quantity: u64,
}

impl Order {
    fn enter(random: &mut Random, warehouse: u64, warehouses: u64) -> Self {
        let district = random.number(1, DISTRICTS);
        let customer = random.customer();
        let count = random.number(5, 15);
        let mut lines: Vec<Line> = (0..count)
            .map(|_| {
                let item = random.item();
                let supplier = match random.chance(1) {
                    true => random.other_warehouse(warehouse, warehouses),
                    false => warehouse,
                };
                Line { supplier, item, quantity: random.number(1, 10) }
            })
            .collect();
        // All orders lock stocks in the same order, so that they do not deadlock.
        lines.sort_unstable_by_key(|line| (line.supplier, line.item));
        if let Some(last) = lines.last_mut().filter(|_| random.chance(1)) {
            last.item = ITEMS + 1;
        }
        Self { warehouse, district, customer, lines }
    }
}

impl Terminal {
    pub(super) fn new_order(&mut self) -> Result<()> {
        let (warehouse, _) = self.place();
        let order = Order::enter(&mut self.random, warehouse, self.warehouses);
        self.session.transaction(|client| execute(client, &order))
    }
}

fn execute(client: &mut Client, order: &Order) -> harness::Result<()> {
    let Order { warehouse: w, district: d, customer: c, lines } = order;
    let is_district = format!("d_w_id = {w} AND d_id = {d}");
    let found = Batch::begin()
        .add(format_args!("SELECT w_tax FROM warehouse WHERE w_id = {w}"))
        .add(format_args!(
            "SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = {w} \
             AND c_d_id = {d} AND c_id = {c}"
        ))
        .add(format_args!("SELECT d_next_o_id, d_tax FROM district WHERE {is_district} FOR UPDATE"))
        .run(client)?;
    let o: u64 = only(&found[3], 0)?;
    let local = u8::from(lines.iter().all(|line| line.supplier == *w));
    let mut batch = Batch::next();
    batch
        .add(format_args!("UPDATE district SET d_next_o_id = {} WHERE {is_district}", o + 1))
        .add(format_args!(
            "INSERT INTO orders VALUES ({o},{d},{w},{c},NOW(),NULL,{},{local})",
            lines.len()
        ))
        .add(format_args!("INSERT INTO new_order VALUES ({o},{d},{w})"));
    for line in lines {
        line.read(&mut batch, *d);
    }
    let found = batch.run(client)?;
    finish(client, order, o, &found[3..])
}

/// Takes the items from their stocks and adds the lines to the order; rolls the order back if an
/// item does not exist. `found` has two replies for each line.
fn finish(client: &mut Client, order: &Order, o: u64, found: &[Reply]) -> harness::Result<()> {
    let Order { warehouse: w, district: d, lines, .. } = order;
    let mut insert = "INSERT INTO order_line VALUES ".to_owned();
    let mut batch = Batch::next();
    for (number, (line, found)) in (1..).zip(lines.iter().zip(found.chunks(2))) {
        let [item, stock] = found else { break };
        if item.rows.is_empty() {
            return client.query("ROLLBACK").map(drop);
        }
        let price = amount(only::<u64>(item, 0)? * line.quantity);
        line.take(&mut batch, *w);
        let Line { supplier, item, quantity } = line;
        let dist = text(stock, 2);
        // Writing to a string cannot fail.
        let _ = write!(
            insert,
            "({o},{d},{w},{number},{item},{supplier},NULL,{quantity},{price},'{dist}'),"
        );
    }
    insert.pop();
    batch.add(insert).add("COMMIT").run(client).map(drop)
}

impl Line {
    /// Adds the statements that read the item and lock its stock.
    fn read(&self, batch: &mut Batch, district: u64) {
        let Self { supplier, item, .. } = self;
        let dist = dist(district);
        batch
            .add(format_args!(
                "SELECT CAST(i_price * 100 AS UNSIGNED), i_name, i_data FROM item \
                 WHERE i_id = {item}"
            ))
            .add(format_args!(
                "SELECT s_quantity, s_data, {dist} FROM stock WHERE s_w_id = {supplier} \
                 AND s_i_id = {item} FOR UPDATE"
            ));
    }

    /// Adds the statement that takes the item from its stock. The server computes the new quantity,
    /// because an order may name an item twice; a stock that would fall below ten is filled up.
    fn take(&self, batch: &mut Batch, warehouse: u64) {
        let Self { supplier, item, quantity } = self;
        let remote = u8::from(*supplier != warehouse);
        batch.add(format_args!(
            "UPDATE stock SET \
             s_quantity = s_quantity - {quantity} + IF(s_quantity < {quantity} + 10, 91, 0), \
             s_ytd = s_ytd + {quantity}, s_order_cnt = s_order_cnt + 1, \
             s_remote_cnt = s_remote_cnt + {remote} WHERE s_w_id = {supplier} AND s_i_id = {item}"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_have_their_shares_of_remote_lines_and_of_errors() {
        let mut random = Random::new(1);
        let orders: Vec<Order> = (0..20_000).map(|_| Order::enter(&mut random, 2, 3)).collect();
        let lines: Vec<&Line> = orders.iter().flat_map(|order| &order.lines).collect();
        let remote = lines.iter().filter(|line| line.supplier != 2).count();
        assert!((0.008..0.012).contains(&(remote as f64 / lines.len() as f64)), "{remote}");
        let wrong = lines.iter().filter(|line| line.item > ITEMS).count();
        assert!((150..250).contains(&wrong), "{wrong}");
        let keys = |order: &Order| {
            order.lines.iter().map(|line| (line.supplier, line.item)).collect::<Vec<_>>()
        };
        assert!(orders.iter().all(|order| keys(order).is_sorted()));
        assert!(orders.iter().all(|order| (5..=15).contains(&order.lines.len())));
    }
}
