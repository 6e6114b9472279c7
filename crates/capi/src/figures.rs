//! Named numbers: the statistics of a database or tree, and the results of a recovery,
//! verification, salvage or bulk load. They are read by name, so that new ones need no change of
//! the interface.

use std::mem::MaybeUninit;

use std::ffi::{CString, c_char};

use frondb::{Error, ErrorKind, Result};

use crate::call::{call, call_or, free};
use crate::error::{c_string, frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::slice::{Text, out, out_handle};

/// Names with numbers, as of one moment; docs/operating/status.md lists the statistics. Free it
/// with frondb_figures_free().
pub struct frondb_figures {
    _private: [u8; 0],
}

object!(frondb_figures, Figures, Figures);

/// The numbers, and a page that shows them.
pub struct Figures {
    figures: Vec<(CString, u64)>,
    page: CString,
}

/// Returns figures to C with their page; without one, the page is a list of the figures.
pub(crate) fn give(
    place: Option<&mut MaybeUninit<*mut frondb_figures>>,
    figures: Vec<(&'static str, u64)>,
    page: Option<String>,
) -> Result<()> {
    let place = out_handle(place)?;
    let list = || figures.iter().map(|(name, value)| format!("{name:<24} {value}\n")).collect();
    let page = c_string(&page.unwrap_or_else(list));
    let figures = figures.into_iter().map(|(name, value)| (c_string(name), value)).collect();
    place.write(handle::insert(Figures { figures, page })?);
    Ok(())
}

/// The number of figures; 0 for a pointer that is no frondb_figures.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_figures_count(figures: *mut frondb_figures) -> usize {
    call_or(0, || Ok(handle::shared::<Figures>(figures)?.figures.len()))
}

/// Figure `at`, from 0. `name` and `value` may be NULL. The name is valid until the figures are
/// freed.
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID beyond the last figure.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_figures_get(
    figures: *mut frondb_figures,
    at: usize,
    name: Option<&mut MaybeUninit<*const c_char>>,
    value: Option<&mut MaybeUninit<u64>>,
) -> *mut frondb_error {
    call(|| {
        let figures = handle::shared::<Figures>(figures)?;
        let found = figures.figures.get(at).ok_or_else(|| {
            Error::invalid(format!("there is no figure {at} of {}", figures.figures.len()))
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

/// The figure of this name.
///
/// Threads: any.
///
/// Errors: FRONDB_NOT_FOUND if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_figures_find(
    figures: *mut frondb_figures,
    name: Text,
    value: Option<&mut MaybeUninit<u64>>,
) -> *mut frondb_error {
    call(|| {
        let (figures, place) = (handle::shared::<Figures>(figures)?, out(value)?);
        let name = name.str("name of the figure")?;
        let found = figures.figures.iter().find(|(known, _)| known.to_bytes() == name.as_bytes());
        let missing = || Error::new(ErrorKind::NotFound, format!("there is no figure {name:?}"));
        place.write(found.ok_or_else(missing)?.1);
        Ok(())
    })
}

/// All figures as readable text; never NULL, valid until the figures are freed.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_figures_page(figures: *mut frondb_figures) -> *const c_char {
    call_or(c"".as_ptr(), || Ok(handle::shared::<Figures>(figures)?.page.as_ptr()))
}

/// Frees figures; NULL is ignored.
///
/// Threads: any; the last call with these figures.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_figures_free(figures: *mut frondb_figures) -> frondb_kind {
    free::<Figures>(figures)
}
