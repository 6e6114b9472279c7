//! Layer 2: the block cache. It holds blocks, decompressed or as they are on disk, in the memory
//! that the budget leaves, for all readers.
//!
//! The policy is S3-FIFO, in shards. A hit takes a shared lock and changes one counter. A block
//! that is read once passes through a small queue and does not displace blocks that are read again,
//! so a full scan leaves the hot set in place. `docs/design/cache.md` has the picture. FronDB has
//! its own implementation because the capacity changes hundreds of times a second, and quick_cache
//! clears its ghost queue at each change (60.8 % hits instead of 64.6 %).
//!
//! | file | role |
//! |---|---|
//! | `key.rs` | [`CacheKey`] and its hash |
//! | `options.rs` | [`CacheOptions`] |
//! | `ghost.rs` | recently evicted keys |
//! | `list.rs` | queues of entries, linked by index |
//! | `table.rs` | the index from a key's hash to its entry |
//! | `shard.rs` | one shard: its table, its two queues, its ghost |
//! | `cache.rs` | [`Cache`]: shards, capacity and the budget |
//! | `rows.rs` | [`RowCache`]: single rows, where the data is much larger than the memory |

mod cache;
mod ghost;
mod key;
mod list;
mod options;
mod rows;
mod shard;
mod table;

pub use cache::{Cache, Stats};
pub use key::CacheKey;
pub use options::CacheOptions;
pub use rows::{Row, RowCache, RowStats};
pub use shard::Priority;
