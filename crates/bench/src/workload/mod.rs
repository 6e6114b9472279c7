//! The workloads: what each writes, reads and measures.
//!
//! | workload | writes | then measures |
//! |---|---|---|
//! | iibench | rows with three secondary entries each | points, scans, one full scan |
//! | overwrite | the rows of one tree, then random ones again | points, short scans |
//! | delete-left | as iibench, then the lower half deleted in order | first and last key after it |
//! | mixed | as iibench, then a writer at a fixed rate | two readers beside the writer |
//! | reads | as iibench, multiples of the memory | reads by 1 to 32 threads |
//! | compression | rows of one tree, of two kinds, in each codec | size, points, one full scan |
//! | durable | as iibench: 1, 1,000 and 10,000 rows a commit | rows a second, synced and not |
//! | fsync | rows in synced commits of many sizes, then 1 each | cost of a sync, syncs a commit |
//! | txn | rows one a transaction, and many in one | transactions beside batches |
//! | hot | the same 1 % of one tree's rows over and over | reads of it and of an idle tree |
//! | queue | rows of one tree, then pops of the first or last | pops a second |
//! | far | as iibench, a thousand times the reads' memory | opening, and points |
//! | backup | rows of one tree, and new ones beside backups | backups, and the writer's rate |
//! | memory | cases that could hold more memory than the option | resident memory |
//! | merge | nothing: the merge kernel in memory | entries a second |
//!
//! A [`Spec`] is the complete plan of a child. A workload gets the plan and the open engine in a
//! [`Bench`] (a workload that calls FronDB itself: only the plan), and fills in a
//! [`Measurement`](crate::report::Measurement).

pub(crate) mod backup;
mod bench;
pub(crate) mod compression;
mod delete_left;
mod durable;
pub(crate) mod far;
mod fsync;
pub(crate) mod hot;
mod iibench;
mod load;
pub(crate) mod memory;
mod merge;
mod mixed;
mod overwrite;
pub(crate) mod queue;
pub(crate) mod reads;
mod run;
mod settle;
mod spec;
mod threads;
mod timed;
mod txn;
mod variants;

pub use bench::Bench;
pub use compression::TOKUDB;
pub use load::{Load, Written, generation_us_per_row};
pub use merge::KERNEL;
pub use run::run;
pub use spec::{Part, ReadSeconds, Spec, Variant, Workload};
pub use timed::{TableReads, Timed, table_reads, timed};

#[cfg(test)]
mod tests;
