//! Whole-engine models, for tests only: a database on an in-memory device executes a random history
//! and is compared with a model, which is one map for each tree.
//!
//! ```text
//!  seed -> History (operations, generated without looking at the engine)
//!              |
//!              v            same op
//!  Setup -> Simulation ----------------> Model   answers must agree, op by op
//!              |
//!          MemoryDevice --- lost and torn writes ----> recovered database == one of the
//!                                                      AllowedStates
//! ```
//!
//! | module | content |
//! |---|---|
//! | [`model`] | the expected contents of the database: trees, snapshots, cursors as plain maps |
//! | [`history`] | random histories of operations, generated from a seed |
//! | [`functions`] | update functions that histories use |
//! | [`setup`] | options, under any of which a history must give the same answers |
//! | [`simulation`] | executes a history on engine and model and compares the answers |
//! | [`shrink`](mod@shrink) | reduces a failing history |
//! | [`list_append`] | histories of concurrent transactions, and the check for anomalies |
//! | [`crash`] | the states allowed after power loss, and the check of a recovered database |
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

pub use crash::{AllowedStates, check_recovered};
pub use history::{History, Op, Profile};
pub use setup::Setup;
pub use simulation::Simulation;
