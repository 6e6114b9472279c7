//! The cost of transactions. Each side of a comparison is measured in the same process.
//!
//! ```text
//!  large    one transaction of all rows  | the same rows in batches      a database each
//!  bulk     a bulk load of the same rows | those batches                 a database of its own
//!  single   transactions of one row      | batches of one row            in turn, one database
//!  durable  16 threads                   | 1 thread                      in turn, one database
//!  reads    beside a writer              | alone                         in turn, one database
//!  lock     of one row, and its release                                  the lock manager alone
//! ```
//!
//! Where the two sides take turns, a slow moment of the machine affects both, and the figure is the
//! median of the ratios of all turns. The large transaction runs first, so that no other part adds
//! to its peak of memory.

mod bulk;
mod durable;
mod large;
mod lock;
mod parts;
mod reads;
mod rows;
mod single;
mod store;

use self::parts::Parts;
pub(super) use self::rows::{Rows, key};
pub(super) use self::store::{BATCH_ROWS, Store};
use super::Spec;
use crate::driver::Progress;
use crate::engines::frondb::FRONDB;
use crate::error::Result;
use crate::measure::process;
use crate::report::Measurement;

pub(super) fn run(spec: &Spec, progress: &Progress) -> Result<Measurement> {
    let mut parts = Parts { spec, progress, figures: Vec::new() };
    large::run(&mut parts)?;
    single::run(&mut parts)?;
    durable::run(&mut parts)?;
    reads::run(&mut parts)?;
    lock::run(&mut parts)?;
    Ok(Measurement {
        engine: FRONDB.name.to_owned(),
        workload: spec.workload.name().to_owned(),
        settings: (FRONDB.describe)(&spec.engine_options()),
        rows: Some(spec.rows),
        rss_peak_bytes: Some(process::resident_peak_bytes()?),
        figures: parts.figures,
        ..Measurement::default()
    })
}
