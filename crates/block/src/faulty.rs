//! Encoders that write other bytes than they should, for tests of what follows. Only in debug builds:
//! no release has this module.
//!
//! Threads: the fault is that of the calling thread.

use std::cell::Cell;

thread_local! {
    static IS_ON: Cell<bool> = const { Cell::new(false) };
}

/// Ends the fault, also when a test fails.
struct Fault;

impl Drop for Fault {
    fn drop(&mut self) {
        IS_ON.set(false);
    }
}

/// What encoders of this thread write while `work` runs does not decode to what they were given. As in
/// releases, blocks of fast codecs are not verified unless [`Verify::All`](crate::Verify) is asked for.
pub fn with_faulty_encoders<T>(work: impl FnOnce() -> T) -> T {
    IS_ON.set(true);
    let _fault = Fault;
    work()
}

pub(crate) fn is_on() -> bool {
    IS_ON.get()
}

/// Changes what an encoder has written, while the fault is there.
pub(crate) fn spoil(written: &mut [u8]) {
    if is_on() {
        written.iter_mut().skip(5).step_by(7).for_each(|byte| *byte ^= 1);
    }
}
