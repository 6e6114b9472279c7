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

/// Named numbers, collected by one call; docs/operating/status.md lists the statistics. Free the
/// object with frondb_stats_free().
pub struct frondb_stats {
    _private: [u8; 0],
}

object!(frondb_stats, Stats, Stats);

/// The numbers with their names, and a text that shows them.
pub struct Stats {
    values: Vec<(CString, u64)>,
    text: CString,
}

/// Returns named numbers to C with a text. If `text` is `None`, the text lists the numbers.
pub(crate) fn give(
    place: Option<&mut MaybeUninit<*mut frondb_stats>>,
    values: Vec<(impl AsRef<str>, u64)>,
    text: Option<String>,
) -> Result<()> {
    let place = out_handle(place)?;
    let list =
        || values.iter().map(|(name, value)| format!("{:<24} {value}\n", name.as_ref())).collect();
    let text = c_string(&text.unwrap_or_else(list));
    let values = values.into_iter().map(|(name, value)| (c_string(name.as_ref()), value)).collect();
    place.write(handle::insert(Stats { values, text })?);
    Ok(())
}

/// Returns the numbers of a bulk load to C. Does nothing if C passed no place for them.
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

/// Returns how many numbers there are; 0 for a pointer that is not a frondb_stats.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_stats_count(stats: *mut frondb_stats) -> usize {
    call_or(0, || Ok(handle::shared::<Stats>(stats)?.values.len()))
}

/// Reads number `at`, from 0, and its name. `name` and `value` may be NULL. The name is valid until
/// `stats` is freed.
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID if `at` is beyond the last number.
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

/// Finds the number with this name.
///
/// Threads: any.
///
/// Errors: FRONDB_NOT_FOUND if no number has this name.
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

/// Returns all numbers as readable text, or another text if the function that made `stats`
/// documents one. The text is never NULL, and valid until `stats` is freed.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_stats_text(stats: *mut frondb_stats) -> *const c_char {
    call_or(c"".as_ptr(), || Ok(handle::shared::<Stats>(stats)?.text.as_ptr()))
}

/// Frees the numbers; NULL is ignored.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses the object. Texts
/// that were taken from the object are no longer valid afterwards.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_stats_free(stats: *mut frondb_stats) -> frondb_kind {
    free::<Stats>(stats)
}

/// The cost of the reads of one thread.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct frondb_read_profile {
    /// Blocks that were in the cache, decoded or in their encoded form.
    pub cached_blocks: u64,
    /// Blocks that were read from the device and decoded.
    pub blocks: u64,
    /// Reads of the device: of one block, of neighbouring blocks together, of an index or a filter,
    /// or of a large value.
    pub reads: u64,
    /// Bytes read by these reads.
    pub read_bytes: u64,
    /// Total time of these reads, nanoseconds.
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
    /// The profiles of this thread that have begun and not ended, innermost last.
    static BEGUN: RefCell<Vec<ReadProfile>> = const { RefCell::new(Vec::new()) };
}

/// Starts counting the cost of reads on this thread, of all databases together. Each call needs a
/// call of frondb_profile_end() on the same thread; pairs may be nested. Without a call of this
/// function, reads are neither counted nor slowed.
///
/// Threads: any; each thread counts its own reads.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_profile_begin() {
    call_or((), || {
        BEGUN.with_borrow_mut(|begun| begun.push(ReadProfile::begin()));
        Ok(())
    });
}

/// Stops counting. `profile`, which may be NULL, receives the cost of the reads since the matching
/// frondb_profile_begin() on this thread; zeros if there was no such call.
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
