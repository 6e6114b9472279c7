//! Update functions for histories. The model calls the same code with one operand at a time, in
//! order, so folded and unfolded operands give the same result.

use frondb::UpdateFn;
pub use frondb_testkit::functions::Append;

/// Hashes the operand into the value's eight bytes, so that the order matters. Operands cannot be
/// combined and accumulate until a value resolves them.
#[derive(Clone, Copy, Debug)]
pub struct Mix;

impl UpdateFn for Mix {
    fn name(&self) -> &str {
        "mix"
    }

    fn version(&self) -> u32 {
        3
    }

    fn apply(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operand: &[u8],
    ) -> Result<Vec<u8>, String> {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in key.iter().chain(existing.unwrap_or_default()).chain(operand) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(hash.to_le_bytes().to_vec())
    }

    fn combine(&self, _key: &[u8], _older: &[u8], _newer: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

/// The update function of a history's tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Function {
    /// The tree takes no updates.
    None,
    /// [`Append`].
    Append,
    /// [`Mix`].
    Mix,
}

impl Function {
    /// Returns the value after an update, as computed by the model.
    #[must_use]
    pub fn apply(self, key: &[u8], existing: Option<&[u8]>, operand: &[u8]) -> Vec<u8> {
        let result = match self {
            Self::None => Ok(existing.unwrap_or_default().to_vec()),
            Self::Append => Append.apply(key, existing, operand),
            Self::Mix => Mix.apply(key, existing, operand),
        };
        result.unwrap_or_default()
    }
}
