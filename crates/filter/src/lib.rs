//! Layer 1: filters, which say for sure that a run does not hold a key.
//!
//! Callers hash what they want to ask for, a key or its prefix, to 64 bits. A [`FilterKind`] says
//! how the hashes are kept: a blocked Bloom filter for runs that live for minutes (cheap to
//! build), a binary fuse filter for bases (smaller and exacter, dearer to build). A run's writer
//! pushes hashes into a [`FilterBuilder`] while it writes; its reader opens the bytes as a
//! [`FilterReader`]. The choice is behind this interface so that another structure can take its
//! place.
//!
//! Bytes are validated when opened: a filter from a hostile file answers wrongly, but never reads
//! outside.

mod bloom;
mod builder;
pub mod format;
mod fuse;
mod kind;
mod reader;

#[doc(hidden)]
pub mod fuzz;

pub use builder::FilterBuilder;
pub use kind::FilterKind;
pub use reader::FilterReader;
