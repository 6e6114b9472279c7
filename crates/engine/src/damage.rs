//! [`Damage`]: what an open met that goes on where another would fail.

use frondb_block::frame::repair::Findings;
use frondb_core::{Error, Result};

/// What an open met that goes on where another would fail: [`Engine::salvage`](crate::Engine::salvage).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Damage {
    /// Damage that was put right, each with its place: one byte, after which a checksum of 64 bits fits.
    pub repaired: Vec<Error>,
    /// Where the manifest or the log was cut, each with its place: what is behind is lost, so the trees are as of an
    /// earlier moment, and nobody knows which of their rows have changed since.
    pub lost: Vec<Error>,
    /// Trees that cannot be put together, by name.
    pub trees: Vec<(String, Error)>,
}

impl Damage {
    pub(crate) fn add(&mut self, found: Findings) {
        self.repaired.extend(found.repaired);
        self.lost.extend(found.lost);
    }
}

/// What went well; `None` if it did not and a salvage goes on without.
pub(crate) fn tolerate<T>(
    damage: &mut Option<&mut Damage>,
    result: Result<T>,
) -> Result<Option<T>> {
    match (result, damage) {
        (Err(error), Some(damage)) => {
            damage.lost.push(error);
            Ok(None)
        }
        (result, _) => result.map(Some),
    }
}
