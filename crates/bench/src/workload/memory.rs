//! Measures whether FronDB keeps to its memory option: the peak of resident memory above the
//! resident memory of the empty process. There is a case for everything that could hold more memory
//! than the option allows.
//!
//! | module | cases |
//! |---|---|
//! | [`held`] | cursors and snapshots that are kept during a load, small options, large filters |
//! | [`many`] | transactions with locks in several trees, thousands of idle trees |
//! | [`reopen`] | opening a database whose log is much longer than the memory |
//! | [`shared`] | the bound, the keys, and the memory of each part of the engine |
//!
//! Each case is a variant of the workload, so each has its own child process and peak.

mod held;
mod many;
mod reopen;
mod shared;

use super::Spec;
use crate::driver::Progress;
use crate::error::Result;
use crate::report::Measurement;

/// Rows if their number is not given. Each case writes a multiple or a fraction of this number.
pub(crate) const ROWS: u64 = 3_000_000;

/// Returns the names of the cases, in the order in which they run.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    held::names().chain(reopen::names()).chain(many::names())
}

pub(super) fn run(spec: &Spec, progress: &Progress) -> Result<Measurement> {
    let special = reopen::run(spec, progress).or_else(|| many::run(spec, progress));
    special.unwrap_or_else(|| held::run(spec, progress))
}

#[cfg(test)]
mod tests {
    #[test]
    fn cases_have_names_of_their_own() {
        let mut all: Vec<_> = super::names().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
