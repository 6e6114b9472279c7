//! Checksums: XXH3 (Yann Collet), 64 bits. Not cryptographic: it detects faults, not an attack.

/// Returns the XXH3-64 of `bytes`.
#[inline]
#[must_use]
pub fn xxh3(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}

/// Computes the XXH3-64 of bytes that arrive in pieces.
#[derive(Clone, Default)]
pub struct Xxh3(xxhash_rust::xxh3::Xxh3);

impl Xxh3 {
    /// Creates the state before the first piece.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// Returns the checksum of all pieces.
    #[must_use]
    pub fn finish(&self) -> u64 {
        self.0.digest()
    }
}

impl std::fmt::Debug for Xxh3 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Xxh3({:016x})", self.finish())
    }
}

/// Returns the XXH3-64 of `bytes` with a seed, for data that is valid only in one place or
/// generation.
#[inline]
#[must_use]
pub fn xxh3_seeded(bytes: &[u8], seed: u64) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(bytes, seed)
}
