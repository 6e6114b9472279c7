//! Lists of byte strings, locks, transactions and files. All lists have one object type, one
//! function that counts the items and one that frees the list. Each kind of item has its own
//! function that reads it.

use std::any::Any;
use std::mem::MaybeUninit;

use frondb::{Error, Result};

use crate::call::{call, call_or, free};
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::slice::{frondb_slice, out, out_handle};

/// An immutable list. The comment of the function that makes the list says what the items are. Free
/// it with frondb_list_free().
pub struct frondb_list {
    _private: [u8; 0],
}

object!(frondb_list, List, List);

/// A list; `items` is a `Vec` of the type of the items.
pub struct List {
    items: Box<dyn Any + Send + Sync>,
    len: usize,
}

impl List {
    pub(crate) fn of<T: Send + Sync + 'static>(items: Vec<T>) -> Self {
        Self { len: items.len(), items: Box::new(items) }
    }

    fn item<T: 'static>(&self, at: usize) -> Result<&T> {
        let items = self.items.downcast_ref::<Vec<T>>();
        let items = items.ok_or_else(|| Error::invalid("the list has items of another kind"))?;
        items.get(at).ok_or_else(|| {
            let len = self.len;
            Error::invalid(format!("index {at} is out of range: the list has {len} items"))
        })
    }
}

/// Converts item `at` of the list with `show` and writes the result to `place`.
pub(crate) fn read<T: 'static, C>(
    list: *mut frondb_list,
    at: usize,
    place: Option<&mut MaybeUninit<C>>,
    show: impl FnOnce(&T) -> Result<C>,
) -> *mut frondb_error {
    call(|| {
        let (place, list) = (out(place)?, handle::shared::<List>(list)?);
        place.write(show(list.item(at)?)?);
        Ok(())
    })
}

/// A byte string, followed by a zero byte.
struct Ended(Vec<u8>);

/// Returns a list of byte strings to C.
pub(crate) fn give(
    place: Option<&mut MaybeUninit<*mut frondb_list>>,
    items: impl IntoIterator<Item = impl Into<Vec<u8>>>,
) -> Result<()> {
    let place = out_handle(place)?;
    let ended = |item: Vec<u8>| Ended([item, vec![0]].concat());
    let items: Vec<Ended> = items.into_iter().map(|item| ended(item.into())).collect();
    place.write(handle::insert(List::of(items))?);
    Ok(())
}

/// Returns the number of items; 0 for a pointer that is not a list.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_list_count(list: *mut frondb_list) -> usize {
    call_or(0, || Ok(handle::shared::<List>(list)?.len))
}

/// Reads item `at`, from 0, of a list of byte strings. The bytes of `item` are valid until the list
/// is freed. A zero byte follows them; the length of `item` does not include that byte.
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID if `at` is beyond the last string, or if the items are not byte strings.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_list_get(
    list: *mut frondb_list,
    at: usize,
    item: Option<&mut MaybeUninit<frondb_slice>>,
) -> *mut frondb_error {
    read(list, at, item, |item: &Ended| {
        Ok(frondb_slice::of(item.0.split_last().map_or(&[], |(_, item)| item)))
    })
}

/// Frees a list; NULL is ignored.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses the list. Bytes that
/// were taken from the list are no longer valid afterwards.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_list_free(list: *mut frondb_list) -> frondb_kind {
    free::<List>(list)
}
