//! The context of each part of the workload, and the figures.

use super::super::Spec;
use crate::driver::Progress;
use crate::report::Figure;

/// The plan of the workload and the figures of its parts so far.
pub(super) struct Parts<'a> {
    pub(super) spec: &'a Spec,
    pub(super) progress: &'a Progress,
    pub(super) figures: Vec<Figure>,
}

impl Parts<'_> {
    pub(super) fn add(&mut self, figure: Figure) {
        self.figures.push(figure);
    }
}
