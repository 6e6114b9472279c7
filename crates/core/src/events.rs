//! [`Events`]: reports the events of an open database to a listener of the application.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::TreeId;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, RwLock};

/// The reason why commits wait for background work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StallReason {
    /// Memtables are larger than the write buffer: flushes cannot keep up.
    Memtables,
    /// The part of the log that recovery would read is too long: flushes cannot keep up.
    Log,
    /// Merges cannot keep up.
    Merges,
    /// The disk is full, and a delete waits until flushes of deletes have made room.
    Disk,
}

impl StallReason {
    /// Returns the reason's name, for messages and for events in C.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Memtables => "memtables",
            Self::Log => "log",
            Self::Merges => "merges",
            Self::Disk => "disk",
        }
    }
}

/// An event of an open database.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The flush of a memtable has begun.
    FlushBegan {
        /// The tree whose memtable is flushed.
        tree: TreeId,
    },
    /// A flush was given up: it failed, its tree was dropped, or the disk is full and the flush
    /// will be tried again.
    FlushGivenUp {
        /// The tree whose memtable is flushed.
        tree: TreeId,
    },
    /// A flush has ended, and its data is part of the tree. The log is trimmed later.
    FlushEnded {
        /// The tree whose memtable is flushed.
        tree: TreeId,
        /// Bytes written.
        bytes: u64,
        /// Duration of the flush, nanoseconds.
        nanos: u64,
    },
    /// A merge that writes data has begun.
    MergeBegan {
        /// The tree whose runs are merged.
        tree: TreeId,
    },
    /// A merge was given up: it failed, there is nothing left to merge, or the disk is full and the
    /// merge will be tried again.
    MergeGivenUp {
        /// The tree whose runs are merged.
        tree: TreeId,
    },
    /// A merge has ended, and its result is part of the tree.
    MergeEnded {
        /// The tree whose runs are merged.
        tree: TreeId,
        /// Bytes written.
        bytes: u64,
        /// Duration of the merge, nanoseconds.
        nanos: u64,
    },
    /// Background work has failed. Work that failed because the disk was full is tried again. If a
    /// flush, or work on the log or the manifest, failed for another reason, the database is
    /// poisoned. A node whose merge failed because of its data stays as it is.
    JobFailed(&'a Error),
    /// A commit begins to wait for background work: for a pause of at least 10 ms, or until the
    /// memtables, the log or the disk have room.
    StallBegan(StallReason),
    /// The wait of [`StallBegan`](Self::StallBegan) has ended.
    StallEnded {
        /// The reason for the wait.
        reason: StallReason,
        /// Duration of the wait, nanoseconds.
        nanos: u64,
    },
    /// The disk is full: from now on, writes that free no space fail.
    DiskFull(&'a Error),
    /// There is space again.
    DiskHasSpace,
    /// The database is poisoned: it is unknown what is durable, so the database writes nothing
    /// more.
    Poisoned(&'a Error),
    /// A read has found damage.
    Corruption(&'a Error),
}

impl Event<'_> {
    /// Returns the event's name, for logs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::FlushBegan { .. } => "flush_began",
            Self::FlushGivenUp { .. } => "flush_given_up",
            Self::FlushEnded { .. } => "flush_ended",
            Self::MergeBegan { .. } => "merge_began",
            Self::MergeGivenUp { .. } => "merge_given_up",
            Self::MergeEnded { .. } => "merge_ended",
            Self::JobFailed(_) => "job_failed",
            Self::StallBegan(_) => "stall_began",
            Self::StallEnded { .. } => "stall_ended",
            Self::DiskFull(_) => "disk_full",
            Self::DiskHasSpace => "disk_has_space",
            Self::Poisoned(_) => "poisoned",
            Self::Corruption(_) => "corruption",
        }
    }
}

/// A listener of events. The thread on which an event happens calls it, sometimes with locks of the
/// database held. So a listener must be quick, must not call the database, and must not take a lock
/// that the application holds while it calls the database.
pub type EventListener = Arc<dyn Fn(&Event<'_>) + Send + Sync>;

/// The listener of a database, if one is set. Any thread may set it and report events to it.
#[derive(Default)]
pub struct Events {
    is_set: AtomicBool,
    listener: RwLock<Option<EventListener>>,
    corruptions: AtomicU64,
}

impl Events {
    /// Returns how many times damage was reported.
    #[must_use]
    pub fn corruptions(&self) -> u64 {
        self.corruptions.load(Ordering::Relaxed)
    }

    /// Returns `result`. If it is a `Corruption`, reports the error to the listener first.
    pub fn note_damage<T>(&self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| {
            if error.kind() == ErrorKind::Corruption {
                self.tell(Event::Corruption(error));
            }
        })
    }

    /// Sets the listener; `None` removes it. Another thread may still be in a call of the old
    /// listener.
    pub fn set(&self, listener: Option<EventListener>) {
        let mut held = self.listener.write();
        self.is_set.store(listener.is_some(), Ordering::Release);
        let old = std::mem::replace(&mut *held, listener);
        drop(held);
        // Drop the old listener without the lock: the destructors of its captured values may run
        // any code.
        drop(old);
    }

    /// Reports an event to the listener. A panic of the listener is logged and not propagated.
    #[inline]
    pub fn tell(&self, event: Event<'_>) {
        if let Event::Corruption(_) = event {
            self.corruptions.fetch_add(1, Ordering::Relaxed);
        }
        if self.is_set.load(Ordering::Acquire) {
            self.call(&event);
        }
    }

    #[cold]
    fn call(&self, event: &Event<'_>) {
        let Some(listener) = self.listener.read().clone() else { return };
        let called = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| listener(event)));
        if called.is_err() {
            tracing::error!(event = event.name(), "the event listener panicked");
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Events(set: {})", self.is_set.load(Ordering::Relaxed))
    }
}
