//! `WORKLOAD=graph`: a social graph, after the published description of LinkBench (Armstrong,
//! Ponnekanti, Borthakur and Callaghan: LinkBench, a Database Benchmark Based on the Facebook
//! Social Graph, SIGMOD 2013).
//!
//! ```text
//!  schema       the three tables: nodes, links, counts of links
//!  links        which links each node has at first: a power law, repeatable from the seed
//!  access       which nodes are read and written: power laws over scattered ids
//!  payload      the data of nodes and links: sizes and compressibility
//!  load         fills the tables in the order of their keys
//!  requester    a client, and the mix of the ten operations
//!  link_operations, node_operations      the operations
//!  check        compares the counts with the visible links
//! ```
//!
//! The tables, the mix, and the distributions of sizes and accesses are as published. Two things
//! are our own: the distribution of the number of links, which the publication gives as a table of
//! measured numbers, and how often an operation uses an existing link.

mod access;
mod check;
mod link_operations;
mod links;
mod load;
mod node_operations;
mod payload;
mod requester;
mod schema;

use frondb_bench::Result;
use frondb_mariadb_harness::Client;

use crate::args::Args;
use crate::clients::Worker;
use crate::contender::Contender;
use crate::scenario::Scenario;
use links::Links;
use requester::Requester;

/// The workload on a graph; the number of rows is the number of nodes.
pub(crate) struct Graph {
    links: Links,
    seed: u64,
}

impl Graph {
    pub(crate) fn new(args: &Args) -> Self {
        Self { links: Links::new(args.rows(), args.common.seed), seed: args.common.seed }
    }
}

impl Scenario for Graph {
    fn kinds(&self) -> &'static [&'static str] {
        &requester::NAMES
    }

    fn load(&self, client: &mut Client, contender: Contender) -> Result<()> {
        load::fill(client, contender, self.links, self.seed)
    }

    fn worker(&self, client: Client, number: u64) -> Result<Box<dyn Worker>> {
        Ok(Box::new(Requester::new(client, self.links, self.seed, number)?))
    }

    fn check(&self, client: &mut Client) -> Result<()> {
        check::counts(client, self.links.nodes())
    }
}
