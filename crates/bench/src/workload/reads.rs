//! Reads of data that is a multiple of the memory: points, short scans, long scans and multi-gets,
//! by several numbers of threads, with uniform and with zipfian keys.
//!
//! ```text
//!  load iiBench's rows -> settle -> fixed reads (digest) -> for each choice of keys and each read:
//!                                                             warm-up, then a case for each number
//!                                                             of threads
//! ```
//!
//! A variant is a ratio of data to memory. It has a child process of its own, which runs all cases
//! of the variant. No case writes, so a case affects later cases only through warm caches, and
//! through merges that an engine begins because of reads.
//!
//! | module | what it has |
//! |---|---|
//! | [`size`] | the rows of a ratio |
//! | [`zipfian`], [`permutation`] | popular ranks, and the rows that have them |
//! | [`table`], [`tail`] | one read, and the entries that a scan must find |
//! | [`crew`] | threads that read at the same time, and the costs of their reads |
//! | [`limits`] | the floors and goals of the figures |

mod crew;
mod limits;
mod permutation;
mod size;
mod table;
mod tail;
mod zipfian;

pub(crate) use limits::{limits, name};
pub(crate) use size::rows_of_ratio;

use frondb_core::prng::Prng;

use self::crew::Crew;
use self::table::{Keys, Read, Table};
use super::settle::settle;
use super::{Bench, Part};
use crate::engine::Reader;
use crate::error::{Error, Result};
use crate::measure::disk;
use crate::report::ReadCase;
use crate::rows::TableRow;

/// The ratios of data to memory if they are not given.
pub(super) const RATIOS: [u64; 3] = [1, 8, 64];

/// The length of a case, as a fraction of the time of point reads in other workloads. It is short
/// because there are many cases.
const CASE_PART: f64 = 0.2;

/// The length of a warm-up, as a fraction of its time in other workloads.
const WARMUP_PART: f64 = 0.2;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let seed = bench.spec.seed;
    let rows = match bench.spec.part {
        Part::Reads => {
            bench.progress.say("background work that the memory of the reads demands");
            settle(bench.engine)?;
            bench.spec.rows
        }
        Part::Whole | Part::Load => bench.measured_load(bench.spec.rows, &mut |batch, id| {
            TableRow::new(seed, id, 0).insert(batch);
        })?,
    };
    if bench.spec.part == Part::Load {
        return Ok(());
    }
    if rows == 0 {
        return Err(Error::Usage(
            "the time limit ended the load before its first batch".to_owned(),
        ));
    }
    let table = Table::new(seed, rows);
    bench.progress.say("reading: a fixed set of reads");
    bench.measurement.answers_digest = Some(table.answers(bench.engine.reader()?.as_mut())?);
    for keys in Keys::ALL {
        for read in Read::ALL {
            let cases = bench.cases(&table, read, keys)?;
            bench.measurement.reads.extend(cases);
        }
    }
    Ok(())
}

impl Bench<'_> {
    /// Measures a case for each number of threads, after a warm-up with the largest number.
    fn cases(&self, table: &Table, read: Read, keys: Keys) -> Result<Vec<ReadCase>> {
        let spec = self.spec;
        self.progress.say(&format!("reading: {}, {} keys", read.name(), keys.name()));
        let device = disk::Device::under(&spec.dir);
        let crew = Crew { engine: self.engine, seed: spec.seed, device: device.as_ref() };
        let operation =
            |reader: &mut dyn Reader, prng: &mut Prng| table.read(read, keys, reader, prng);
        let most = spec.read_threads.iter().copied().max().unwrap_or(1);
        crew.run(most, spec.reads.warmup * WARMUP_PART, &operation)?;
        let case = |&threads: &u64| {
            let costs = crew.run(threads, spec.reads.points * CASE_PART, &operation)?;
            let case = costs.case();
            Ok(ReadCase { read: read.name().into(), keys: keys.name().into(), threads, ..case })
        };
        spec.read_threads.iter().map(case).collect()
    }
}
