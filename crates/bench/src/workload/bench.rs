//! The context of a workload: its plan, the open engine, and the measurement that it fills in.

use super::Spec;
use crate::driver::Progress;
use crate::engine::Engine;
use crate::report::Measurement;

/// The context of a workload on an open engine.
pub struct Bench<'a> {
    /// The plan.
    pub spec: &'a Spec,
    /// The open engine.
    pub engine: &'a dyn Engine,
    /// The measurement that the workload fills in.
    pub measurement: Measurement,
    /// Where progress is shown.
    pub progress: Progress,
}
