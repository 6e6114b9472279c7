//! [`Runtime`]: how calls get to threads, and their answers back to the thread of JavaScript that
//! made them. Each thread of JavaScript (the main one, and each worker) has its own.
//!
//! ```text
//!   JavaScript: ticket, call --spawn--> lane of pool.rs: the engine --answer--> inbox
//!   JavaScript: take() <--one wake for all answers since the last take-- inbox
//! ```
//!
//! A wake of the event loop costs several microseconds, and taking an answer less than one. So an
//! answer wakes the loop only if the inbox was empty.
//!
//! If the thread of JavaScript ends while calls run, the calls run to their end and their answers
//! are dropped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use frondb::{Error, ErrorKind};
use napi::Env;
use napi::bindgen_prelude::{Array, Function};
use napi::threadsafe_function::{
    ThreadsafeFunction, ThreadsafeFunctionCallMode, UnknownReturnValue,
};
use napi_derive::napi;
use parking_lot::Mutex;

use crate::answer::Answer;
use crate::failure;
use crate::pool::{self, Lane};

/// Wakes the event loop. Weak: `lib/calls.js` keeps the loop alive while it waits for answers.
type Wake = ThreadsafeFunction<(), UnknownReturnValue, (), napi::Status, false, true>;

/// What an item of an inbox is; `lib/calls.js` has the same numbers.
#[derive(Clone, Copy)]
enum Kind {
    /// The result of a call.
    Result = 0,
    /// The error of a call.
    Error = 1,
    /// Something about a call that goes on.
    Part = 2,
}

struct Item {
    ticket: u32,
    kind: Kind,
    content: Content,
}

enum Content {
    Answer(Answer),
    Error(String),
}

/// The answers that a thread of JavaScript has not taken yet.
pub(crate) struct Inbox {
    items: Mutex<Vec<Item>>,
    wake: Wake,
}

impl Inbox {
    fn add(&self, item: Item) {
        let mut items = self.items.lock();
        items.push(item);
        let is_first = items.len() == 1;
        drop(items);
        if is_first {
            // A thread of JavaScript that has ended takes no answers.
            let _ = self.wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
        }
    }

    /// Ends the call of a ticket.
    pub(crate) fn answer(&self, ticket: u32, result: frondb::Result<Answer>) {
        let (kind, content) = match result {
            Ok(answer) => (Kind::Result, Content::Answer(answer)),
            Err(error) => (Kind::Error, Content::Error(failure::text(&error))),
        };
        self.add(Item { ticket, kind, content });
    }

    /// Reports something about a call that goes on.
    pub(crate) fn part(&self, ticket: u32, answer: Answer) {
        self.add(Item { ticket, kind: Kind::Part, content: Content::Answer(answer) });
    }

    /// Runs a call on a thread of the lane, and answers with its result.
    pub(crate) fn spawn(
        self: &Arc<Self>,
        lane: &'static Lane,
        ticket: u32,
        call: impl FnOnce() -> frondb::Result<Answer> + Send + 'static,
    ) {
        let inbox = Arc::clone(self);
        let job = Box::new(move || inbox.answer(ticket, guarded(call)));
        if lane.run(job).is_err() {
            self.answer(ticket, Err(no_thread()));
        }
    }
}

/// Runs a call, and makes a panic an error: the promise of a call must end in every case.
pub(crate) fn guarded<T>(call: impl FnOnce() -> frondb::Result<T>) -> frondb::Result<T> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let text = text.unwrap_or("no message");
        Err(Error::new(ErrorKind::Internal, format!("a call panicked: {text}")))
    })
}

/// The error of a call for which the system starts no thread.
pub(crate) fn no_thread() -> Error {
    let message = "the system starts no more threads for this process: raise its limit of tasks, or \
                   make fewer calls at once";
    Error::new(ErrorKind::Busy, message)
}

/// The inbox of a thread of JavaScript.
#[napi]
pub struct Runtime {
    inbox: Arc<Inbox>,
}

impl Runtime {
    pub(crate) fn inbox(&self) -> &Arc<Inbox> {
        &self.inbox
    }
}

#[napi]
impl Runtime {
    /// Makes a runtime that calls `wake` when there are answers to take.
    #[napi(constructor)]
    pub fn new(wake: Function<'_, (), UnknownReturnValue>) -> napi::Result<Self> {
        let wake = wake.build_threadsafe_function::<()>().weak::<true>();
        let wake = wake.callee_handled::<false>().build()?;
        Ok(Self { inbox: Arc::new(Inbox { items: Mutex::default(), wake }) })
    }

    /// Returns all answers since the last call: for each a ticket, a kind and the content.
    #[napi]
    pub fn take<'env>(&self, env: &'env Env) -> napi::Result<Array<'env>> {
        let items = std::mem::take(&mut *self.inbox.items.lock());
        let mut array = env.create_array(items.len() as u32 * 3)?;
        for (number, Item { ticket, kind, content }) in items.into_iter().enumerate() {
            let index = number as u32 * 3;
            array.set(index, ticket)?;
            array.set(index + 1, kind as u32)?;
            match content {
                Content::Answer(answer) => answer.put(env, &mut array, index + 2)?,
                Content::Error(text) => array.set(index + 2, text)?,
            }
        }
        Ok(array)
    }
}

/// Returns how many threads serve reads, writes and other calls, for tests.
#[napi]
pub fn threads() -> Vec<u32> {
    [&pool::READS, &pool::WRITES, &pool::CALLS].map(|lane| lane.threads() as u32).to_vec()
}
