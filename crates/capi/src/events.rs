//! Events of an open database, for a listener of the application.

use std::ffi::{CStr, c_char, c_void};

use frondb::{Db, Event, EventListener};
use frondb_core::sync::Arc;

use crate::call::call;
use crate::db::frondb_db;
use crate::error::{c_string, frondb_error};
use crate::handle;
use crate::slice::UserData;

/// An event. The structure and its texts are valid during the call of the listener.
#[repr(C)]
pub struct frondb_event {
    /// `flush_began`, `flush_ended`, `flush_given_up`, `merge_began`, `merge_ended`,
    /// `merge_given_up`, `job_failed`, `stall_began`, `stall_ended`, `disk_full`, `disk_has_space`,
    /// `poisoned` or `corruption`. Later versions may add names.
    pub name: *const c_char,
    /// For flushes and merges: the number of the tree; otherwise 0.
    pub tree: u64,
    /// For flushes and merges that have ended: bytes written; otherwise 0.
    pub bytes: u64,
    /// For flushes, merges and stalls that have ended: their length, nanoseconds; otherwise 0.
    pub nanos: u64,
    /// For stalls, the reason why commits wait: `memtables`, `log`, `merges` or `disk`. For failed
    /// jobs, a full disk, a poisoned database and damage, the message of the error. Otherwise an
    /// empty string.
    pub message: *const c_char,
}

/// A listener of events. `event` is valid during the call.
pub type frondb_event_listener =
    Option<extern "C" fn(user_data: *mut c_void, event: *const frondb_event)>;

/// Sets a listener of the events of the database: flushes, merges, failed jobs, stalls of commits
/// (delays of at least 10 ms, and waits until there is room), a full disk, a poisoned database and
/// damage. NULL removes the listener.
///
/// The thread in which an event happens calls the listener, sometimes while it holds locks of the
/// database. The listener must be quick, must not call the database, must not take a lock that the
/// application holds while it calls the database, and must return normally (no exception, no
/// longjmp). When this function returns, another thread may still be in a call of the old listener.
/// `free_user_data`, unless NULL, is called once, by any thread, when no thread can be in a call of
/// the listener any more; the same rules apply to it. If this function fails, `free_user_data` is
/// not called.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_set_event_listener(
    db: *mut frondb_db,
    listener: frondb_event_listener,
    user_data: *mut c_void,
    free_user_data: Option<extern "C" fn(user_data: *mut c_void)>,
) -> *mut frondb_error {
    call(|| {
        let db = handle::shared::<Db>(db)?;
        let user_data = UserData::new(user_data, free_user_data);
        let listener = listener.map(|listener| -> EventListener {
            Arc::new(move |event: &Event<'_>| {
                let (name, message) = (c_string(event.name()), c_string(&message(event)));
                let event = of(event, &name, &message);
                listener(user_data.get(), &raw const event);
            })
        });
        db.set_event_listener(listener);
        Ok(())
    })
}

fn of(event: &Event<'_>, name: &CStr, message: &CStr) -> frondb_event {
    let (tree, bytes, nanos) = match *event {
        Event::FlushBegan { tree }
        | Event::FlushGivenUp { tree }
        | Event::MergeBegan { tree }
        | Event::MergeGivenUp { tree } => (tree.get().into(), 0, 0),
        Event::FlushEnded { tree, bytes, nanos } | Event::MergeEnded { tree, bytes, nanos } => {
            (tree.get().into(), bytes, nanos)
        }
        Event::StallEnded { nanos, .. } => (0, 0, nanos),
        _ => (0, 0, 0),
    };
    frondb_event { name: name.as_ptr(), tree, bytes, nanos, message: message.as_ptr() }
}

fn message(event: &Event<'_>) -> String {
    match *event {
        Event::StallBegan(reason) | Event::StallEnded { reason, .. } => reason.name().to_owned(),
        Event::JobFailed(error)
        | Event::DiskFull(error)
        | Event::Poisoned(error)
        | Event::Corruption(error) => error.to_string(),
        _ => String::new(),
    }
}
