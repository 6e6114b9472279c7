//! Fills the tables as clause 4.3.3 says, each in the order of its primary key.

use std::fmt::Write;

use frondb_bench::{Error, Result};
use frondb_mariadb_harness::Client;

use super::random::{Random, amount};
use super::schema::{self, CUSTOMERS, DISTRICTS, FIRST_NEW_ORDER, ITEMS};
use crate::bulk::Bulk;
use crate::contender::Contender;

/// The value of all DATETIME columns that are not NULL.
const THEN: &str = "'2026-01-01 00:00:00'";

/// Creates and fills the tables.
pub(super) fn fill(
    client: &mut Client,
    contender: Contender,
    warehouses: u64,
    seed: u64,
) -> Result<()> {
    client.run(schema::create(contender.engine().name())).map_err(Error::engine)?;
    let random = &mut Random::new(seed ^ 0x10AD);
    items(client, random)?;
    for warehouse in 1..=warehouses {
        places(client, warehouse, random)?;
        stock(client, warehouse, random)?;
        for district in 1..=DISTRICTS {
            customers(client, warehouse, district, random)?;
            orders(client, warehouse, district, random)?;
        }
    }
    let analyze = format!("ANALYZE TABLE {}", schema::names().join(", "));
    client.run([analyze]).map_err(Error::engine)
}

// Writing to a string cannot fail, so the results of `write!` are dropped.

fn items(client: &mut Client, random: &mut Random) -> Result<()> {
    let mut bulk = Bulk::new(client, "item", "");
    for id in 1..=ITEMS {
        let (name, data) = (random.text(14, 24), random.data());
        let (image, price) = (random.number(1, 10_000), amount(random.number(100, 10_000)));
        bulk.row(|row| {
            let _ = write!(row, "{id},{image},'{name}',{price},'{data}'");
        })?;
    }
    bulk.finish()
}

/// The five columns of an address, as literals.
fn address(random: &mut Random) -> String {
    let [street_1, street_2, city] = [(); 3].map(|()| random.text(10, 20));
    let (state, zip) = (random.text(2, 2), random.digits(4, 4));
    format!("'{street_1}','{street_2}','{city}','{state}','{zip}11111'")
}

/// Inserts a warehouse and its districts.
fn places(client: &mut Client, warehouse: u64, random: &mut Random) -> Result<()> {
    let place = |random: &mut Random| {
        let (name, address, tax) = (random.text(6, 10), address(random), random.number(0, 2_000));
        format!("'{name}',{address},0.{tax:04}")
    };
    let text = place(random);
    let mut bulk = Bulk::new(client, "warehouse", "");
    bulk.row(|row| {
        let _ = write!(row, "{warehouse},{text},300000.00");
    })?;
    bulk.finish()?;
    let mut bulk = Bulk::new(client, "district", "");
    for district in 1..=DISTRICTS {
        let text = place(random);
        bulk.row(|row| {
            let _ = write!(row, "{district},{warehouse},{text},30000.00,{}", CUSTOMERS + 1);
        })?;
    }
    bulk.finish()
}

fn stock(client: &mut Client, warehouse: u64, random: &mut Random) -> Result<()> {
    let mut bulk = Bulk::new(client, "stock", "");
    for item in 1..=ITEMS {
        bulk.row(|row| {
            let _ = write!(row, "{item},{warehouse},{}", random.number(10, 100));
            for _ in 0..DISTRICTS {
                let _ = write!(row, ",'{}'", random.text(24, 24));
            }
            let _ = write!(row, ",0,0,0,'{}'", random.data());
        })?;
    }
    bulk.finish()
}

/// Inserts the customers of a district, and one payment of each customer.
fn customers(client: &mut Client, w: u64, d: u64, random: &mut Random) -> Result<()> {
    let mut bulk = Bulk::new(client, "customer", "");
    for id in 1..=CUSTOMERS {
        let (last, first) = (random.loaded_last_name(id), random.text(8, 16));
        let (address, phone) = (address(random), random.digits(16, 16));
        let credit = if random.chance(10) { "BC" } else { "GC" };
        let (discount, data) = (random.number(0, 5_000), random.text(300, 500));
        bulk.row(|row| {
            let _ = write!(
                row,
                "{id},{d},{w},'{first}','OE','{last}',{address},'{phone}',{THEN},'{credit}',\
                 50000.00,0.{discount:04},-10.00,10.00,1,0,'{data}'"
            );
        })?;
    }
    bulk.finish()?;
    let mut bulk = Bulk::new(client, "history", "");
    for id in 1..=CUSTOMERS {
        let data = random.text(12, 24);
        bulk.row(|row| {
            let _ = write!(row, "{id},{d},{w},{d},{w},{THEN},10.00,'{data}'");
        })?;
    }
    bulk.finish()
}

/// Inserts the orders of a district, one of each customer, with the customers in random order.
fn orders(client: &mut Client, w: u64, d: u64, random: &mut Random) -> Result<()> {
    let mut customers: Vec<u64> = (1..=CUSTOMERS).collect();
    random.prng().shuffle(&mut customers);
    let lines: Vec<u64> = customers.iter().map(|_| random.number(5, 15)).collect();
    let mut bulk = Bulk::new(client, "orders", "");
    for (id, (customer, lines)) in (1..).zip(customers.iter().zip(&lines)) {
        let carrier = match id < FIRST_NEW_ORDER {
            true => random.number(1, 10).to_string(),
            false => "NULL".to_owned(),
        };
        bulk.row(|row| {
            let _ = write!(row, "{id},{d},{w},{customer},{THEN},{carrier},{lines},1");
        })?;
    }
    bulk.finish()?;
    let mut bulk = Bulk::new(client, "new_order", "");
    for id in FIRST_NEW_ORDER..=CUSTOMERS {
        bulk.row(|row| {
            let _ = write!(row, "{id},{d},{w}");
        })?;
    }
    bulk.finish()?;
    order_lines(client, (w, d), &lines, random)
}

fn order_lines(
    client: &mut Client,
    (w, d): (u64, u64),
    lines: &[u64],
    random: &mut Random,
) -> Result<()> {
    let mut bulk = Bulk::new(client, "order_line", "");
    for (order, lines) in (1..).zip(lines) {
        let is_new = order >= FIRST_NEW_ORDER;
        for line in 1..=*lines {
            let (item, text) = (random.number(1, ITEMS), random.text(24, 24));
            let (delivered, price) = match is_new {
                true => ("NULL", amount(random.number(1, 999_999))),
                false => (THEN, amount(0)),
            };
            bulk.row(|row| {
                let _ =
                    write!(row, "{order},{d},{w},{line},{item},{w},{delivered},5,{price},'{text}'");
            })?;
        }
    }
    bulk.finish()
}
