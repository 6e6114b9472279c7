//! `WORKLOAD=tpcc`: an order processor after TPC-C, the benchmark of the Transaction Processing
//! Performance Council (Standard Specification, revision 5.11).
//!
//! ```text
//!  schema         the nine tables and two secondary indexes
//!  random         the specification's random numbers, names and text
//!  load           fills the tables in the order of their keys
//!  terminal       a client that runs the five transactions in the standard mix
//!  new_order, payment, inquiry, delivery    the transactions
//!  check          the consistency conditions 1 to 4 of clause 3.3.2
//! ```
//!
//! Unlike the specification, terminals neither think nor type, each transaction chooses a random
//! warehouse, and deliveries are not queued. So the rates are not results of TPC-C.

mod check;
mod delivery;
mod inquiry;
mod load;
mod new_order;
mod payment;
mod random;
mod schema;
mod terminal;

use frondb_bench::Result;
use frondb_bench::report::Figure;
use frondb_mariadb_harness::Client;

use crate::args::Args;
use crate::clients::{Outcome, Worker};
use crate::contender::Contender;
use crate::scenario::Scenario;
use terminal::Terminal;

/// The workload; the number of rows is the number of warehouses.
pub(crate) struct Tpcc {
    warehouses: u64,
    seed: u64,
}

impl Tpcc {
    pub(crate) fn new(args: &Args) -> Self {
        Self { warehouses: args.rows(), seed: args.common.seed }
    }
}

impl Scenario for Tpcc {
    fn kinds(&self) -> &'static [&'static str] {
        &terminal::NAMES
    }

    fn load(&self, client: &mut Client, contender: Contender) -> Result<()> {
        load::fill(client, contender, self.warehouses, self.seed)
    }

    fn worker(&self, client: Client, number: u64) -> Result<Box<dyn Worker>> {
        Ok(Box::new(Terminal::new(client, self.warehouses, self.seed, number)?))
    }

    fn figures(&self, outcome: &Outcome) -> Vec<Figure> {
        let orders = outcome.kinds[terminal::NEW_ORDER].count() as f64;
        let minutes = outcome.seconds.max(1e-9) / 60.0;
        vec![Figure::plain("new orders a minute", orders / minutes, "")]
    }

    fn check(&self, client: &mut Client) -> Result<()> {
        check::conditions(client, self.warehouses)
    }
}
