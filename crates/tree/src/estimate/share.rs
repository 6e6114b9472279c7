//! [`share`]: a number scaled by the ratio of two others.

/// Returns `whole * part / of`, rounded down, without overflow on the way; `whole * part` if `of`
/// is 0.
pub(super) fn share(whole: u64, part: u64, of: u64) -> u64 {
    (u128::from(whole) * u128::from(part) / u128::from(of.max(1))) as u64
}
