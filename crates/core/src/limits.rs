//! Limits that several crates share.

/// Longest key, bytes. Keys must be short because they are copied into indexes and cursors; the SQL
/// layer needs 3,072.
pub const KEY_BYTES_MAX: usize = 32 * 1024;

/// Longest value, bytes.
pub const VALUE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Values longer than this are written to extents of their own before the commit (rule 17).
pub const VALUE_INLINE_BYTES_MAX: usize = 64 * 1024;

/// Longest name of a tree, bytes of UTF-8.
pub const TREE_NAME_BYTES_MAX: usize = 512;

/// Unit of allocation in data files, and of direct I/O.
pub const PAGE_BYTES: usize = 4096;

/// Largest decoded block that readers accept, bytes: a block with a single entry of the largest
/// size.
pub const BLOCK_RAW_BYTES_MAX: usize = VALUE_BYTES_MAX + KEY_BYTES_MAX + 64 * 1024;

const _: () = assert!(KEY_BYTES_MAX <= u16::MAX as usize);
const _: () = assert!(BLOCK_RAW_BYTES_MAX <= u32::MAX as usize);
