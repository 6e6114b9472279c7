//! What a merge takes for each of its inputs, and how it takes less where there is little memory.
//!
//! ```text
//!   input   | window of encoded blocks | a decoded block | chunk |
//!           goes with its last block                     the merge's arrays
//! ```
//!
//! A decoded block is the least that an input can do with, so with little memory blocks of runs are smaller,
//! and the planner merges so many runs at once as a part of the memory has room for.

/// With less memory than this there is little.
const ORDINARY_BYTES: u64 = 64 << 20;

/// Largest chunk with little memory, entries.
pub(crate) const CHUNK_ENTRIES_LITTLE: usize = 256;

/// Window of a merge, bytes, with ordinary memory.
const MERGE_WINDOW_BYTES: u64 = 128 << 10;

/// The least window, and the least block that a run is made to have.
const LITTLE_BYTES_MIN: u64 = 16 << 10;

/// What an input takes with ordinary memory, about, in windows.
const INPUT_WINDOWS: u64 = 6;

/// What an input takes with little memory beside its window and a decoded block: a chunk of entries of
/// ordinary size.
const CHUNK_BYTES_LITTLE: u64 = 12 << 10;

/// The inputs of one merge take at most the memory divided by this, where it is little.
const MERGE_DIVISOR: u64 = 8;

/// Whether a merge and a walk make do with less.
pub(crate) fn is_little(memory_bytes: u64) -> bool {
    memory_bytes < ORDINARY_BYTES
}

/// Window of a merge, bytes: with little memory smaller, for a merge has one for each of its inputs.
pub(crate) fn merge_window_bytes(memory_bytes: u64) -> usize {
    if !is_little(memory_bytes) {
        return MERGE_WINDOW_BYTES as usize;
    }
    (memory_bytes / 1024).max(LITTLE_BYTES_MIN) as usize
}

/// Key and value bytes that a block of a run has at most, one entry not counted.
#[must_use]
pub fn run_block_bytes_max(memory_bytes: u64) -> usize {
    if is_little(memory_bytes) { merge_window_bytes(memory_bytes) } else { usize::MAX }
}

/// What a merge takes for each of its inputs, about.
#[must_use]
pub fn merge_input_bytes(memory_bytes: u64) -> u64 {
    let window = merge_window_bytes(memory_bytes) as u64;
    if !is_little(memory_bytes) {
        return window * INPUT_WINDOWS;
    }
    // A block takes a quarter more than its bytes, and is as large as the window.
    window + window * 5 / 4 + CHUNK_BYTES_LITTLE
}

/// How many inputs a merge may have.
#[must_use]
pub fn merge_inputs_max(memory_bytes: u64) -> usize {
    if !is_little(memory_bytes) {
        return usize::MAX;
    }
    let inputs = memory_bytes / MERGE_DIVISOR / merge_input_bytes(memory_bytes);
    (inputs as usize).max(MERGE_INPUTS_MIN)
}

/// What the smallest memory, of tests, is to make do with: fewer, and a message were written often.
const MERGE_INPUTS_MIN: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inputs_of_a_merge_take_a_part_of_little_memory() {
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
