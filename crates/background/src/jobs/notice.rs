//! [`Notice`]: reports the beginning and the end of a flush or a merge to the listener of the
//! application, however the job ends.

use frondb_core::TreeId;
use frondb_core::events::{Event, Events};
use frondb_core::sync::Arc;

use crate::context::JobContext;

/// A job whose beginning was reported. If the notice is dropped without [`ended`](Self::ended), the
/// job is reported as given up.
pub(crate) struct Notice {
    events: Arc<Events>,
    tree: TreeId,
    is_flush: bool,
    has_ended: bool,
}

impl Notice {
    /// Reports that a flush begins.
    pub(crate) fn flush(context: &JobContext, tree: TreeId) -> Self {
        context.events.tell(Event::FlushBegan { tree });
        Self::of(context, tree, true)
    }

    /// Reports that a merge begins.
    pub(crate) fn merge(context: &JobContext, tree: TreeId) -> Self {
        context.events.tell(Event::MergeBegan { tree });
        Self::of(context, tree, false)
    }

    fn of(context: &JobContext, tree: TreeId, is_flush: bool) -> Self {
        let events = Arc::clone(&context.events);
        Self { events, tree, is_flush, has_ended: false }
    }

    /// Reports that the output of the job is part of the tree. The job wrote `bytes` in `nanos`
    /// nanoseconds.
    pub(crate) fn ended(mut self, bytes: u64, nanos: u64) {
        self.has_ended = true;
        let tree = self.tree;
        self.events.tell(match self.is_flush {
            true => Event::FlushEnded { tree, bytes, nanos },
            false => Event::MergeEnded { tree, bytes, nanos },
        });
    }
}

impl Drop for Notice {
    fn drop(&mut self) {
        let tree = self.tree;
        if !self.has_ended {
            self.events.tell(match self.is_flush {
                true => Event::FlushGivenUp { tree },
                false => Event::MergeGivenUp { tree },
            });
        }
    }
}
