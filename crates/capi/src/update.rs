//! Update functions of the caller: callbacks with data of theirs, and the place for what they
//! return.

use std::cell::RefCell;
use std::ffi::c_void;

use frondb::{Error, Result, UpdateFn};

use crate::call::call;
use crate::error::frondb_error;
use crate::slice::{Text, UserData, frondb_slice};

/// Where an update function puts its result; good only during the call of the function that it is
/// given to, and only in that thread.
pub struct frondb_output {
    _private: [u8; 0],
}

type Apply = extern "C" fn(
    user_data: *mut c_void,
    key: frondb_slice,
    existing: *const frondb_slice,
    operand: frondb_slice,
    output: *mut frondb_output,
) -> i32;
type Combine = extern "C" fn(
    user_data: *mut c_void,
    key: frondb_slice,
    older: frondb_slice,
    newer: frondb_slice,
    output: *mut frondb_output,
) -> i32;

/// An update function: what frondb_tree_update() and its like apply to a value, without reading it.
///
/// The functions are called by any thread, by several at once, also by those of the engine in the
/// background, whenever messages are merged or read. They must be pure: the same result for the same
/// bytes, always. They must return, must not throw or jump out, and must not call functions of this
/// interface other than frondb_output_append().
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_update_fn {
    /// sizeof(frondb_update_fn), by which a later version tells what it was given.
    size: usize,
    /// Name kept with the tree; UTF-8. Copied.
    name: Text,
    /// Version kept with the tree.
    version: u32,
    /// Given to the functions as it is.
    user_data: *mut c_void,
    /// Puts the new value, made of the existing one (NULL: the key is absent) and one operand, into
    /// `output`. Returns 0; any other number leaves the operand as it is and makes reading the key
    /// FRONDB_INVALID, with what is in `output` as the message. Must not be NULL.
    apply: Option<
        extern "C" fn(
            user_data: *mut c_void,
            key: frondb_slice,
            existing: *const frondb_slice,
            operand: frondb_slice,
            output: *mut frondb_output,
        ) -> i32,
    >,
    /// Puts one operand that does what `older` and then `newer` do into `output`. Returns 0, or
    /// another number if they cannot be combined. NULL if none can.
    combine: Option<
        extern "C" fn(
            user_data: *mut c_void,
            key: frondb_slice,
            older: frondb_slice,
            newer: frondb_slice,
            output: *mut frondb_output,
        ) -> i32,
    >,
    /// Called once, by any thread, when nothing uses the function any more: after the options and
    /// every database opened with them are freed. NULL if nothing is to be done.
    free_user_data: Option<extern "C" fn(user_data: *mut c_void)>,
}

/// A caller's function as the engine wants it.
struct Callbacks {
    name: String,
    version: u32,
    user_data: UserData,
    apply: Apply,
    combine: Option<Combine>,
}

/// Makes the engine's function of the caller's.
pub(crate) fn of_caller(given: Option<&frondb_update_fn>) -> Result<impl UpdateFn + 'static> {
    let given = given.ok_or_else(|| Error::invalid("the update function is NULL"))?;
    if given.size < size_of::<frondb_update_fn>() {
        let message = format!("the update function's size is {}", given.size);
        return Err(Error::invalid(message));
    }
    let missing = || Error::invalid("the update function has no `apply`");
    let (apply, combine) = (given.apply.ok_or_else(missing)?, given.combine);
    let name = given.name.str("name of the update function")?.to_owned();
    let user_data = UserData::new(given.user_data, given.free_user_data);
    Ok(Callbacks { name, version: given.version, user_data, apply, combine })
}

impl UpdateFn for Callbacks {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn apply(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operand: &[u8],
    ) -> Result<Vec<u8>, String> {
        let existing = existing.map(frondb_slice::of);
        let at = existing.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let (key, operand) = (frondb_slice::of(key), frondb_slice::of(operand));
        let (code, bytes) =
            collect(|output| (self.apply)(self.user_data.get(), key, at, operand, output));
        if code == 0 {
            return Ok(bytes);
        }
        let message = String::from_utf8_lossy(&bytes);
        Err(if message.is_empty() { format!("code {code}") } else { message.into_owned() })
    }

    fn combine(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        let combine = self.combine?;
        let (key, older, newer) =
            (frondb_slice::of(key), frondb_slice::of(older), frondb_slice::of(newer));
        let (code, bytes) =
            collect(|output| combine(self.user_data.get(), key, older, newer, output));
        (code == 0).then_some(bytes)
    }
}

thread_local! {
    /// The bytes that the callback of this thread has put out so far, if one runs, and its number.
    static OUTPUT: RefCell<(usize, Option<Vec<u8>>)> = const { RefCell::new((0, None)) };
}

/// Runs a callback and takes what it put out. An output is a number that lasts for the call, so
/// that one which is used too late, or in another thread, is found out.
fn collect(callback: impl FnOnce(*mut frondb_output) -> i32) -> (i32, Vec<u8>) {
    let number = OUTPUT.with_borrow_mut(|(number, bytes)| {
        *number = number.wrapping_add(1).max(1);
        *bytes = Some(Vec::new());
        *number
    });
    let code = callback(std::ptr::without_provenance_mut(number));
    (code, OUTPUT.with_borrow_mut(|(_, bytes)| bytes.take()).unwrap_or_default())
}

/// Adds bytes to what an update function returns.
///
/// Threads: the one in which the update function was called with this `output`.
///
/// Errors: FRONDB_INVALID for an output that is not of the present call.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_output_append(
    output: *mut frondb_output,
    bytes: frondb_slice,
) -> *mut frondb_error {
    call(|| {
        let added = bytes.bytes()?;
        OUTPUT.with_borrow_mut(|(number, bytes)| match bytes {
            Some(bytes) if *number == output.addr() => {
                bytes.extend_from_slice(added);
                Ok(())
            }
            _ => Err(Error::invalid("the output is not of the update function that runs")),
        })
    })
}

const _: () = assert!(size_of::<frondb_update_fn>() == 56);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_fields::frondb_error_free;

    #[test]
    fn an_output_is_good_during_its_call_only() {
        let append = |output, bytes: &[u8]| {
            let error = frondb_output_append(output, frondb_slice::of(bytes));
            frondb_error_free(error);
            error.is_null()
        };
        let mut kept = std::ptr::null_mut();
        let (code, bytes) = collect(|output| {
            kept = output;
            assert!(append(output, b"ab") && append(output, b"c"));
            assert!(!append(std::ptr::null_mut(), b"x"));
            3
        });
        assert_eq!((code, &bytes[..]), (3, &b"abc"[..]));
        assert!(!append(kept, b"x"), "after the call");
        collect(|_| i32::from(append(kept, b"x")) * panic_if(append(kept, b"x")));
    }

    fn panic_if(accepted: bool) -> i32 {
        assert!(!accepted, "another call's output was accepted");
        0
    }
}
