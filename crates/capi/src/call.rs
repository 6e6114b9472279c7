//! Wrappers around the functions of the interface. No panic leaves them: [`call`] and [`create`]
//! turn an error into an object, and a panic into an error of the kind `Internal`. After an error
//! or a panic, [`call_or`] returns a fixed result, and [`free`] and [`free_if`] return the kind.

use std::any::Any;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use frondb::{Error, Result};

use crate::error::{self, frondb_error, frondb_kind};
use crate::handle::{self, Object};
use crate::slice::out_handle;

/// Runs a function's body. Returns NULL if it succeeds, otherwise the error object.
///
/// A panic leaves no handle locked, because unwinding drops the guards. A panic may leave an object
/// half changed, but always memory-safe; the object's own checks decide what later calls with it
/// return.
#[inline]
pub(crate) fn call(body: impl FnOnce() -> Result<()>) -> *mut frondb_error {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => std::ptr::null_mut(),
        Ok(Err(error)) => error::make(error),
        Err(panic) => error::make(of_panic(panic.as_ref())),
    }
}

/// Runs a function's body, which makes an object, and writes a new handle of that object to `place`
/// for C. If the body fails, writes NULL.
pub(crate) fn create<T: Object>(
    place: Option<&mut MaybeUninit<*mut T::Handle>>,
    make: impl FnOnce() -> Result<T>,
) -> *mut frondb_error {
    call(|| {
        let place = out_handle(place)?;
        place.write(handle::insert(make()?)?);
        Ok(())
    })
}

/// Runs a body as [`call`] does, for a function that returns a value and no error object; returns
/// `otherwise` if the body fails.
pub(crate) fn call_or<T>(otherwise: T, body: impl FnOnce() -> Result<T>) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => value,
        Ok(Err(_)) | Err(_) => otherwise,
    }
}

/// Frees the object of a handle; NULL is ignored.
pub(crate) fn free<T: Object>(handle: *mut T::Handle) -> frondb_kind {
    free_if::<T>(handle, |_| Ok(()))
}

/// Frees as [`free`] does, but only if `allows` returns no error for the object.
pub(crate) fn free_if<T: Object>(
    handle: *mut T::Handle,
    allows: impl FnOnce(&T) -> Result<()>,
) -> frondb_kind {
    if handle.is_null() {
        return error::FRONDB_OK;
    }
    let remove = || handle::remove_if::<T>(handle, allows).map(drop);
    let freed = catch_unwind(AssertUnwindSafe(remove));
    match freed {
        Ok(Ok(())) => error::FRONDB_OK,
        Ok(Err(error)) => error::number_of(error.kind()),
        Err(_) => error::FRONDB_INTERNAL,
    }
}

#[cold]
fn of_panic(panic: &(dyn Any + Send)) -> Error {
    let message = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    let message = message.unwrap_or_else(|| "a panic without a message".to_owned());
    Error::internal(format!("this is a bug of the engine, please report it: {message}"))
}

/// Converts a count to the `uint64_t` that C gets.
pub(crate) fn number(count: usize) -> u64 {
    count as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::*;
    use crate::error_fields::*;

    #[test]
    fn a_panic_becomes_an_error_object() {
        assert!(call(|| Ok(())).is_null());
        let error = call(|| panic!("no {}", "way"));
        assert_eq!(frondb_error_kind(error), FRONDB_INTERNAL);
        assert_eq!(frondb_error_free(error), FRONDB_OK);
        assert_eq!(call_or(7, || panic!("no")), 7);
    }
}
