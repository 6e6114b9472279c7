//! Update functions of the caller: callbacks with user data, and the output they write to.

use std::cell::RefCell;
use std::ffi::c_void;

use frondb::{Error, Result, UpdateFn};

use crate::call::call;
use crate::error::frondb_error;
use crate::slice::{Text, UserData, frondb_slice};

/// Receives the result of an update function. Valid only during the call that received the output,
/// and in its thread.
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

/// An update function. With it frondb_tree_update() and similar calls change a value without
/// reading it.
///
/// Any thread may call the functions, including the engine's background threads and several threads
/// at the same time, whenever messages are merged or read. They must be pure: the same input always
/// gives the same result. They must return normally (no exception, no longjmp), and must not call
/// any function of this interface except frondb_output_append().
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_update_fn {
    /// sizeof(frondb_update_fn), so that later versions can add fields.
    size: usize,
    /// The name stored with the tree, UTF-8. Copied by the call.
    name: Text,
    /// The version stored with the tree.
    version: u32,
    /// Passed to the functions.
    user_data: *mut c_void,
    /// Makes the new value from the existing value (NULL if the key is absent) and one operand, and
    /// appends it to `output`. Returns 0 on success. After any other result the operand stays
    /// pending, and reads of the key fail with FRONDB_INVALID; what was appended to `output` is
    /// then the error message. Must not be NULL.
    apply: Option<
        extern "C" fn(
            user_data: *mut c_void,
            key: frondb_slice,
            existing: *const frondb_slice,
            operand: frondb_slice,
            output: *mut frondb_output,
        ) -> i32,
    >,
    /// Appends one operand to `output` that has the effect of `older` followed by `newer`. Returns
    /// 0 on success, or another number if these two operands cannot be combined. NULL if operands
    /// can never be combined.
    combine: Option<
        extern "C" fn(
            user_data: *mut c_void,
            key: frondb_slice,
            older: frondb_slice,
            newer: frondb_slice,
            output: *mut frondb_output,
        ) -> i32,
    >,
    /// Called once, by any thread, when the function is no longer used: after the options and every
    /// database opened with them are freed. May be NULL.
    free_user_data: Option<extern "C" fn(user_data: *mut c_void)>,
}

/// The caller's function as an [`UpdateFn`] of the engine.
struct Callbacks {
    name: String,
    version: u32,
    user_data: UserData,
    apply: Apply,
    combine: Option<Combine>,
}

/// Makes the engine's update function from the caller's.
pub(crate) fn of_caller(given: Option<&frondb_update_fn>) -> Result<impl UpdateFn + 'static> {
    let given = given.ok_or_else(|| Error::invalid("the update function is NULL"))?;
    if given.size < size_of::<frondb_update_fn>() {
        let message = format!(
            "`size` of the update function is {}; set it to the size of frondb_update_fn",
            given.size
        );
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
    /// The number of this thread's last callback, and the bytes that the callback has written so
    /// far; `None` if no callback runs.
    static OUTPUT: RefCell<(usize, Option<Vec<u8>>)> = const { RefCell::new((0, None)) };
}

/// Runs a callback and returns its result and the bytes that it wrote. An output is a number that
/// is valid for this call only, so a use after the call is detected. A use in another thread is
/// detected too, unless that thread happens to run a callback with the same number.
fn collect(callback: impl FnOnce(*mut frondb_output) -> i32) -> (i32, Vec<u8>) {
    let number = OUTPUT.with_borrow_mut(|(number, bytes)| {
        *number = number.wrapping_add(1).max(1);
        *bytes = Some(Vec::new());
        *number
    });
    let code = callback(std::ptr::without_provenance_mut(number));
    (code, OUTPUT.with_borrow_mut(|(_, bytes)| bytes.take()).unwrap_or_default())
}

/// Appends bytes to the result of an update function.
///
/// Threads: the thread that runs the update function with this `output`.
///
/// Errors: FRONDB_INVALID for an output of another call.
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
            _ => Err(Error::invalid("the output does not belong to the running update function")),
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
