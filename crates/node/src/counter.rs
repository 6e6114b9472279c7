//! The update function of trees of counters.
//!
//! A value is a number of 8 bytes: two's complement, little-endian. The name, the version and this
//! layout are stored with the trees that use the function, so they never change.

use frondb::UpdateFn;

/// Adds numbers. A sum wraps around at 2^63, because then every order and grouping of additions
/// gives the same sum, as the engine needs to combine operands before it reads the value.
pub(crate) struct Counter;

impl Counter {
    pub(crate) const NAME: &str = "counter";
}

/// Returns the number of a value.
pub(crate) fn number(value: &[u8]) -> Option<i64> {
    value.try_into().ok().map(i64::from_le_bytes)
}

/// Returns the value of a number.
pub(crate) fn value(number: i64) -> [u8; 8] {
    number.to_le_bytes()
}

impl UpdateFn for Counter {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn apply(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operand: &[u8],
    ) -> Result<Vec<u8>, String> {
        let existing = existing.unwrap_or(&[0; 8]);
        self.combine(key, existing, operand).ok_or_else(|| {
            format!(
                "a counter has 8 bytes, and this value has {}: put or delete the key",
                existing.len()
            )
        })
    }

    fn combine(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some(value(number(older)?.wrapping_add(number(newer)?)).to_vec())
    }
}
