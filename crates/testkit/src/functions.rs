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

/// `append`, version 1, but without combining operands: each update stays a message of its own
/// until it is applied to a value.
#[derive(Clone, Copy, Debug)]
pub struct AppendEach;

impl UpdateFn for AppendEach {
    fn name(&self) -> &str {
        "append"
    }

    fn apply(&self, _: &[u8], existing: Option<&[u8]>, operand: &[u8]) -> Result<Vec<u8>, String> {
        Ok([existing.unwrap_or_default(), operand].concat())
    }

    fn combine(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

/// `add`, version 1: values and operands are little-endian `u64`, and a missing value is zero.
/// Operands are combined.
#[derive(Clone, Copy, Debug)]
pub struct Add;

fn number(bytes: &[u8]) -> Result<u64, String> {
    let array = bytes.try_into().map_err(|_| format!("{} bytes instead of 8", bytes.len()))?;
    Ok(u64::from_le_bytes(array))
}

impl UpdateFn for Add {
    fn name(&self) -> &str {
        "add"
    }

    fn apply(&self, _: &[u8], existing: Option<&[u8]>, operand: &[u8]) -> Result<Vec<u8>, String> {
        let old = existing.map_or(Ok(0), number)?;
        Ok((old + number(operand)?).to_le_bytes().to_vec())
    }

    fn combine(&self, _: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        let sum = number(older).ok()? + number(newer).ok()?;
        Some(sum.to_le_bytes().to_vec())
    }
}
