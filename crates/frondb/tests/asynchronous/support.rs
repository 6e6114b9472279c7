//! Helpers: databases whose data is on the device only, futures polled once, and threads that begin
//! when the test says so.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use frondb::testing::TestDb;
use frondb::{Batch, Db, Durability, Error, ErrorKind, Options, Result, Tree, TreeOptions};
use frondb_core::executor::{Executor, JoinHandle, Priority, Task};
use frondb_core::sync::{Arc, Mutex};
use frondb_device::SharedDevice;
use frondb_testkit::MemoryDevice;
use frondb_testkit::functions::Append;

pub(crate) const KEYS: u32 = 2_000;

pub(crate) fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

pub(crate) fn value(n: u32) -> Vec<u8> {
    n.to_be_bytes().repeat(25)
}

pub(crate) fn opening(device: &SharedDevice) -> TestDb {
    TestDb::on(Arc::clone(device)).options(Options::small().update_fn(Append)).still()
}

/// Creates a database with [`KEYS`] rows, of which none is in memory when it is opened again.
pub(crate) fn rows_on_device() -> MemoryDevice {
    let memory = MemoryDevice::new();
    let db = opening(&(Arc::new(memory.clone()) as SharedDevice)).open().unwrap();
    let tree = db.create_tree("t", TreeOptions::new().update_fn("append", 1)).unwrap();
    let mut batch = Batch::new();
    for n in 0..KEYS {
        batch.put(&tree, key(n), value(n));
    }
    db.write(&batch, Durability::NoSync).unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    memory
}

pub(crate) fn open_rows(opening: TestDb) -> (Db, Tree) {
    let db = opening.open().unwrap();
    let tree = db.open_tree("t").unwrap();
    (db, tree)
}

/// Polls a future once; `None` if it is not ready.
pub(crate) fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// An executor whose threads begin when the test says so. Or it refuses all threads.
#[derive(Default)]
pub(crate) struct HeldThreads {
    held: Mutex<Vec<Task>>,
    refuses: bool,
}

impl HeldThreads {
    pub(crate) fn refusing() -> Self {
        Self { refuses: true, ..Self::default() }
    }

    /// Runs the threads that were held, one after the other, on the calling thread. A thread of the
    /// database runs until the close.
    pub(crate) fn run(&self) {
        let held = std::mem::take(&mut *self.held.lock());
        held.into_iter().for_each(|task| task());
    }

    pub(crate) fn count(&self) -> usize {
        self.held.lock().len()
    }
}

impl std::fmt::Debug for HeldThreads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HeldThreads")
    }
}

impl Executor for HeldThreads {
    fn spawn(&self, name: &str, _priority: Priority, task: Task) -> Result<JoinHandle> {
        if self.refuses {
            return Err(Error::new(ErrorKind::Io, "no more threads"));
        }
        self.held.lock().push(task);
        Ok(JoinHandle::new(name, || Ok(())))
    }
}
