//! A device wrapper that counts every write for one cause: for the log's directory, and for the
//! manifest.

use std::fmt;

use frondb_core::sync::Arc;
use frondb_core::wear::{WriteCause, WriteCounters};

use crate::device::SharedDevice;
use crate::intercept::{Call, Intercepted, Interceptor, Operation, Verdict};

/// A device whose writes are counted. A write counts when it is requested: one that fails may have
/// reached the disk in part.
pub type CountedDevice = Intercepted<WriteCount>;

/// Where the writes of a [`CountedDevice`] are counted.
pub struct WriteCount {
    counters: Arc<WriteCounters>,
    cause: WriteCause,
}

impl CountedDevice {
    /// `inner`, whose writes count for `cause`.
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
