//! The required order of transactions, and cycles in it. An edge leads from a transaction to one
//! that must come later. The kind of the edge says why, that is, what the first transaction did:
//!
//! ```text
//!  ww   made the version before the other's version
//!  wr   made the version that the other read
//!  rw   read the version before the other's version
//!  rt   ended before the other began
//! ```
//! Real time has nodes of its own, one for each end of a transaction, so that it needs at most
//! three edges per transaction instead of one per pair of transactions:
//!
//! ```text
//!  T1 --end--> o ------> o --begin--> T3        T1 ended before T3 began
//!                        ^--end-- T2
//! ```

use std::collections::VecDeque;

use super::anomaly::Edge;
use super::history::History;
use super::order::Order;

/// A directed graph; nodes below `transactions` are transactions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    pub(crate) edges: Vec<Vec<(usize, Edge)>>,
    transactions: usize,
}

impl Graph {
    /// Creates the graph of the committed transactions.
    pub(crate) fn new(history: &History, order: &Order) -> Self {
        let transactions = history.transactions.len();
        let mut graph = Self { edges: vec![Vec::new(); transactions], transactions };
        for writers in order.writers.values() {
            for pair in writers.windows(2) {
                graph.add(pair[0], pair[1], Edge::Ww);
            }
        }
        for read in &order.reads {
            let writers = order.writers.get(&read.key).map_or(&[][..], |writers| writers);
            if let Some(last) = read.length.checked_sub(1).and_then(|at| writers.get(at)) {
                graph.add(*last, read.transaction, Edge::Wr);
            }
            // The transaction that appended the next element comes after the reader. If it is the
            // reader itself, `add` adds no edge: the ww edges order its append.
            if let Some(next) = writers.get(read.length) {
                graph.add(read.transaction, *next, Edge::Rw);
            }
        }
        graph.add_real_time(history);
        graph
    }

    fn add(&mut self, from: usize, to: usize, edge: Edge) {
        if from != to && !self.edges[from].contains(&(to, edge)) {
            self.edges[from].push((to, edge));
        }
    }

    fn add_real_time(&mut self, history: &History) {
        let committed = history.transactions.iter().enumerate().filter(|(_, t)| t.is_committed());
        let mut ticks: Vec<(u64, bool, usize)> = Vec::new();
        for (number, transaction) in committed {
            ticks.push((transaction.begin, true, number));
            ticks.push((transaction.end, false, number));
        }
        ticks.sort_unstable();
        let mut last_end = None;
        for (_, begins, number) in ticks {
            if begins {
                if let Some(end) = last_end {
                    self.add(end, number, Edge::RealTime);
                }
                continue;
            }
            let end = self.edges.len();
            self.edges.push(Vec::new());
            self.add(number, end, Edge::RealTime);
            if let Some(before) = last_end {
                self.add(before, end, Edge::RealTime);
            }
            last_end = Some(end);
        }
    }

    /// Returns the same nodes with only the edges that `keep` accepts.
    pub(crate) fn only(&self, keep: impl Fn(Edge) -> bool) -> Self {
        let kept = |edges: &Vec<(usize, Edge)>| {
            edges.iter().copied().filter(|(_, edge)| keep(*edge)).collect()
        };
        Self { edges: self.edges.iter().map(kept).collect(), transactions: self.transactions }
    }

    /// Returns a graph that has a cycle if and only if this graph has a cycle in which no two rw
    /// edges are adjacent. It has each node twice, depending on whether the node was reached by an
    /// rw edge; a node reached by an rw edge has no outgoing rw edge.
    pub(crate) fn without_neighbouring_rw(&self) -> Self {
        let count = self.edges.len();
        let mut edges = vec![Vec::new(); 2 * count];
        for (from, out) in self.edges.iter().enumerate() {
            for &(to, edge) in out {
                if edge == Edge::Rw {
                    edges[from].push((count + to, edge));
                } else {
                    edges[from].push((to, edge));
                    edges[count + from].push((to, edge));
                }
            }
        }
        Self { edges, transactions: self.transactions }
    }

    /// Finds a cycle: a shortest one through the first node of a component with several nodes.
    pub(crate) fn cycle(&self) -> Option<Vec<(usize, Edge)>> {
        let from = components(&self.edges).into_iter().find(|nodes| nodes.len() > 1)?;
        self.path(*from.first()?, *from.first()?)
    }

    /// Finds a cycle with exactly one rw edge.
    pub(crate) fn cycle_with_one_rw(&self) -> Option<Vec<(usize, Edge)>> {
        let others = self.only(|edge| edge != Edge::Rw);
        for (from, out) in self.edges.iter().enumerate() {
            for &(to, _) in out.iter().filter(|(_, edge)| *edge == Edge::Rw) {
                if let Some(mut path) = others.path(to, from) {
                    path.push((from, Edge::Rw));
                    return Some(path);
                }
            }
        }
        None
    }

    /// Returns a shortest path of at least one edge: each node with the edge that leaves it.
    fn path(&self, from: usize, to: usize) -> Option<Vec<(usize, Edge)>> {
        let mut came: Vec<Option<(usize, Edge)>> = vec![None; self.edges.len()];
        let mut queue = VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            for &(next, edge) in &self.edges[node] {
                if came[next].is_some() {
                    continue;
                }
                came[next] = Some((node, edge));
                if next == to {
                    return Some(path_back(&came, from, to));
                }
                queue.push_back(next);
            }
        }
        None
    }

    /// Returns the transaction of a node; `None` for a real-time node.
    pub(crate) fn transaction(&self, node: usize) -> Option<usize> {
        (node < self.transactions).then_some(node)
    }
}

fn path_back(came: &[Option<(usize, Edge)>], from: usize, to: usize) -> Vec<(usize, Edge)> {
    let mut path = Vec::new();
    let mut at = to;
    while let Some((before, edge)) = came[at] {
        path.push((before, edge));
        at = before;
        if at == from {
            break;
        }
    }
    path.reverse();
    path
}

/// Returns the strongly connected components, by Tarjan's algorithm, without recursion.
pub(crate) fn components(edges: &[Vec<(usize, Edge)>]) -> Vec<Vec<usize>> {
    const UNSEEN: usize = usize::MAX;
    let mut index = vec![UNSEEN; edges.len()];
    let mut low = vec![0; edges.len()];
    let mut on_stack = vec![false; edges.len()];
    let (mut stack, mut found, mut next) = (Vec::new(), Vec::new(), 0);
    for root in 0..edges.len() {
        if index[root] != UNSEEN {
            continue;
        }
        let mut calls = vec![(root, 0)];
        while let Some((node, at)) = calls.pop() {
            if at == 0 {
                (index[node], low[node]) = (next, next);
                next += 1;
                stack.push(node);
                on_stack[node] = true;
            } else {
                // Returned from the child of the previous edge.
                let (child, _) = edges[node][at - 1];
                if on_stack[child] {
                    low[node] = low[node].min(low[child]);
                }
            }
            if let Some(&(child, _)) = edges[node].get(at) {
                calls.push((node, at + 1));
                if index[child] == UNSEEN {
                    calls.push((child, 0));
                }
                continue;
            }
            if low[node] == index[node] {
                let from = stack.iter().rposition(|on| *on == node).unwrap_or_default();
                let component = stack.split_off(from);
                component.iter().for_each(|node| on_stack[*node] = false);
                found.push(component);
            }
        }
    }
    found
}
