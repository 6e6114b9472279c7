//! Messages that the engine reports on its own, and the listener of the process that receives them.
//!
//! ```text
//!   tracing event of a FronDB crate --> Forward --> the listener
//! ```
//! Invariants: without a listener an event costs one load. The listener does not receive messages
//! that it causes itself.

use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::fmt::Write;

use frondb::{Error, ErrorKind, Result};
use frondb_core::sync::atomic::{AtomicBool, Ordering};
use frondb_core::sync::{Arc, OnceLock, RwLock};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::call::call;
use crate::error::{c_string, frondb_error};
use crate::slice::UserData;

/// The severity of a message.
pub type frondb_log_level = u32;
/// Something failed and needs attention.
pub const FRONDB_LOG_ERROR: frondb_log_level = 0;
/// Something is wrong, but work continues.
pub const FRONDB_LOG_WARNING: frondb_log_level = 1;
/// Progress, for example of a recovery.
pub const FRONDB_LOG_INFO: frondb_log_level = 2;

/// Receives a message: a sentence that is valid during the call. Any thread may call the function,
/// including the background threads of the engine, and several threads at the same time. The
/// function must be quick, must not call functions of this interface, and must return normally (no
/// exception, no longjmp).
pub type frondb_log =
    Option<extern "C" fn(user_data: *mut c_void, level: frondb_log_level, message: *const c_char)>;

/// The process's listener.
struct Listener {
    log: extern "C" fn(*mut c_void, frondb_log_level, *const c_char),
    user_data: UserData,
}

/// Whether there is a listener. An event checks this first, and costs one load if there is none.
static IS_SET: AtomicBool = AtomicBool::new(false);

fn listener() -> &'static RwLock<Option<Arc<Listener>>> {
    static LISTENER: OnceLock<RwLock<Option<Arc<Listener>>>> = OnceLock::new();
    LISTENER.get_or_init(RwLock::default)
}

/// Subscribes to the events of the engine's crates, once for the process.
fn subscribe() -> Result<()> {
    static SUBSCRIBED: OnceLock<bool> = OnceLock::new();
    if *SUBSCRIBED.get_or_init(|| tracing::subscriber::set_global_default(Forward).is_ok()) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Exists, "another library in this process already listens to events"))
}

/// Sets a listener for the messages that all databases of the process report on their own:
/// recoveries and their progress, damage found in the background, a full disk. NULL, the initial
/// state, removes the listener. `free_user_data`, unless NULL, is called once when `log` is no
/// longer used, after another call of this function. If this function fails, `free_user_data` is
/// not called.
///
/// Threads: any.
///
/// Errors: FRONDB_EXISTS if another library in the process has subscribed to `tracing` events.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_set_log(
    log: frondb_log,
    user_data: *mut c_void,
    free_user_data: Option<extern "C" fn(user_data: *mut c_void)>,
) -> *mut frondb_error {
    call(|| {
        subscribe()?;
        let user_data = UserData::new(user_data, free_user_data);
        let new = log.map(|log| Arc::new(Listener { log, user_data }));
        let mut held = listener().write();
        IS_SET.store(new.is_some(), Ordering::Release);
        let old = std::mem::replace(&mut *held, new);
        drop(held);
        // Drop the old listener after the lock is released, because the free function of the caller
        // may do anything.
        drop(old);
        Ok(())
    })
}

struct Forward;

thread_local! {
    /// Whether this thread is in a call of the listener. Events of such a thread are ignored.
    static IN_LISTENER: Cell<bool> = const { Cell::new(false) };
}

impl Subscriber for Forward {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO && metadata.target().starts_with("frondb")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        // The engine has no spans, and spans of other libraries are not passed on.
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        if !IS_SET.load(Ordering::Acquire) || IN_LISTENER.replace(true) {
            return;
        }
        if let Some(listener) = listener().read().as_ref().map(Arc::clone) {
            let mut sentence = Sentence::default();
            event.record(&mut sentence);
            let level = match *event.metadata().level() {
                Level::ERROR => FRONDB_LOG_ERROR,
                Level::WARN => FRONDB_LOG_WARNING,
                _ => FRONDB_LOG_INFO,
            };
            let message = c_string(&(sentence.message + &sentence.others));
            (listener.log)(listener.user_data.get(), level, message.as_ptr());
        }
        IN_LISTENER.set(false);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// An event in words: its message, followed by its other fields.
#[derive(Default)]
struct Sentence {
    message: String,
    others: String,
}

impl Visit for Sentence {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            "error" => write!(self.others, ": {value:?}"),
            name => write!(self.others, ", {name} {value:?}"),
        };
    }
}
