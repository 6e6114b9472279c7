//! The import graph of one crate or of the plugin: units, cycles, and the edges whose removal
//! breaks a cycle.
//!
//! A unit is a Rust file, or a C++ header with its source file. A cycle is a strongly connected
//! component of two or more units: every unit in it reaches every other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Number of edges that [`Graph::describe`] proposes to cut.
const CUTS: usize = 3;

/// Units by name, each with the units that it imports.
#[derive(Debug, Default)]
pub(super) struct Graph {
    edges: BTreeMap<String, BTreeSet<String>>,
}

/// The names of the units that form a cycle, sorted.
pub(super) type Cycle = BTreeSet<String>;

impl Graph {
    /// Adds an import. An import of a unit by itself, such as a source file's include of its own
    /// header, does not count.
    pub(super) fn add(&mut self, from: &str, to: &str) {
        if from != to {
            self.edges.entry(from.to_owned()).or_default().insert(to.to_owned());
        }
    }

    /// Returns the imports from a lower folder to a higher one. `layers` lists the folders of the
    /// units, the highest first. Imports from or to a folder that is not in `layers` count too.
    pub(super) fn upward(&self, layers: &[String]) -> Vec<String> {
        let level = |unit: &str| {
            let folder = unit.split('/').next().unwrap_or(unit);
            layers.iter().position(|layer| layer == folder)
        };
        let mut upward = Vec::new();
        for (from, all) in &self.edges {
            let goes_down =
                |to: &str| matches!((level(from), level(to)), (Some(a), Some(b)) if a <= b);
            let wrong = all.iter().filter(|to| !goes_down(to));
            upward.extend(wrong.map(|to| format!("{from} imports {to}")));
        }
        upward
    }

    /// Returns all cycles, the largest first.
    pub(super) fn cycles(&self) -> Vec<Cycle> {
        self.cycles_without(None)
    }

    /// Returns the cycles that are left when the edge `cut` is removed, the largest first.
    fn cycles_without(&self, cut: Option<(&str, &str)>) -> Vec<Cycle> {
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            self.edges.keys().map(|unit| (unit.as_str(), self.reach(unit, cut))).collect();
        let mut cycles = BTreeSet::new();
        for (unit, reach) in &reached {
            let returns = |other: &&&str| reached.get(**other).is_some_and(|r| r.contains(unit));
            let cycle: Cycle = reach.iter().filter(returns).map(|it| (*it).to_owned()).collect();
            if !cycle.is_empty() {
                cycles.insert(cycle);
            }
        }
        let mut cycles: Vec<Cycle> = cycles.into_iter().collect();
        cycles.sort_by_key(|cycle| std::cmp::Reverse(cycle.len()));
        cycles
    }

    /// Returns the units that `from` reaches over one or more edges, without the edge `cut`.
    fn reach<'a>(&'a self, from: &'a str, cut: Option<(&str, &str)>) -> BTreeSet<&'a str> {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(unit) = open.pop() {
            for next in self.edges.get(unit).into_iter().flatten() {
                if cut != Some((unit, next)) && reached.insert(next.as_str()) {
                    open.push(next);
                }
            }
        }
        reached
    }

    /// Describes a cycle: its size, its edges by unit, and the single edges whose removal shrinks
    /// it most.
    pub(super) fn describe(&self, crate_name: &str, cycle: &Cycle) -> String {
        let mut text = format!("{crate_name}: a cycle of {}\n", cycle.len());
        for unit in cycle {
            let inside: Vec<&str> = self.inside(unit, cycle).collect();
            let _ = writeln!(text, "  {unit} -> {}", inside.join(", "));
        }
        for (left, from, to) in self.best_cuts(cycle) {
            let _ = writeln!(text, "  cut {from} -> {to}: {left} left");
        }
        text
    }

    fn inside<'a>(&'a self, unit: &str, cycle: &'a Cycle) -> impl Iterator<Item = &'a str> {
        let imports = self.edges.get(unit).into_iter().flatten();
        imports.filter(|to| cycle.contains(*to)).map(String::as_str)
    }

    /// Returns up to [`CUTS`] edges whose removal leaves the smallest cycles, each with the size of
    /// the largest cycle that is left.
    fn best_cuts<'a>(&'a self, cycle: &'a Cycle) -> Vec<(usize, &'a str, &'a str)> {
        let mut alone = Graph::default();
        for unit in cycle {
            self.inside(unit, cycle).for_each(|to| alone.add(unit, to));
        }
        let mut cuts = Vec::new();
        for unit in cycle {
            for to in self.inside(unit, cycle) {
                let left = alone.cycles_without(Some((unit, to))).first().map_or(0, Cycle::len);
                if left < cycle.len() {
                    cuts.push((left, unit.as_str(), to));
                }
            }
        }
        cuts.sort_unstable();
        cuts.truncate(CUTS);
        cuts
    }
}

#[cfg(test)]
impl Graph {
    pub(super) fn edges(&self) -> Vec<String> {
        let edges = |(from, to): (&String, &BTreeSet<String>)| {
            to.iter().map(|to| format!("{from}>{to}")).collect::<Vec<_>>()
        };
        self.edges.iter().flat_map(edges).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &str) -> Graph {
        let mut graph = Graph::default();
        for edge in edges.split(' ') {
            let (from, to) = edge.split_once('>').unwrap();
            graph.add(from, to);
        }
        graph
    }

    fn names(cycles: &[Cycle]) -> Vec<String> {
        cycles.iter().map(|c| c.iter().map(String::as_str).collect::<String>()).collect()
    }

    #[test]
    fn a_tree_and_a_diamond_have_no_cycle() {
        assert!(graph("a>b b>c").cycles().is_empty());
        assert!(graph("a>b a>c b>d c>d a>a").cycles().is_empty());
    }

    #[test]
    fn cycles_that_only_touch_are_apart_and_the_larger_one_comes_first() {
        let graph = graph("a>b b>a b>c c>d d>e e>c e>f");
        assert_eq!(names(&graph.cycles()), ["cde", "ab"]);
    }

    #[test]
    fn an_import_goes_up_if_its_folder_is_above_or_in_no_layer() {
        let files = graph("a/x>b/x b/x>c/x b/x>b/y c/x>b/y b/y>d/x");
        let layers = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(files.upward(&layers), ["b/y imports d/x", "c/x imports b/y"]);
    }

    #[test]
    fn a_cycle_is_described_with_its_edges_and_the_best_one_to_cut() {
        let graph = graph("a>b b>c c>a c>b a>x x>y");
        assert_eq!(
            graph.describe("k", &graph.cycles()[0]),
            "k: a cycle of 3\n  a -> b\n  b -> c\n  c -> a, b\n  \
             cut b -> c: 0 left\n  cut a -> b: 2 left\n  cut c -> a: 2 left\n"
        );
    }
}
