//! The links that each node has after the load. They are computed from the seed and not stored, so
//! that a requester knows them without a query.

use frondb_core::prng::Prng;

use super::schema::LINK_TYPES;

/// Most links of a node, of both types together: the most that a list returns.
const DEGREE_MAX: u64 = 10_000;
/// The number of links is `SCALE` * (u^(-1 / SHAPE) - 1), rounded down, for u uniform in (0, 1].
/// This power law has a mean of 4.4; two of five nodes have no links.
const SCALE: f64 = 2.45;
const SHAPE: f64 = 1.5;

/// The links of a graph.
#[derive(Clone, Copy)]
pub(super) struct Links {
    nodes: u64,
    seed: u64,
    /// The distance between the targets of neighbouring links of a node. It is coprime to the
    /// number of nodes, so the links of a node have different targets.
    step: u64,
}

impl Links {
    pub(super) fn new(nodes: u64, seed: u64) -> Self {
        // Primes. A number of nodes below 2^32 is not a multiple of both.
        let step =
            [2_654_435_761, 4_294_967_291].into_iter().find(|step| !nodes.is_multiple_of(*step));
        Self { nodes, seed, step: step.unwrap_or(1) }
    }

    /// Number of nodes; their ids are 1, 2, ..
    pub(super) fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Number of links of a node after the load, by type.
    pub(super) fn degrees(&self, id1: u64) -> [u64; 2] {
        let mut prng = self.prng(id1, 0);
        let links = SCALE * ((1.0 - prng.unit()).powf(-1.0 / SHAPE) - 1.0);
        let links = (links as u64).min(DEGREE_MAX).min(self.nodes / 2);
        let first = links / 2 + links % 2 * prng.below(2);
        [first, links - first]
    }

    /// The target node of a link. The load creates the links whose number is below the node's
    /// degree.
    pub(super) fn id2(&self, id1: u64, kind: usize, link: u64) -> u64 {
        let first = self.prng(id1, LINK_TYPES[kind]).below(self.nodes);
        let far = u128::from(first) + u128::from(link) * u128::from(self.step);
        1 + (far % u128::from(self.nodes)) as u64
    }

    fn prng(&self, id1: u64, purpose: u64) -> Prng {
        let spread = id1.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Prng::new(self.seed.rotate_left(32) ^ spread ^ purpose)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_number_of_links_follows_a_power_law() {
        let links = Links::new(200_000, 1);
        let degrees = (1..=200_000).map(|id| links.degrees(id).iter().sum());
        let degrees: Vec<u64> = degrees.collect();
        let mean = degrees.iter().sum::<u64>() as f64 / 200_000.0;
        assert!((3.5..5.5).contains(&mean), "{mean}");
        let share = |least: u64| {
            degrees.iter().filter(|degree| **degree >= least).count() as f64 / 200_000.0
        };
        for least in [1, 10, 100] {
            let expected = (1.0 + least as f64 / SCALE).powf(-SHAPE);
            let ratio = share(least) / expected;
            assert!((0.8..1.2).contains(&ratio), "{least} links: {ratio} of the expected share");
        }
    }

    #[test]
    fn links_are_repeatable_and_lead_to_different_nodes() {
        for nodes in [2, 100, 1_000_000] {
            let links = Links::new(nodes, 5);
            let some = nodes.min(500);
            let ids: BTreeSet<u64> = (0..some).map(|link| links.id2(1, 1, link)).collect();
            assert_eq!(ids.len() as u64, some);
            assert!(ids.iter().all(|id| (1..=nodes).contains(id)));
            assert_eq!(links.degrees(7), Links::new(nodes, 5).degrees(7));
        }
    }
}
