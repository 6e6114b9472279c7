//! A trunk on an in-memory device, without an engine: [`Lab`] runs jobs, installs their results and
//! checks every change; [`model`] says what readers must see.
#![allow(dead_code, unused_imports, reason = "each test uses a part")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

pub(crate) mod install_script;
pub(crate) mod lab;
pub(crate) mod messages;
pub(crate) mod model;
pub(crate) mod plan_script;

pub(crate) use lab::{InFlight, Lab};
pub(crate) use messages::{Entry, Tags};
