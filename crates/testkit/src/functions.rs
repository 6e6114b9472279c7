//! Update functions for tests.

use frondb_core::message::UpdateFn;

/// `append`, version 1: appends the operand to the value, so that the order of updates shows.
/// Operands are combined.
#[derive(Clone, Copy, Debug)]
pub struct Append;

impl UpdateFn for Append {
    fn name(&self) -> &str {
        "append"
    }

    fn apply(&self, _: &[u8], existing: Option<&[u8]>, operand: &[u8]) -> Result<Vec<u8>, String> {
        Ok([existing.unwrap_or_default(), operand].concat())
    }

    fn combine(&self, _: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some([older, newer].concat())
    }
}
