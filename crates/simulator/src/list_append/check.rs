//! The checks of each isolation level.
//!
//! | level | forbids |
//! |---|---|
//! | read committed | G0, G1a, G1b, G1c, lost appends |
//! | snapshot isolation | the above, and cycles without adjacent rw edges (1) |
//! | serializable | every cycle |
//!
//! 1. G-single, which includes lost updates and fractured reads, and G-nonadjacent.
//!
//! All levels respect real time: a transaction sees all transactions that ended before it began.
//! All levels of the engine guarantee this, because a commit that has returned is visible.

use super::anomaly::{Anomaly, Class, Edge};
use super::graph::Graph;
use super::history::History;
use super::order::{Repeated, order_of};

/// Returns all violations of read committed in `history`; of the cycles only the worst one.
#[must_use]
pub fn check_read_committed(history: &History) -> Vec<Anomaly> {
    let mut anomalies = Vec::new();
    let order = order_of(history, Repeated::Newer, &mut anomalies);
    let graph = Graph::new(history, &order);
    anomalies.extend(dirty_cycle(&graph));
    anomalies
}

/// Returns all violations of snapshot isolation in `history`; of the cycles only the worst one.
#[must_use]
pub fn check_snapshot_isolation(history: &History) -> Vec<Anomaly> {
    let mut anomalies = Vec::new();
    let order = order_of(history, Repeated::Same, &mut anomalies);
    let graph = Graph::new(history, &order);
    anomalies.extend(dirty_cycle(&graph).or_else(|| snapshot_cycle(&graph)));
    anomalies
}

/// Returns all violations of serializability in `history`; of the cycles only the worst one.
#[must_use]
pub fn check_serializable(history: &History) -> Vec<Anomaly> {
    let mut anomalies = Vec::new();
    let order = order_of(history, Repeated::Same, &mut anomalies);
    let graph = Graph::new(history, &order);
    let any = || graph.cycle().map(|path| cycle(&graph, Class::G2Item, &path));
    anomalies.extend(dirty_cycle(&graph).or_else(|| snapshot_cycle(&graph)).or_else(any));
    anomalies
}

/// Finds a cycle without rw edges. Prefers a cycle without real-time edges, which says more.
fn dirty_cycle(graph: &Graph) -> Option<Anomaly> {
    let classes = [(Class::G0, &[Edge::Ww][..]), (Class::G1c, &[Edge::Ww, Edge::Wr])];
    for (class, edges) in classes {
        for real_time in [false, true] {
            let keep = |edge| edges.contains(&edge) || real_time && edge == Edge::RealTime;
            if let Some(path) = graph.only(keep).cycle() {
                return Some(cycle(graph, class, &path));
            }
        }
    }
    None
}

fn snapshot_cycle(graph: &Graph) -> Option<Anomaly> {
    let path = graph.without_neighbouring_rw().cycle()?;
    if let Some(single) = graph.cycle_with_one_rw() {
        return Some(cycle(graph, Class::GSingle, &single));
    }
    let nodes = graph.edges.len();
    let path: Vec<_> = path.into_iter().map(|(node, edge)| (node % nodes, edge)).collect();
    Some(cycle(graph, Class::GNonadjacent, &path))
}

fn cycle(graph: &Graph, class: Class, path: &[(usize, Edge)]) -> Anomaly {
    let named = |&(node, edge): &(usize, Edge)| graph.transaction(node).map(|t| (t, edge));
    Anomaly::Cycle { class, path: path.iter().filter_map(named).collect() }
}
