//! Whole-engine models, for tests only: a database on an in-memory device, driven by a random
//! history, and held against a model that is a map a tree.
//!
//! ```text
//!  seed -> History (ops, made without looking at the engine)
//!              |
//!              v            same op
//!  Setup -> Simulation ----------------> Model   answers must agree, op by op
//!              |
//!          MemoryDevice --- stops, tears, forgets ---> recovered database == a state that Known
//!                                                      allows
//! ```
//!
//! | module | what it has |
//! |---|---|
//! | [`model`] | what the database should hold: trees, snapshots, cursors as plain maps |
//! | [`history`] | random histories of operations by seed |
//! | [`functions`] | update functions that histories use |
//! | [`setup`] | options under which a history must give the same answers |
//! | [`simulation`] | carries a history out on engine and model and compares |
//! | [`shrink`](mod@shrink) | makes a failing history small |
//! | [`list_append`] | histories of concurrent transactions, and the check for anomalies |
//! | [`crash`] | which states are allowed after power loss, and the check of a recovered database |
//!
//! A failure names its seed and the number of the operation; `FRONDB_SEED` replays one seed.

pub mod crash;
pub mod functions;
pub mod history;
pub mod list_append;
pub mod model;
pub mod setup;
pub mod shrink;
pub mod simulation;

pub use crash::{Known, check_recovered};
pub use history::{History, Op, Profile};
pub use setup::Setup;
pub use simulation::Simulation;
