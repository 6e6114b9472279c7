//! Tests of commits and prepared transactions with private runs. They are unit tests of the crate,
//! because they write private runs without a transaction.
//!
//! | file | |
//! |---|---|
//! | [`private_runs`] | commits and prepares private runs for the tests |
//! | [`rules`] | rules 6, 10, 15, 18, 19 and 22, one step at a time |
//! | [`histories`] | random histories against a model |
//! | [`crash`] | power loss at every write and sync of a random history |
//! | [`full_disk`] | a full disk at every write or allocation of a random history |
//! | [`model`], [`step`], [`world`] | the random histories: model, calls, db with its model |

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

mod crash;
mod full_disk;
mod histories;
mod model;
pub(crate) mod private_runs;
mod rules;
mod step;
mod world;
