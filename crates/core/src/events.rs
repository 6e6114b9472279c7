//! [`Events`]: tells a listener of the application what happens inside an open database.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::TreeId;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, RwLock};

/// Why commits wait for background work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StallReason {
    /// Memtables are larger than the write buffer: flushes cannot keep up.
    Memtables,
    /// The log that recovery would read is too long: flushes cannot keep up.
    Log,
    /// Merges cannot keep up.
    Merges,
    /// The disk is full, and a delete waits until flushes of deletes have made room.
    Disk,
}

impl StallReason {
    /// A word for it.
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

/// What has happened.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The flush of a memtable has begun.
    FlushBegan {
        /// Its tree.
        tree: TreeId,
    },
    /// A flush was given up: it has failed, the tree was dropped, or the disk is full and it begins
    /// again later.
    FlushGivenUp {
        /// Its tree.
        tree: TreeId,
    },
    /// A flush has ended, and its data is part of the tree. The log is trimmed later.
    FlushEnded {
        /// Its tree.
        tree: TreeId,
        /// Bytes written.
        bytes: u64,
        /// How long it took.
        nanos: u64,
    },
    /// A merge that writes data has begun.
    MergeBegan {
        /// Its tree.
        tree: TreeId,
    },
    /// A merge was given up: it has failed, there is nothing left to merge, or the disk is full and it
    /// begins again later.
    MergeGivenUp {
        /// Its tree.
        tree: TreeId,
    },
    /// A merge has ended, and its result is part of the tree.
    MergeEnded {
        /// Its tree.
        tree: TreeId,
        /// Bytes written.
        bytes: u64,
        /// How long it took.
        nanos: u64,
    },
    /// Background work has failed. It is tried again if the disk was full; after a failed flush for
    /// another reason the database is poisoned; a node that cannot be merged stays as it is.
    JobFailed(&'a Error),
    /// A commit begins to wait for background work, for 10 ms or more or until there is room.
    StallBegan(StallReason),
    /// That wait has ended.
    StallEnded {
        /// Why it waited.
        reason: StallReason,
        /// How long it took.
        nanos: u64,
    },
    /// The disk is full: writes that free no space fail from now on.
    DiskFull(&'a Error),
    /// There is space again.
    DiskHasSpace,
    /// The database is poisoned: it is not known what is durable, so nothing more is written.
    Poisoned(&'a Error),
    /// A read has found damage.
    Corruption(&'a Error),
}

impl Event<'_> {
    /// A word for it.
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

/// A function that is told of events. It is called on the thread on which they happen, sometimes with
/// locks of the database held: it must be quick, must not call the database, and must not take a lock
/// that the application holds while it calls the database.
pub type EventListener = Arc<dyn Fn(&Event<'_>) + Send + Sync>;

/// The listener of a database, if one is set. Any thread may set it and tell it.
#[derive(Default)]
pub struct Events {
    is_set: AtomicBool,
    listener: RwLock<Option<EventListener>>,
    corruptions: AtomicU64,
}

impl Events {
    /// How often damage was told of.
    #[must_use]
    pub fn corruptions(&self) -> u64 {
        self.corruptions.load(Ordering::Relaxed)
    }

    /// Returns `result`, and tells of the damage if it has found any.
    pub fn note_damage<T>(&self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| {
            if error.kind() == ErrorKind::Corruption {
                self.tell(Event::Corruption(error));
            }
        })
    }

    /// Sets the listener; `None` for none. Another thread may still be in a call of the old one.
    pub fn set(&self, listener: Option<EventListener>) {
        let mut held = self.listener.write();
        self.is_set.store(listener.is_some(), Ordering::Release);
        let old = std::mem::replace(&mut *held, listener);
        drop(held);
        // Without the lock: destructors of what it captured may run any code.
        drop(old);
    }

    /// Tells the listener. A panic of it is logged: what has happened goes on.
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
