//! Layer 8: the catalog, which finds the trees of an open database by name, and the registry of
//! update functions that trees may use.
//!
//! ```text
//!  create, rename, remove --> one manifest edit, durable --> change in memory
//! ```

mod catalog;
mod update_fns;

pub use catalog::{Catalog, CatalogParts};
pub use update_fns::UpdateFns;
