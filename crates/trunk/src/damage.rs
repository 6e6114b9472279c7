//! [`NodeDamage`]: what background work could not read in a node, so that it leaves that alone.
//!
//! A damaged block stays damaged, and a bad sector bad: work that needs it would fail again at each
//! attempt, and read and write in vain. So the first job that meets it notes the run, and the planner
//! plans nothing more that reads the run for this node ([`crate::plan`]). Newer runs of the node are
//! still merged with each other, so that their number stays in bounds while flushes go on. In memory
//! only: after a restart the first job notes it again.
//!
//! The run is noted in the node and not as a whole: another node that has a view of it, of other keys,
//! may be sound. Threads: any.

use frondb_core::sync::Mutex;
use frondb_core::{Error, ErrorKind, RunId};

/// What is noted about a node; see the module documentation.
#[derive(Debug, Default)]
pub struct NodeDamage(Mutex<Option<Box<Noted>>>);

#[derive(Debug, Default)]
struct Noted {
    /// The runs with damage, and where.
    runs: Vec<(RunId, Error)>,
    /// The last other failure of a job.
    failure: Option<Error>,
}

impl NodeDamage {
    /// Notes damage in a run. Returns `false` if that is known.
    pub fn note_run(&self, run: RunId, error: &Error) -> bool {
        let mut noted = self.0.lock();
        let runs = &mut noted.get_or_insert_default().runs;
        let is_new = runs.iter().all(|(known, _)| *known != run);
        if is_new {
            runs.push((run, error.clone()));
        }
        is_new
    }

    /// Notes why a job failed that could be repeated. Returns `false` if the last one failed for the same
    /// reason.
    pub fn note_failure(&self, error: &Error) -> bool {
        let mut noted = self.0.lock();
        let last = noted.get_or_insert_default().failure.replace(error.clone());
        last.is_none_or(|last| last.kind() != error.kind() || last.message() != error.message())
    }

    /// Forgets what the device could not read: it may be able to now.
    pub fn forget_unreadable(&self) {
        let mut noted = self.0.lock();
        let Some(notes) = &mut *noted else { return };
        notes.runs.retain(|(_, error)| error.kind() != ErrorKind::Io);
        if notes.runs.is_empty() && notes.failure.is_none() {
            *noted = None;
        }
    }

    /// The last other failure of a job.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.0.lock().as_ref().and_then(|noted| noted.failure.clone())
    }

    /// Whether nothing is noted.
    pub(crate) fn is_none(&self) -> bool {
        self.0.lock().is_none()
    }

    /// The runs with damage; they may have left the node.
    pub(crate) fn runs(&self) -> Vec<RunId> {
        let noted = self.0.lock();
        noted.iter().flat_map(|noted| &noted.runs).map(|(run, _)| *run).collect()
    }

    pub(crate) fn error_of(&self, run: RunId) -> Option<Error> {
        let noted = self.0.lock();
        let mut runs = noted.iter().flat_map(|noted| &noted.runs);
        runs.find(|(known, _)| *known == run).map(|(_, error)| error.clone())
    }
}
