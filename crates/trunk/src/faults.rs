//! The known faults of a node: damage noted in its runs, and the reason why its jobs fail.

use frondb_core::{Error, RunId};

use crate::node::Node;

impl Node {
    /// Returns the node's runs in which background work has found damage.
    pub fn damaged_runs(&self) -> impl Iterator<Item = RunId> {
        let noted = self.hints.damage.runs();
        noted.into_iter().filter(|run| self.views().any(|view| view.run.meta().id == *run))
    }

    /// Returns the damage noted in one of the node's runs; `None` if there is none.
    #[must_use]
    pub fn damage(&self) -> Option<Error> {
        let damage = &self.hints.damage;
        if damage.is_none() {
            return None;
        }
        self.views().find_map(|view| damage.error_of(view.run.meta().id))
    }

    /// Returns the reason why jobs on the node fail: its damage, or else the last failure.
    #[must_use]
    pub fn why_jobs_fail(&self) -> Option<Error> {
        self.damage().or_else(|| self.hints.damage.failure())
    }
}
