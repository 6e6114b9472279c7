//! Layer 2: decompressed blocks, shared by all readers, in what the memory budget leaves.
//!
//! S3-FIFO in shards: a hit takes a shared lock and touches one counter; a block that is read once
//! passes through a small queue and does not disturb those that are read again, so a full scan
//! leaves the hot set alone. `docs/design/cache.md` has the picture, `docs/decisions` why it is
//! our own code.
//!
//! | file | role |
//! |---|---|
//! | `key.rs` | [`CacheKey`] and its hash |
//! | `options.rs` | [`CacheOptions`] |
//! | `ghost.rs` | what was evicted a short time ago |
//! | `list.rs` | queues of entries, linked by index |
//! | `table.rs` | from a key's hash to its entry |
//! | `shard.rs` | one shard: its table, its two queues, its ghost |
//! | `cache.rs` | [`Cache`]: shards, capacity and the budget |

mod cache;
mod ghost;
mod key;
mod list;
mod options;
mod shard;
mod table;

pub use cache::{Cache, Stats};
pub use key::CacheKey;
pub use options::CacheOptions;
pub use shard::Priority;
