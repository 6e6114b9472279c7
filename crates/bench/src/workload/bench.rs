//! What a workload gets: its plan, the open engine, and where to put its figures.

use super::Spec;
use crate::driver::Progress;
use crate::engine::Engine;
use crate::report::Measurement;

/// The context in which a workload runs.
pub struct Bench<'a> {
    /// The plan.
    pub spec: &'a Spec,
    /// The open engine.
    pub engine: &'a dyn Engine,
    /// Where the workload writes its figures.
    pub measurement: Measurement,
    /// Where progress is shown.
    pub progress: Progress,
}
