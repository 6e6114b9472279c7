//! What each isolation level allows.
//!
//! | level | forbids |
//! |---|---|
//! | read committed | G0, G1a, G1b, G1c, lost appends |
//! | snapshot isolation | these, and cycles in which no two rw edges are neighbours: G-single, so lost updates and fractured reads |
//! | serializable | every cycle |
//!
//! All count real time: what was over before is seen by what began later. All of the engine's
//! levels promise that, since a commit that has returned is visible.

use std::fmt;

use super::graph::{Edge, Graph};
use super::history::{History, KeyNumber};
use super::order::{Repeated, order_of};

/// Something that a level forbids. Transactions are by their place in the history.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // The fields say what they are.
pub enum Anomaly {
    /// A value was appended twice, or stands in a list twice: no history of this kind.
    Duplicate { value: u64 },
    /// A list has at its end what nobody committed.
    NeverCommitted { key: KeyNumber, value: u64 },
    /// What was committed is in no list.
    LostAppend { transaction: usize, key: KeyNumber, value: u64 },
    /// A read does not end in the transaction's own appends.
    OwnAppendMissing { transaction: usize, key: KeyNumber },
    /// Two reads of a list by one transaction do not agree.
    NotRepeatable { transaction: usize, key: KeyNumber },
    /// A read saw what was rolled back, or a transaction's own appends too early.
    G1a { transaction: usize, key: KeyNumber, value: u64 },
    /// A read saw a version that its writer went on to change.
    G1b { transaction: usize, key: KeyNumber, value: u64 },
    /// A read saw what the list never was.
    NoVersion { transaction: usize, key: KeyNumber },
    /// A cycle of who must come before whom: transactions, each with the edge to the next.
    Cycle { class: Class, way: Vec<(usize, Edge)> },
}

/// Classes of cycles, the worst first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// Of ww only.
    G0,
    /// Of ww and wr.
    G1c,
    /// With one rw.
    GSingle,
    /// With several rw, no two of them neighbours.
    GNonadjacent,
    /// With neighbouring rw.
    G2Item,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Cycle { class, way } = self else { return write!(f, "{self:?}") };
        write!(f, "{class:?}:")?;
        way.iter().try_for_each(|(transaction, edge)| write!(f, " T{transaction} -{edge:?}->"))
    }
}

/// Everything in `history` that read committed forbids.
#[must_use]
pub fn check_read_committed(history: &History) -> Vec<Anomaly> {
    let mut anomalies = Vec::new();
    let order = order_of(history, Repeated::Newer, &mut anomalies);
    let graph = Graph::new(history, &order);
    anomalies.extend(dirty_cycle(&graph));
    anomalies
}

/// Everything in `history` that snapshot isolation forbids; of cycles the worst one.
#[must_use]
pub fn check_snapshot_isolation(history: &History) -> Vec<Anomaly> {
    let mut anomalies = Vec::new();
    let order = order_of(history, Repeated::Same, &mut anomalies);
    let graph = Graph::new(history, &order);
    anomalies.extend(dirty_cycle(&graph).or_else(|| snapshot_cycle(&graph)));
    anomalies
}

/// Everything in `history` that cannot happen if transactions run one after the other; of cycles
/// the worst one.
#[must_use]
pub fn check_serializable(history: &History) -> Vec<Anomaly> {
    let mut anomalies = Vec::new();
    let order = order_of(history, Repeated::Same, &mut anomalies);
    let graph = Graph::new(history, &order);
    let any = || graph.cycle().map(|way| cycle(&graph, Class::G2Item, &way));
    anomalies.extend(dirty_cycle(&graph).or_else(|| snapshot_cycle(&graph)).or_else(any));
    anomalies
}

/// A cycle without rw: first one without real time, which says more.
fn dirty_cycle(graph: &Graph) -> Option<Anomaly> {
    let classes = [(Class::G0, &[Edge::Ww][..]), (Class::G1c, &[Edge::Ww, Edge::Wr])];
    for (class, edges) in classes {
        for real_time in [false, true] {
            let keep = |edge| edges.contains(&edge) || real_time && edge == Edge::RealTime;
            if let Some(way) = graph.only(keep).cycle() {
                return Some(cycle(graph, class, &way));
            }
        }
    }
    None
}

fn snapshot_cycle(graph: &Graph) -> Option<Anomaly> {
    let way = graph.without_neighbouring_rw().cycle()?;
    if let Some(single) = graph.cycle_with_one_rw() {
        return Some(cycle(graph, Class::GSingle, &single));
    }
    let nodes = graph.edges.len();
    let way: Vec<_> = way.into_iter().map(|(node, edge)| (node % nodes, edge)).collect();
    Some(cycle(graph, Class::GNonadjacent, &way))
}

fn cycle(graph: &Graph, class: Class, way: &[(usize, Edge)]) -> Anomaly {
    let named = |&(node, edge): &(usize, Edge)| graph.transaction(node).map(|t| (t, edge));
    Anomaly::Cycle { class, way: way.iter().filter_map(named).collect() }
}
