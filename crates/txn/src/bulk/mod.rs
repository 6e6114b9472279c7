//! Bulk load: see [`load`].

mod load;
mod merging;
mod new_trees;

pub use load::{
    BulkLoad, BulkOptions, BulkProgress, BulkReport, BulkWriter, Duplicate, Duplicates,
};
