//! The transactions that only read: order status (clause 2.6) and stock level (clause 2.8).

use frondb_bench::Result;
use frondb_mariadb_harness as harness;

use super::terminal::{Customer, Terminal, middle};
use crate::session::{Batch, only};

/// Number of a district's last orders that a stock level covers.
const RECENT: u64 = 20;

impl Terminal {
    /// Reads the last order of a customer.
    pub(super) fn order_status(&mut self) -> Result<()> {
        let (w, d) = self.place();
        let customer = Customer::choose(&mut self.random);
        self.session.transaction(|client| {
            let found = Batch::begin().add(customer.select(w, d)).run(client)?;
            let c = middle(&found[1])?;
            let found = Batch::next()
                .add(format_args!(
                    "SELECT c_balance, c_first, c_middle, c_last FROM customer \
                     WHERE c_w_id = {w} AND c_d_id = {d} AND c_id = {c}"
                ))
                .add(format_args!(
                    "SELECT o_id, o_entry_d, o_carrier_id, o_ol_cnt FROM orders WHERE o_w_id = {w} \
                     AND o_d_id = {d} AND o_c_id = {c} ORDER BY o_id DESC LIMIT 1"
                ))
                .run(client)?;
            let (o, expected): (u64, usize) = (only(&found[1], 0)?, only(&found[1], 3)?);
            let found = Batch::next()
                .add(format_args!(
                    "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d \
                     FROM order_line WHERE ol_w_id = {w} AND ol_d_id = {d} AND ol_o_id = {o}"
                ))
                .add("COMMIT")
                .run(client)?;
            match found[0].rows.len() {
                lines if lines == expected => Ok(()),
                lines => Err(harness::Error::Harness(format!(
                    "order {o} of district {d} of warehouse {w} has {lines} lines, not {expected}"
                ))),
            }
        })
    }

    /// Counts the items in a district's last orders whose stock is low.
    pub(super) fn stock_level(&mut self) -> Result<()> {
        let (w, d) = self.place();
        let threshold = self.random.number(10, 20);
        self.session.transaction(|client| {
            let found = Batch::begin()
                .add(format_args!(
                    "SELECT d_next_o_id FROM district WHERE d_w_id = {w} AND d_id = {d}"
                ))
                .run(client)?;
            let next: u64 = only(&found[1], 0)?;
            Batch::next()
                .add(format_args!(
                    "SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ol_w_id \
                     AND s_i_id = ol_i_id WHERE ol_w_id = {w} AND ol_d_id = {d} \
                     AND ol_o_id >= {} AND ol_o_id < {next} AND s_quantity < {threshold}",
                    next.saturating_sub(RECENT)
                ))
                .add("COMMIT")
                .run(client)
                .map(drop)
        })
    }
}
