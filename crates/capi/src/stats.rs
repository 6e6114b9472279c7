//! Named numbers: the statistics of a database or tree, and the results of calls such as a
//! verification or a bulk load. C reads them by name, so new numbers can be added without changing
//! the interface.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;

use frondb::{BulkReport, Error, ErrorKind, ReadProfile, Result};

use crate::call::{call, call_or, free};
use crate::error::{c_string, frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::slice::{Text, out, out_handle};

/// Names with numbers, as of one moment; docs/operating/status.md lists the statistics. Free it
/// with frondb_stats_free().
pub struct frondb_stats {
    _private: [u8; 0],
}

object!(frondb_stats, Stats, Stats);

/// The numbers with their names, and a text that shows them.
pub struct Stats {
    values: Vec<(CString, u64)>,
    text: CString,
}

/// Returns named numbers to C with their text; without one, the text is a list of the numbers.
pub(crate) fn give(
    place: Option<&mut MaybeUninit<*mut frondb_stats>>,
    values: Vec<(&'static str, u64)>,
    text: Option<String>,
) -> Result<()> {
    let place = out_handle(place)?;
    let list = || values.iter().map(|(name, value)| format!("{name:<24} {value}\n")).collect();
    let text = c_string(&text.unwrap_or_else(list));
    let values = values.into_iter().map(|(name, value)| (c_string(name), value)).collect();
    place.write(handle::insert(Stats { values, text })?);
    Ok(())
}

/// Returns the numbers of a bulk load to C, if C wants them.
pub(crate) fn give_bulk_report(
    place: Option<&mut MaybeUninit<*mut frondb_stats>>,
    report: BulkReport,
) -> Result<()> {
    if place.is_none() {
        return Ok(());
    }
    let stats = vec![
        ("entries", report.entries),
        ("duplicates", report.duplicates),
        ("raw_bytes", report.raw_bytes),
        ("sorted_runs", report.sorted_runs),
    ];
    give(place, stats, None)
}

/// The count of numbers; 0 for a pointer that is no frondb_stats.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_stats_count(stats: *mut frondb_stats) -> usize {
    call_or(0, || Ok(handle::shared::<Stats>(stats)?.values.len()))
}

/// Number `at`, from 0. `name` and `value` may be NULL. The name is valid until `stats` is freed.
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID beyond the last number.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_stats_get(
    stats: *mut frondb_stats,
    at: usize,
    name: Option<&mut MaybeUninit<*const c_char>>,
    value: Option<&mut MaybeUninit<u64>>,
) -> *mut frondb_error {
    call(|| {
        let stats = handle::shared::<Stats>(stats)?;
        let found = stats.values.get(at).ok_or_else(|| {
            Error::invalid(format!(
                "index {at} is out of range: there are {} numbers",
                stats.values.len()
            ))
        })?;
        if let Some(name) = name {
            name.write(found.0.as_ptr());
        }
        if let Some(value) = value {
            value.write(found.1);
        }
        Ok(())
    })
}

/// Finds the number of this name.
///
/// Threads: any.
///
/// Errors: FRONDB_NOT_FOUND if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_stats_find(
    stats: *mut frondb_stats,
    name: Text,
    value: Option<&mut MaybeUninit<u64>>,
) -> *mut frondb_error {
    call(|| {
        let (stats, place) = (handle::shared::<Stats>(stats)?, out(value)?);
        let name = name.str("name of the statistic")?;
        let found = stats.values.iter().find(|(known, _)| known.to_bytes() == name.as_bytes());
        let missing = || Error::new(ErrorKind::NotFound, format!("there is no statistic {name:?}"));
        place.write(found.ok_or_else(missing)?.1);
        Ok(())
    })
}

/// All numbers as readable text, or the text that the function that made `stats` describes. Never
/// NULL; valid until `stats` is freed.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_stats_text(stats: *mut frondb_stats) -> *const c_char {
    call_or(c"".as_ptr(), || Ok(handle::shared::<Stats>(stats)?.text.as_ptr()))
}

/// Frees the numbers; NULL is ignored.
///
/// Threads: any; the last call with this object.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_stats_free(stats: *mut frondb_stats) -> frondb_kind {
    free::<Stats>(stats)
}

/// The cost of reads on one thread.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct frondb_read_profile {
    /// Blocks that were in the cache.
    pub cached_blocks: u64,
    /// Blocks that were decoded, after a read of the device or from their encoded form in the
    /// cache.
    pub blocks: u64,
    /// Reads of the device: of one block, of neighbouring blocks together, of an index or a filter,
    /// or of a large value.
    pub reads: u64,
    /// Bytes that these reads read.
    pub read_bytes: u64,
    /// Time that these reads took, nanoseconds.
    pub read_nanos: u64,
    /// Lookups in a run that a filter made unnecessary.
    pub filter_negatives: u64,
    /// Lookups in a run that a filter let through.
    pub filter_positives: u64,
}

impl frondb_read_profile {
    fn of(profile: ReadProfile) -> Self {
        Self {
            cached_blocks: profile.cached_blocks,
            blocks: profile.blocks,
            reads: profile.reads,
            read_bytes: profile.read_bytes,
            read_nanos: profile.read_nanos,
            filter_negatives: profile.filter_negatives,
            filter_positives: profile.filter_positives,
        }
    }
}

thread_local! {
    /// The profiles that have begun on this thread.
    static BEGUN: RefCell<Vec<ReadProfile>> = const { RefCell::new(Vec::new()) };
}

/// Starts counting the cost of reads on this thread, of all databases together. Each call needs a
/// call of frondb_profile_end() on the same thread; pairs may be nested. Without this call nothing
/// is counted, and reads are not slower.
///
/// Threads: any; each thread counts its own reads.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_profile_begin() {
    call_or((), || {
        BEGUN.with_borrow_mut(|begun| begun.push(ReadProfile::begin()));
        Ok(())
    });
}

/// Stops counting. `profile`, which may be NULL, receives the cost of reads since the last
/// frondb_profile_begin() on this thread that has not ended; zeros if there is none.
///
/// Threads: any; each thread counts its own reads.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_profile_end(profile: Option<&mut MaybeUninit<frondb_read_profile>>) {
    call_or((), || {
        let begun = BEGUN.with_borrow_mut(Vec::pop);
        let found = begun.map(ReadProfile::end).unwrap_or_default();
        if let Some(place) = profile {
            place.write(frondb_read_profile::of(found));
        }
        Ok(())
    });
}
