//! Counts and reports what a codec wrote that does not decode again. It is stored uncompressed
//! instead, so nothing is lost; the codec's library has a fault, or the memory has.
//!
//! The count is the process's, as the pooled contexts are.

use frondb_core::sync::ProcessCounter;

static COUNT: ProcessCounter = ProcessCounter::new(0);

/// How many blocks and log records codecs could not encode so that they decode again, in all databases
/// of the process. They were stored uncompressed.
#[must_use]
pub fn miscoded_blocks() -> u64 {
    COUNT.count()
}

/// Counts one, and logs the first.
#[cold]
pub(crate) fn note(what: &str, codec: &str, bytes: usize, fault: &str) {
    if COUNT.next() == 0 {
        tracing::error!(
            "{codec} could not encode a {what} of {bytes} bytes, which is stored uncompressed: \
             {fault}; check the memory of this machine, and report this if it is sound. Further \
             ones are only counted (statistic miscoded_blocks)"
        );
    }
}
