//! The delivery, clause 2.7: delivers the oldest new order of each district of a warehouse.
//!
//! All reads lock the rows that they read. A plain read would see the tables as of the
//! transaction's first read, which may be older than an order that the transaction delivers.

use frondb_bench::Result;
use frondb_mariadb_harness::{self as harness, Client};

use super::schema::DISTRICTS;
use super::terminal::Terminal;
use crate::session::{Batch, only, text};

impl Terminal {
    pub(super) fn delivery(&mut self) -> Result<()> {
        let (w, _) = self.place();
        let carrier = self.random.number(1, 10);
        self.session.transaction(|client| execute(client, w, carrier))
    }
}

fn execute(client: &mut Client, w: u64, carrier: u64) -> harness::Result<()> {
    let mut batch = Batch::begin();
    for d in 1..=DISTRICTS {
        batch.add(format_args!(
            "SELECT no_o_id FROM new_order WHERE no_w_id = {w} AND no_d_id = {d} \
             ORDER BY no_o_id LIMIT 1 FOR UPDATE"
        ));
    }
    // Skip a district without a new order.
    let found = batch.run(client)?;
    let oldest = (1..).zip(&found[1..]).filter(|(_, reply)| !reply.rows.is_empty());
    let oldest = oldest.map(|(d, reply)| Ok((d, only(reply, 0)?)));
    let oldest = oldest.collect::<harness::Result<Vec<(u64, u64)>>>()?;
    let mut batch = Batch::next();
    for (d, o) in &oldest {
        deliver(&mut batch, carrier, w, *d, *o);
    }
    let found = if oldest.is_empty() { Vec::new() } else { batch.run(client)? };
    let mut batch = Batch::next();
    for ((d, _), found) in oldest.iter().zip(found.chunks(5)) {
        let [_, order, _, lines, _] = found else { break };
        let c: u64 = only(order, 0)?;
        batch.add(format_args!(
            "UPDATE customer SET c_balance = c_balance + {}, c_delivery_cnt = c_delivery_cnt + 1 \
             WHERE c_w_id = {w} AND c_d_id = {d} AND c_id = {c}",
            text(lines, 0)
        ));
    }
    batch.add("COMMIT").run(client).map(drop)
}

/// Adds the five statements that deliver an order.
fn deliver(batch: &mut Batch, carrier: u64, w: u64, d: u64, o: u64) {
    let is_order = format!("o_w_id = {w} AND o_d_id = {d} AND o_id = {o}");
    let is_line = format!("ol_w_id = {w} AND ol_d_id = {d} AND ol_o_id = {o}");
    batch
        .add(format_args!(
            "DELETE FROM new_order WHERE no_w_id = {w} AND no_d_id = {d} AND no_o_id = {o}"
        ))
        .add(format_args!("SELECT o_c_id FROM orders WHERE {is_order} FOR UPDATE"))
        .add(format_args!("UPDATE orders SET o_carrier_id = {carrier} WHERE {is_order}"))
        .add(format_args!("SELECT SUM(ol_amount) FROM order_line WHERE {is_line} FOR UPDATE"))
        .add(format_args!("UPDATE order_line SET ol_delivery_d = NOW() WHERE {is_line}"));
}
