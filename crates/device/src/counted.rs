//! A device wrapper that counts every write for one cause; used for the log's directory and the
//! manifest.

use std::fmt;

use frondb_core::sync::Arc;
use frondb_core::wear::{WriteCause, WriteCounters};

use crate::device::SharedDevice;
use crate::intercept::{Call, Intercepted, Interceptor, Operation, Verdict};

/// A device whose writes are counted. A write counts when it is requested, because a part of a
/// failed write may have reached the disk.
pub type CountedDevice = Intercepted<WriteCount>;

/// Where the writes of a [`CountedDevice`] are counted.
pub struct WriteCount {
    counters: Arc<WriteCounters>,
    cause: WriteCause,
}

impl CountedDevice {
    /// Wraps `inner`, so that its writes count for `cause`.
    #[must_use]
    pub fn shared(
        inner: SharedDevice,
        counters: Arc<WriteCounters>,
        cause: WriteCause,
    ) -> SharedDevice {
        Arc::new(Self::wrap(inner, WriteCount { counters, cause }))
    }
}

impl fmt::Debug for WriteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WriteCount({})", self.cause.name())
    }
}

impl Interceptor for WriteCount {
    fn before(&self, call: &Call<'_>) -> Verdict {
        if call.operation == Operation::Write {
            self.counters.add(self.cause, call.len);
        }
        Verdict::Pass
    }
}
