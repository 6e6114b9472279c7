//! Unit tests that call parts of an open database which the public API does not expose.
//!
//! | folder | what |
//! |---|---|
//! | [`attach`] | private runs that large commits attach: histories, crashes, full disks |
//! | [`rules`] | rules of docs/design/rules.md, one step each |

pub(crate) mod attach;
mod rules;
