//! Lists of byte strings: names of trees, faults.

use std::mem::MaybeUninit;

use frondb::{Error, Result};

use crate::call::{call, call_or, free};
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::slice::{frondb_slice, out, out_handle};

/// An immutable list of byte strings. Free it with frondb_list_free().
pub struct frondb_list {
    _private: [u8; 0],
}

object!(frondb_list, List, List);

/// The strings, each followed by a zero byte.
pub struct List(Vec<Vec<u8>>);

/// Returns a list to C.
pub(crate) fn give(
    place: Option<&mut MaybeUninit<*mut frondb_list>>,
    items: impl IntoIterator<Item = impl Into<Vec<u8>>>,
) -> Result<()> {
    let place = out_handle(place)?;
    let ended = |item: Vec<u8>| [item, vec![0]].concat();
    let items = items.into_iter().map(|item| ended(item.into())).collect();
    place.write(handle::insert(List(items))?);
    Ok(())
}

/// The number of strings; 0 for a pointer that is no list.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_list_count(list: *mut frondb_list) -> usize {
    call_or(0, || Ok(handle::shared::<List>(list)?.0.len()))
}

/// String `at` of the list, from 0. It is followed by a zero byte that its length does not count.
/// Valid until the list is freed.
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID beyond the last string.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_list_get(
    list: *mut frondb_list,
    at: usize,
    item: Option<&mut MaybeUninit<frondb_slice>>,
) -> *mut frondb_error {
    call(|| {
        let (list, place) = (handle::shared::<List>(list)?, out(item)?);
        let item = list.0.get(at).and_then(|item| item.split_last()).map(|(_, item)| item);
        let message = || format!("index {at} is out of range: the list has {} items", list.0.len());
        place.write(frondb_slice::of(item.ok_or_else(|| Error::invalid(message()))?));
        Ok(())
    })
}

/// Frees a list; NULL is ignored.
///
/// Threads: any; the last call with this list.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_list_free(list: *mut frondb_list) -> frondb_kind {
    free::<List>(list)
}
