//! [`World`]: an engine with two trees and a model of what they hold, driven by a seed: batches, commits
//! with private runs, prepared transactions, snapshots, flushes, reopening.
#![allow(dead_code, unused_imports, reason = "each test uses a part")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

pub(crate) mod model;
pub(crate) mod step;
pub(crate) mod world;

pub(crate) use model::Expected;
pub(crate) use step::Step;
pub(crate) use world::World;
