//! [`NodeDamage`]: the runs of a node that background work could not read and will avoid.
//!
//! A damaged block or a bad sector stays bad: work that needs it would fail again at each attempt,
//! after reading and writing in vain. So when a job first fails on the damage, the run is noted,
//! and the planner plans nothing more for this node that reads the run ([`crate::plan`]). Newer
//! runs of the node are still merged with each other, so that their number stays bounded while
//! flushes continue. The notes are in memory only: after a restart, the run is noted again when a
//! job fails on it.
//!
//! The run is noted in the node and not globally, because another node has a view of other keys of
//! the run, which may be intact. Any thread may call any function.

use frondb_core::sync::Mutex;
use frondb_core::{Error, ErrorKind, RunId};

/// The damage noted for a node; see the module documentation.
#[derive(Debug, Default)]
pub struct NodeDamage(Mutex<Option<Box<Noted>>>);

#[derive(Debug, Default)]
struct Noted {
    /// The damaged runs, each with the error that the job returned.
    runs: Vec<(RunId, Error)>,
    /// The error of the last job on the node that failed without showing damage.
    failure: Option<Error>,
}

impl NodeDamage {
    /// Notes damage in a run. Returns `false` if the run was already noted.
    pub fn note_run(&self, run: RunId, error: &Error) -> bool {
        let mut noted = self.0.lock();
        let runs = &mut noted.get_or_insert_default().runs;
        let is_new = runs.iter().all(|(known, _)| *known != run);
        if is_new {
            runs.push((run, error.clone()));
        }
        is_new
    }

    /// Notes the failure of a job that showed no damage in a run, so that other jobs may still read
    /// all runs. Returns `false` if the failure noted before had the same reason.
    pub fn note_failure(&self, error: &Error) -> bool {
        let mut noted = self.0.lock();
        let last = noted.get_or_insert_default().failure.replace(error.clone());
        last.is_none_or(|last| last.kind() != error.kind() || last.message() != error.message())
    }

    /// Forgets runs that failed with an I/O error: the device may be able to read them now.
    pub fn forget_unreadable(&self) {
        let mut noted = self.0.lock();
        let Some(notes) = &mut *noted else { return };
        notes.runs.retain(|(_, error)| error.kind() != ErrorKind::Io);
        if notes.runs.is_empty() && notes.failure.is_none() {
            *noted = None;
        }
    }

    /// Returns the error of the last job that failed without showing damage.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.0.lock().as_ref().and_then(|noted| noted.failure.clone())
    }

    /// Whether neither damage nor a failure is noted.
    pub(crate) fn is_none(&self) -> bool {
        self.0.lock().is_none()
    }

    /// Returns the noted runs; some may have left the node.
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
