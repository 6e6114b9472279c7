//! Checksums: XXH3 (Yann Collet), 64 bits. Non-cryptographic; it guards against faults, not
//! against an adversary.

/// XXH3-64 of `bytes`.
#[inline]
#[must_use]
pub fn xxh3(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}

/// XXH3-64 of `bytes` with a seed, for what is only valid in one place or generation.
#[inline]
#[must_use]
pub fn xxh3_seeded(bytes: &[u8], seed: u64) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(bytes, seed)
}
