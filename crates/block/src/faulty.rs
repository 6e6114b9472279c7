//! Encoders that write wrong bytes, to test how such faults are handled. Only with the feature
//! `testing`: no release has this module.
//!
//! Threads: a fault affects only the calling thread.

use std::cell::Cell;

thread_local! {
    static IS_ON: Cell<bool> = const { Cell::new(false) };
}

/// Ends the fault when dropped, also when a test fails.
struct Fault;

impl Drop for Fault {
    fn drop(&mut self) {
        IS_ON.set(false);
    }
}

/// Runs `work`. Meanwhile the output of encoders on this thread does not decode to their input. As
/// in releases, blocks of fast codecs are verified only with [`Verify::All`](crate::Verify).
pub fn with_faulty_encoders<T>(work: impl FnOnce() -> T) -> T {
    IS_ON.set(true);
    let _fault = Fault;
    work()
}

pub(crate) fn is_on() -> bool {
    IS_ON.get()
}

/// Changes the output of an encoder while the fault lasts.
pub(crate) fn spoil(written: &mut [u8]) {
    if is_on() {
        written.iter_mut().skip(5).step_by(7).for_each(|byte| *byte ^= 1);
    }
}
