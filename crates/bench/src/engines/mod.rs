//! The engines of this crate: FronDB, and a map in memory that the tests run on.

pub mod frondb;
pub mod model;
