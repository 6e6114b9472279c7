//! A requester: a client that runs the ten operations in the published mix.

use frondb_bench::Result;
use frondb_core::prng::Prng;
use frondb_mariadb_harness::Client;

use super::access::{Access, LINK_READS, LINK_WRITES, NODE_DELETES, NODE_READS, NODE_UPDATES};
use super::links::Links;
use super::schema::FIRST_MS;
use crate::clients::Worker;
use crate::mix::Mix;
use crate::session::{Conflicts, Session};

/// Names of the operations, in the order of their numbers.
pub(super) const NAMES: [&str; 10] = [
    "add link",
    "delete link",
    "update link",
    "count links",
    "multiget links",
    "get link list",
    "insert node",
    "update node",
    "delete node",
    "get node",
];
/// The published mix, in tenths of a percent.
const WEIGHTS: [u64; 10] = [90, 30, 80, 49, 5, 507, 26, 74, 10, 129];

pub(super) struct Requester {
    pub(super) session: Session,
    pub(super) prng: Prng,
    mix: Mix,
    pub(super) links: Links,
    pub(super) link_reads: Access,
    pub(super) link_writes: Access,
    pub(super) node_reads: Access,
    pub(super) node_updates: Access,
    pub(super) node_deletes: Access,
    /// The time of the current operation, milliseconds. Each operation adds one millisecond.
    pub(super) now: u64,
    /// Buffer for the data that the operation writes.
    pub(super) data: String,
}

impl Requester {
    pub(super) fn new(client: Client, links: Links, seed: u64, number: u64) -> Result<Self> {
        let access = |kind| Access::new(links.nodes(), kind);
        Ok(Self {
            session: Session::new(client)?,
            prng: Prng::new(seed.rotate_left(16) ^ (number + 1)),
            mix: Mix::new(&WEIGHTS),
            links,
            link_reads: access(LINK_READS),
            link_writes: access(LINK_WRITES),
            node_reads: access(NODE_READS),
            node_updates: access(NODE_UPDATES),
            node_deletes: access(NODE_DELETES),
            now: FIRST_MS + 1_000_000_000,
            data: String::new(),
        })
    }

    fn operation(&mut self, operation: usize) -> Result<()> {
        self.now += 1;
        match operation {
            0 => self.add_link(),
            1 => self.delete_link(),
            2 => self.update_link(),
            3 => self.count_links(),
            4 => self.multiget_links(),
            5 => self.get_link_list(),
            6 => self.insert_node(),
            7 => self.update_node(),
            8 => self.delete_node(),
            _ => self.get_node(),
        }
    }
}

impl Worker for Requester {
    fn step(&mut self) -> Result<usize> {
        let operation = self.mix.pick(&mut self.prng);
        self.operation(operation).map(|()| operation)
    }

    fn conflicts(&self) -> Conflicts {
        self.session.conflicts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mix_is_complete() {
        assert_eq!(WEIGHTS.iter().sum::<u64>(), 1_000);
    }
}
