//! Requests for locks, and the waiters in the queue of a table.

use smallvec::SmallVec;

use crate::class::{Class, LockMode};
use crate::key::{Area, Key, UpperBound};

/// A request of a locker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Request {
    Row {
        key: Key,
        mode: LockMode,
    },
    /// A gap or a range lock.
    Range {
        lo: Key,
        hi: UpperBound,
        class: Class,
    },
    /// A step of a scan: the gap, and the row at one of its ends. Together they are `[lo, hi)`.
    Step {
        gap_lo: Key,
        gap_hi: UpperBound,
        row: Key,
        mode: LockMode,
        lo: Key,
        hi: UpperBound,
    },
}

impl Request {
    /// Returns the areas that must be free of conflicts for the request to be granted.
    pub(crate) fn areas(&self) -> SmallVec<[Area; 2]> {
        let mut areas = SmallVec::<[Area; 2]>::new();
        match self {
            Self::Row { key, mode } => areas.push(Area::row(key.clone(), Class::row(*mode))),
            Self::Range { lo, hi, class } => {
                areas.push(Area::range(lo.clone(), hi.clone(), *class));
            }
            Self::Step { gap_lo, gap_hi, row, mode, .. } => {
                areas.push(Area::range(gap_lo.clone(), gap_hi.clone(), Class::Gap));
                areas.push(Area::row(row.clone(), Class::row(*mode)));
            }
        }
        areas.retain(|area| !area.is_empty());
        areas
    }

    /// Returns the lock that the locker holds once the request is granted.
    pub(crate) fn held(&self) -> Area {
        match self {
            Self::Row { key, mode } => Area::row(key.clone(), Class::row(*mode)),
            Self::Range { lo, hi, class } => Area::range(lo.clone(), hi.clone(), *class),
            Self::Step { lo, hi, mode, .. } => {
                Area::range(lo.clone(), hi.clone(), Class::scan(*mode))
            }
        }
    }

    pub(crate) fn mode(&self) -> LockMode {
        match self {
            Self::Row { mode, .. } | Self::Step { mode, .. } => *mode,
            Self::Range { class, .. } => class.mode(),
        }
    }
}

pub(crate) struct RequestPart {
    pub(crate) area: Area,
    /// Whether the locker already holds a lock on this area, so that the part goes before all
    /// waiters.
    pub(crate) first: bool,
}

pub(crate) type RequestParts = SmallVec<[RequestPart; 2]>;

/// A locker in the queue. The entry number orders the queue, and becomes the number of the locker's
/// range when the request is granted.
pub(crate) struct Waiter {
    pub(crate) locker: u64,
    pub(crate) entry: u64,
    pub(crate) want: Request,
    pub(crate) parts: RequestParts,
}

impl Waiter {
    /// Whether a later request with these parts must wait for this request.
    pub(crate) fn holds_back(&self, later: &[RequestPart]) -> bool {
        let mut pairs = self.parts.iter().flat_map(|a| later.iter().map(move |b| (a, b)));
        pairs.any(|(a, b)| !b.first && a.area.conflicts(&b.area))
    }

    /// Whether this request must wait for a later request with these parts, because a conflicting
    /// part of the later request goes before all waiters.
    pub(crate) fn yields_to(&self, later: &[RequestPart]) -> bool {
        let mut pairs = self.parts.iter().flat_map(|a| later.iter().map(move |b| (a, b)));
        pairs.any(|(a, b)| b.first && !a.first && a.area.conflicts(&b.area))
    }
}
