//! Applies update operands (rules 13 and 16), for folds, cursors and lookups.
//!
//! A result longer than the longest value counts as a failure of the function, for folds and
//! readers alike: the operands stay, the key cannot be read until it is put or deleted, and nothing
//! else is affected. Only the final result is measured. A fold that would have to store a longer
//! intermediate value keeps the operands instead, so a reader gets the same answer before and after
//! every fold.

use frondb_core::limits::VALUE_BYTES_MAX;
use frondb_core::message::UpdateFn;
use frondb_core::{Error, ErrorKind, Result};

/// Longest part of a key that an error message shows, in bytes.
const KEY_SHOWN_BYTES: usize = 256;

/// Reads large values, which have extents of their own, for updates that apply to them.
pub trait ValueReader: Send + Sync {
    /// Reads the value to which `reference`, the value of a `PutRef`, refers.
    ///
    /// # Errors
    /// Errors of the device; `Corruption`.
    fn read(&self, reference: &[u8]) -> Result<Vec<u8>>;
}

/// The value of a key, as a reader sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum VisibleValue {
    /// The value itself.
    Value(Vec<u8>),
    /// The value is stored elsewhere, at this reference.
    Reference(Vec<u8>),
}

/// What the operands apply to: the older value of the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Existing<'a> {
    /// None: the key is absent.
    Absent,
    Value(&'a [u8]),
    /// A value in extents of its own.
    Reference(&'a [u8]),
}

/// Applies operands, given newest first, to `existing`. Returns `None` if there are no operands.
///
/// # Errors
/// The function's own error, or a result that is too long for a value.
pub(crate) fn apply_all<'a>(
    update: &dyn UpdateFn,
    key: &[u8],
    existing: Option<&[u8]>,
    operands: impl DoubleEndedIterator<Item = &'a [u8]>,
) -> Result<Option<Vec<u8>>, String> {
    let mut value: Option<Vec<u8>> = None;
    for operand in operands.rev() {
        let before = value.as_deref().or(existing);
        value = Some(update.apply(key, before, operand)?);
    }
    match &value {
        Some(value) if value.len() > VALUE_BYTES_MAX => Err(format!(
            "its result has {} bytes, and a value has at most {VALUE_BYTES_MAX}",
            value.len()
        )),
        _ => Ok(value),
    }
}

/// Combines two neighbouring operands into one. `None` if the function cannot combine them, or if
/// the result is longer than a value may be.
pub(crate) fn combine(
    update: &dyn UpdateFn,
    key: &[u8],
    older: &[u8],
    newer: &[u8],
) -> Option<Vec<u8>> {
    update.combine(key, older, newer).filter(|operand| operand.len() <= VALUE_BYTES_MAX)
}

/// Returns the value that a reader sees: operands, given newest first, applied to `below`.
///
/// # Errors
/// Invalid if there are operands and the update function is missing, fails, or returns a value that
/// is too long. Errors of reading a reference; Internal if `values` is needed and missing.
pub(crate) fn resolve<'a>(
    update: Option<&dyn UpdateFn>,
    values: Option<&dyn ValueReader>,
    key: &[u8],
    below: Existing<'_>,
    operands: impl DoubleEndedIterator<Item = &'a [u8]> + ExactSizeIterator,
) -> Result<Option<VisibleValue>> {
    if operands.len() == 0 {
        return Ok(match below {
            Existing::Absent => None,
            Existing::Value(value) => Some(VisibleValue::Value(value.to_vec())),
            Existing::Reference(reference) => Some(VisibleValue::Reference(reference.to_vec())),
        });
    }
    let Some(update) = update else {
        return Err(Error::invalid(
            "the tree has updates, but it was opened without its update function",
        ));
    };
    let read;
    let existing = match below {
        Existing::Absent => None,
        Existing::Value(value) => Some(value),
        Existing::Reference(reference) => {
            let Some(values) = values else {
                return Err(Error::internal(
                    "an update applies to a large value, but this merge cannot read large values",
                ));
            };
            read = values.read(reference)?;
            Some(&read[..])
        }
    };
    let value = apply_all(update, key, existing, operands).map_err(|message| {
        let name = format!("update function {} v{}", update.name(), update.version());
        // The beginning of a long key is enough here: a scan that continues after the key gets the
        // whole key from `unresolved_key`.
        let key = key[..key.len().min(KEY_SHOWN_BYTES)].escape_ascii();
        Error::new(ErrorKind::Invalid, format!("{name} failed for key \"{key}\": {message}"))
    })?;
    Ok(value.map(VisibleValue::Value))
}
