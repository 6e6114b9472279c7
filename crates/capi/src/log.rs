//! What the engine has to say when nobody asks: to whoever listens, one for the process.
//!
//! ```text
//!   tracing event of a crate of ours --> Forward --> the listener
//! ```
//! Invariant: with no listener an event costs a load. What the listener logs in turn does not come
//! back to it.

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

/// How much a message matters.
pub type frondb_log_level = u32;
/// Something failed, and somebody should look at it.
pub const FRONDB_LOG_ERROR: frondb_log_level = 0;
/// Something is not as it should be, and work goes on.
pub const FRONDB_LOG_WARNING: frondb_log_level = 1;
/// What is being done, for example how far a recovery is.
pub const FRONDB_LOG_INFO: frondb_log_level = 2;

/// Told of a message, a sentence that is good during the call. Called by any thread, by several at
/// once, also by those of the engine in the background; it must be quick, must not call functions of
/// this interface, and must not throw or jump out.
pub type frondb_log =
    Option<extern "C" fn(user_data: *mut c_void, level: frondb_log_level, message: *const c_char)>;

/// Who listens.
struct Listener {
    tell: extern "C" fn(*mut c_void, frondb_log_level, *const c_char),
    user_data: UserData,
}

/// Whether there is a listener: the way of an event that nobody wants is short.
static IS_SET: AtomicBool = AtomicBool::new(false);

fn listener() -> &'static RwLock<Option<Arc<Listener>>> {
    static LISTENER: OnceLock<RwLock<Option<Arc<Listener>>>> = OnceLock::new();
    LISTENER.get_or_init(RwLock::default)
}

/// Makes our events come here, once a process.
fn subscribe() -> Result<()> {
    static SUBSCRIBED: OnceLock<bool> = OnceLock::new();
    if *SUBSCRIBED.get_or_init(|| tracing::subscriber::set_global_default(Forward).is_ok()) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Exists, "something else in this process listens to events already"))
}

/// Tells `log` what happens in all databases of the process that nobody asked for: recoveries and how
/// far they are, damage found in the background, a full disk. NULL for nobody, as at first.
/// `free_user_data`, unless NULL, is called once, when `log` is not used any more: after another one
/// was set. If this function fails it is not called.
///
/// Threads: any.
///
/// Errors: FRONDB_EXISTS if the process listens in another way.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_set_log(
    log: frondb_log,
    user_data: *mut c_void,
    free_user_data: Option<extern "C" fn(user_data: *mut c_void)>,
) -> *mut frondb_error {
    call(|| {
        subscribe()?;
        let user_data = UserData::new(user_data, free_user_data);
        let new = log.map(|tell| Arc::new(Listener { tell, user_data }));
        let mut held = listener().write();
        IS_SET.store(new.is_some(), Ordering::Release);
        let old = std::mem::replace(&mut *held, new);
        drop(held);
        // What frees it may do anything.
        drop(old);
        Ok(())
    })
}

struct Forward;

thread_local! {
    static TELLING: Cell<bool> = const { Cell::new(false) };
}

impl Subscriber for Forward {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO && metadata.target().starts_with("frondb")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        // The engine has no spans; of another they would say nothing here.
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        if !IS_SET.load(Ordering::Acquire) || TELLING.replace(true) {
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
            (listener.tell)(listener.user_data.get(), level, message.as_ptr());
        }
        TELLING.set(false);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// An event in words: its message, and behind it what else it has.
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
