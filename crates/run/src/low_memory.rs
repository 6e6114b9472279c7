//! The memory of a merge's inputs, and how it shrinks with low memory.
//!
//! ```text
//!   input   | window of encoded blocks | a decoded block | chunk |
//!           freed with its last block                    the merge's arrays
//! ```
//!
//! An input needs at least one decoded block. So with low memory the blocks of runs are smaller,
//! and a merge has only as many inputs as fit into a fraction of the memory budget.

/// A memory budget smaller than this is *low memory*.
const LOW_MEMORY_BYTES: u64 = 64 << 20;

/// Largest chunk with low memory, entries.
pub(crate) const CHUNK_ENTRIES_LOW_MEMORY: usize = 256;

/// Window of a merge, bytes, with ordinary memory.
const MERGE_WINDOW_BYTES: u64 = 128 << 10;

/// Smallest window of a merge, and smallest value of [`run_block_bytes_max`].
const WINDOW_BYTES_MIN: u64 = 16 << 10;

/// Approximate memory of an input with ordinary memory, in windows.
const INPUT_WINDOWS: u64 = 6;

/// With low memory: bytes of an input besides its window and a decoded block, for a chunk of
/// entries of ordinary size.
const CHUNK_BYTES_LOW_MEMORY: u64 = 12 << 10;

/// With low memory, the inputs of one merge take at most the memory budget divided by this.
const MERGE_DIVISOR: u64 = 8;

/// Returns whether merges and cursors must save memory.
pub(crate) fn is_low_memory(memory_bytes: u64) -> bool {
    memory_bytes < LOW_MEMORY_BYTES
}

/// Returns the window of a merge, in bytes: smaller with low memory, because a merge has a window
/// per input.
pub(crate) fn merge_window_bytes(memory_bytes: u64) -> usize {
    if !is_low_memory(memory_bytes) {
        return MERGE_WINDOW_BYTES as usize;
    }
    (memory_bytes / 1024).max(WINDOW_BYTES_MIN) as usize
}

/// Returns the maximum number of key and value bytes of a run's block, not counting its last entry.
#[must_use]
pub fn run_block_bytes_max(memory_bytes: u64) -> usize {
    if is_low_memory(memory_bytes) { merge_window_bytes(memory_bytes) } else { usize::MAX }
}

/// Returns the approximate memory of each input of a merge, in bytes.
#[must_use]
pub fn merge_input_bytes(memory_bytes: u64) -> u64 {
    let window = merge_window_bytes(memory_bytes) as u64;
    if !is_low_memory(memory_bytes) {
        return window * INPUT_WINDOWS;
    }
    // With low memory, a block has at most about a window of key and value bytes, and takes a
    // quarter more than that when decoded.
    window + window * 5 / 4 + CHUNK_BYTES_LOW_MEMORY
}

/// Returns the maximum number of inputs of one merge.
#[must_use]
pub fn merge_inputs_max(memory_bytes: u64) -> usize {
    if !is_low_memory(memory_bytes) {
        return usize::MAX;
    }
    let inputs = memory_bytes / MERGE_DIVISOR / merge_input_bytes(memory_bytes);
    (inputs as usize).max(MERGE_INPUTS_MIN)
}

/// Smallest value of [`merge_inputs_max`], reached only with the smallest budgets of tests: with
/// fewer inputs per merge, each message would be rewritten too often.
const MERGE_INPUTS_MIN: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inputs_of_a_merge_take_a_part_of_low_memory() {
        for mib in [16u64, 20, 32, 48, 63] {
            let memory = mib << 20;
            let inputs = merge_inputs_max(memory);
            assert!((32..64).contains(&inputs), "{mib} MiB: {inputs} inputs");
            assert!(inputs as u64 * merge_input_bytes(memory) <= memory / 8);
            assert!(run_block_bytes_max(memory) <= merge_window_bytes(memory));
        }
        assert_eq!(merge_inputs_max(64 << 20), usize::MAX);
        assert_eq!(merge_window_bytes(64 << 20), 128 << 10);
        assert_eq!(run_block_bytes_max(64 << 20), usize::MAX);
    }
}
