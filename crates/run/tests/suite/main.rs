//! The tests of this crate through its public items, one behaviour per file.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cache_warming;
mod columns;
mod damage;
mod dictionaries;
mod filter_memory;
mod frames;
mod fuzz_smoke;
mod held_blocks;
mod index_parts;
mod life_cycle;
mod range_filters;
mod read_needed;
mod round_trip;
mod row_cache;
mod spool;
mod support;
