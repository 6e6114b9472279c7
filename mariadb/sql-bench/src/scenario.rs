//! The trait of the workloads with several clients: tables, clients, and a check at the end.

use frondb_bench::Result;
use frondb_bench::report::Figure;
use frondb_mariadb_harness::Client;

use crate::clients::{Outcome, Worker};
use crate::contender::Contender;

/// A workload of several clients.
pub(crate) trait Scenario {
    /// The names of the kinds of transactions.
    fn kinds(&self) -> &'static [&'static str];

    /// Creates and fills the tables.
    fn load(&self, client: &mut Client, contender: Contender) -> Result<()>;

    /// Returns a client that uses this connection. `number` distinguishes the clients.
    fn worker(&self, client: Client, number: u64) -> Result<Box<dyn Worker>>;

    /// Figures that only this workload has.
    fn figures(&self, _outcome: &Outcome) -> Vec<Figure> {
        Vec::new()
    }

    /// Checks the tables after the measurement.
    fn check(&self, client: &mut Client) -> Result<()>;
}
