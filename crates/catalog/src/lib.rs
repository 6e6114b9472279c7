//! Layer 8: the trees of an open database by name, and the update functions that they may have.
//!
//! ```text
//!  create, rename, remove --> one edit, durable --> what is in memory
//! ```

mod catalog;
mod update_fns;

pub use catalog::{Catalog, CatalogParts};
pub use update_fns::UpdateFns;
