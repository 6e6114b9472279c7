//! Long calls: they tell JavaScript how far they are, and end early if JavaScript asks for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use napi_derive::napi;
use parking_lot::Mutex;

use crate::answer::Answer;
use crate::runtime::{Inbox, Runtime};

/// The shortest time between two reports.
const PERIOD: Duration = Duration::from_millis(50);

/// What JavaScript and a long call share.
#[napi]
pub struct Progress {
    is_cancelled: Arc<AtomicBool>,
    /// Whether there is a function to tell.
    is_told: bool,
    to: Option<(Arc<Inbox>, u32)>,
    told: Mutex<Option<Instant>>,
}

impl Progress {
    /// Returns the side of the call.
    pub(crate) fn of(&self, runtime: &Runtime, ticket: u32) -> Self {
        Self {
            is_cancelled: Arc::clone(&self.is_cancelled),
            is_told: self.is_told,
            to: self.is_told.then(|| (Arc::clone(runtime.inbox()), ticket)),
            told: Mutex::new(None),
        }
    }

    /// Reports numbers, and returns whether the call shall go on.
    pub(crate) fn tell(&self, done: u64, total: u64) -> bool {
        self.tell_of("", done, total)
    }

    /// Reports numbers of a tree.
    pub(crate) fn tell_of(&self, tree: &str, done: u64, total: u64) -> bool {
        let mut told = self.told.lock();
        if let Some((inbox, ticket)) = &self.to
            && told.is_none_or(|told| told.elapsed() >= PERIOD)
        {
            *told = Some(Instant::now());
            let numbers = vec![("done", done), ("total", total)];
            inbox.part(*ticket, Answer::Report(numbers, vec![tree.to_owned()]));
        }
        !self.is_cancelled.load(Ordering::Relaxed)
    }
}

#[napi]
impl Progress {
    #[napi(constructor)]
    pub fn new(is_told: bool) -> Self {
        let is_cancelled = Arc::new(AtomicBool::new(false));
        Self { is_cancelled, is_told, to: None, told: Mutex::new(None) }
    }

    /// Makes the call fail with `Cancelled` soon.
    #[napi]
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }
}
