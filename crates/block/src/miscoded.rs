//! Counts and reports outputs of codecs that do not decode to their input. Such data is stored
//! uncompressed instead, so nothing is lost; the codec's library or the machine's memory is faulty.
//!
//! The process has one count, because the pooled contexts belong to the process.

use frondb_core::sync::ProcessCounter;

static COUNT: ProcessCounter = ProcessCounter::new(0);

/// Returns the number of blocks, and of records of the log and the manifest, whose compressed form
/// did not decode to the original, in all databases of the process. They were stored uncompressed.
#[must_use]
pub fn miscoded_blocks() -> u64 {
    COUNT.count()
}

/// Counts a fault, and logs the first one.
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
