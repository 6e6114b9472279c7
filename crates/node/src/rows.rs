//! Iterators over ranges, as `lib/range.js` uses them.

use std::sync::Arc;

use frondb::{Error, ErrorKind};
use napi::Env;
use napi::bindgen_prelude::{Array, JavaScriptClassExt};
use napi_derive::napi;
use parking_lot::Mutex;

use crate::answer::{Answer, Instance};
use crate::failure::{Origin, Result, or_throw};
use crate::pool::READS;
use crate::runtime::{Runtime, guarded};
use crate::scan::{Part, Scan, Source};
use crate::shared::Handle;
use crate::transaction::OpenTransaction;

/// A scan, and what it refers to, in the order of their drop.
pub(crate) struct OpenRows {
    /// `None` after the end. The thread of JavaScript never waits for this latch.
    scan: Mutex<Option<Scan>>,
    transaction: Option<Arc<OpenTransaction>>,
    handle: Arc<Handle>,
}

impl OpenRows {
    pub(crate) fn new(
        source: Source,
        part: Part,
        is_reverse: bool,
        limit: f64,
        takes_locks: bool,
        handle: &Arc<Handle>,
    ) -> Self {
        // A number of JavaScript above 2^64, such as Infinity, becomes the largest integer.
        let scan = Scan::new(source, part, is_reverse, limit as u64, takes_locks);
        let scan = Mutex::new(Some(scan));
        Self { scan, transaction: None, handle: Arc::clone(handle) }
    }

    pub(crate) fn of_transaction(self, transaction: Arc<OpenTransaction>) -> Self {
        Self { transaction: Some(transaction), ..self }
    }

    /// Reads more rows. The scan is dropped at its end and after an error.
    fn fill(&self) -> frondb::Result<Answer> {
        self.handle.check()?;
        let Some(mut scan) = self.scan.try_lock() else {
            let message = "the iterator reads rows for an earlier call: await it first";
            return Err(Error::new(ErrorKind::Busy, message));
        };
        let Some(open) = &mut *scan else {
            return Ok(Answer::Rows(Default::default(), Default::default(), true));
        };
        let filled = guarded(|| open.fill());
        if !matches!(filled, Ok((.., false))) {
            *scan = None;
        }
        filled.map(|(keys, values, has_ended)| Answer::Rows(keys, values, has_ended))
    }
}

impl Instance for OpenRows {
    fn put(self: Box<Self>, env: &Env, array: &mut Array<'_>, index: u32) -> napi::Result<()> {
        array.set(index, NativeRows::new(*self).into_instance(env)?)
    }
}

/// An iterator over the rows of a range.
#[napi]
pub struct NativeRows {
    rows: Arc<OpenRows>,
}

impl NativeRows {
    pub(crate) fn new(rows: OpenRows) -> Self {
        Self { rows: Arc::new(rows) }
    }
}

#[napi]
impl NativeRows {
    /// Answers with the next rows.
    #[napi]
    pub fn fill(&self, runtime: &Runtime, ticket: u32) {
        let rows = Arc::clone(&self.rows);
        match &self.rows.transaction {
            None => runtime.inbox().spawn(&READS, ticket, move || rows.fill()),
            Some(open) => open.spawn(runtime.inbox(), ticket, move |_| rows.fill()),
        }
    }

    /// Returns the next rows, which this thread reads.
    #[napi]
    pub fn fill_here<'env>(&self, env: &'env Env) -> Result<Array<'env>> {
        let answer = or_throw(self.rows.fill())?;
        let made = (|| {
            let mut array = env.create_array(1)?;
            answer.put(env, &mut array, 0)?;
            Ok(array)
        })();
        made.map_err(|error: napi::Error| napi::Error::new(Origin::Argument, error.reason.clone()))
    }

    /// Ends the iterator and releases its snapshot, also while a call reads rows.
    #[napi]
    pub fn close(&self) {
        match self.rows.scan.try_lock() {
            Some(mut scan) => *scan = None,
            // The call holds the latch: another thread waits for it.
            None => {
                let rows = Arc::clone(&self.rows);
                let _ = READS.run(Box::new(move || *rows.scan.lock() = None));
            }
        }
    }
}
