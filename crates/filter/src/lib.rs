//! Layer 1: filters. A filter answers that a run does not have a key, which is certain, or that the
//! run may have the key.
//!
//! Callers hash a key or its prefix to 64 bits. A [`FilterKind`] determines how the hashes are
//! stored: a blocked Bloom filter for short-lived runs (cheap to build), or a binary fuse filter
//! for bases (smaller and more precise, more expensive to build). A run's writer pushes hashes into
//! a [`FilterBuilder`]; its reader opens the bytes as a [`FilterReader`]. This interface hides the
//! structure, so that another one can replace it.
//!
//! Opening validates the bytes: a hostile filter can give wrong answers, but a query never reads
//! outside the filter's bytes.

mod bloom;
mod builder;
pub mod format;
mod fuse;
mod kind;
mod reader;

#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod fuzz;

pub use builder::FilterBuilder;
pub use kind::FilterKind;
pub use reader::{FilterError, FilterReader};
