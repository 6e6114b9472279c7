//! The engines of this crate: FronDB, redb, with which `run` compares it, and a map in memory that
//! the tests run on.

pub mod frondb;
pub mod model;
pub mod redb;
