//! [`Damage`]: the damage that a salvage found in a database.

use frondb_block::frame::repair::Findings;
use frondb_core::{Error, Result};

/// The damage that [`Open::salvage`](crate::open::Open::salvage) found and tolerated.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub(crate) struct Damage {
    /// Repaired damage, with its places: one byte or bit of a record each. The repaired records
    /// match their 64-bit checksums.
    pub repaired: Vec<Error>,
    /// The places where the manifest or the log was cut, and contradictions between the two. What
    /// comes after such a place is lost: the trees are in an earlier state, and it is unknown which
    /// rows have changed since then.
    pub lost: Vec<Error>,
    /// Trees that cannot be opened: name and reason.
    pub trees: Vec<(String, Error)>,
}

impl Damage {
    pub(crate) fn add(&mut self, found: Findings) {
        self.repaired.extend(found.repaired);
        self.lost.extend(found.lost);
    }
}

/// Returns the value or the error of `result`. During a salvage, records an error in `damage` and
/// returns `None` in its place.
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
