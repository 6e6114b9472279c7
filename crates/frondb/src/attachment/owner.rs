//! [`Owner`]: answers other processes in the process that has the database open. One thread waits
//! for connections, and each connection has a thread while it is served.
//!
//! A connection keeps the database open until its question is answered. Therefore [`Owner::stop`]
//! ends all connections and waits for their threads; then the directory can be unlocked.
//! Thread-safe.

use std::io::Read;
use std::time::Duration;

use frondb_core::executor::{JoinHandle, Priority, SharedExecutor};
use frondb_core::sync::{Arc, Condvar, Mutex};
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::{Connection, Listener, PosixDevice};

use super::format::{
    DONE, ERROR, Fields, Frame, MAGIC, QUESTION_BYTES_MAX, SOCKET, of_error, receive, send,
};

/// Maximum number of connections that are served at a time; others get the error `Busy`.
const CONNECTIONS_MAX: usize = 8;
/// Time until the next attempt after a connection could not be accepted, for example because too
/// many files are open.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Answers questions of other processes.
pub(crate) trait Answers: Send + Sync {
    /// Returns the fields of the last frame of the answer; may send other frames before it.
    fn answer(&self, question: Frame, asker: &Connection) -> Result<Fields>;
}

/// Answers other processes until it is stopped or dropped.
#[derive(Debug)]
pub(crate) struct Owner {
    listener: Arc<Listener>,
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle>>,
}

struct Shared {
    answers: Box<dyn Answers>,
    executor: SharedExecutor,
    served: Mutex<Served>,
    /// Notified when a connection has ended, and when the owner stops.
    changed: Condvar,
}

#[derive(Default)]
struct Served {
    /// The connections that are served, by number.
    connections: Vec<(u64, Arc<Connection>)>,
    is_stopped: bool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shared")
    }
}

impl Owner {
    /// Makes the socket and starts the thread. REQUIRES: this process holds the lock of the
    /// directory.
    ///
    /// # Errors
    /// `Exists` if `SOCKET` is a file of another kind; `Io` if the socket cannot be made, or the
    /// system refuses a thread.
    pub(super) fn start(
        device: &PosixDevice,
        answers: Box<dyn Answers>,
        executor: &SharedExecutor,
    ) -> Result<Self> {
        let listener = Arc::new(device.listen(SOCKET)?);
        let executor = Arc::clone(executor);
        let (served, changed) = (Mutex::new(Served::default()), Condvar::new());
        let shared = Arc::new(Shared { answers, executor, served, changed });
        let task = {
            let (listener, shared) = (Arc::clone(&listener), Arc::clone(&shared));
            Box::new(move || accept(&listener, &shared))
        };
        let thread = shared.executor.spawn("frondb-answers", Priority::Same, task)?;
        Ok(Self { listener, shared, thread: Mutex::new(Some(thread)) })
    }

    /// Removes the socket, ends the connections, and waits until no thread answers any more. A
    /// second call has no effect. REQUIRES: at the first call, this process still holds the lock of
    /// the directory.
    pub(crate) fn stop(&self) {
        self.listener.stop();
        self.shared.served.lock().is_stopped = true;
        self.shared.changed.notify_all();
        // Wait for the accepting thread first: afterwards no connection is added.
        let thread = self.thread.lock().take();
        if let Some(Err(error)) = thread.map(JoinHandle::join) {
            tracing::error!(%error, "the thread that answers other processes failed");
        }
        let mut served = self.shared.served.lock();
        for (_, connection) in &served.connections {
            connection.shut();
        }
        while !served.connections.is_empty() {
            self.shared.changed.wait(&mut served);
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Owns the entry of a connection in [`Served`]; its drop removes the entry.
struct Place {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.served.lock().connections.retain(|(number, _)| *number != self.number);
        self.shared.changed.notify_all();
    }
}

fn accept(listener: &Listener, shared: &Arc<Shared>) {
    let (mut number, mut is_failing) = (0, false);
    loop {
        let connection = match listener.accept() {
            Ok(Some(connection)) => Arc::new(connection),
            Ok(None) => return,
            Err(error) => {
                if !is_failing {
                    tracing::warn!(%error, "other processes get no answer about the database for now");
                }
                is_failing = true;
                let mut served = shared.served.lock();
                if !served.is_stopped {
                    shared.changed.wait_for(&mut served, RETRY_AFTER);
                }
                continue;
            }
        };
        (number, is_failing) = (number + 1, false);
        match place(shared, number, &connection) {
            Some(place) => spawn(place, connection),
            None => {
                let busy = "the database answers as many other processes as it can: try again";
                let _ = send(&*connection, ERROR, &of_error(&Error::new(ErrorKind::Busy, busy)));
            }
        }
    }
}

/// Adds an entry for the connection; returns `None` if too many connections are served.
fn place(shared: &Arc<Shared>, number: u64, connection: &Arc<Connection>) -> Option<Place> {
    let mut served = shared.served.lock();
    if served.connections.len() >= CONNECTIONS_MAX {
        return None;
    }
    served.connections.push((number, Arc::clone(connection)));
    Some(Place { shared: Arc::clone(shared), number })
}

fn spawn(place: Place, connection: Arc<Connection>) {
    let shared = Arc::clone(&place.shared);
    let task = Box::new(move || {
        serve(&*place.shared.answers, &connection);
        // `stop` waits until no entry is left, so drop the entry last.
        drop(connection);
        drop(place);
    });
    // Drop the thread's handle: the removal of the entry shows that the thread has finished.
    if let Err(error) = shared.executor.spawn("frondb-answer", Priority::Same, task).map(drop) {
        tracing::warn!(%error, "another process gets no answer about the database");
    }
}

fn serve(answers: &dyn Answers, connection: &Connection) {
    let answered = question(connection).and_then(|question| answers.answer(question, connection));
    let sent = match answered {
        Ok(fields) => send(connection, DONE, &fields),
        Err(error) => send(connection, ERROR, &of_error(&error)),
    };
    if let Err(error) = sent {
        tracing::debug!(%error, "the process that asked did not wait for the answer");
    }
}

fn question(connection: &Connection) -> Result<Frame> {
    let mut magic = [0; MAGIC.len()];
    let mut input = connection;
    let read = input.read_exact(&mut magic);
    read.map_err(|error| Error::io("read", "a question", &error))?;
    if magic != *MAGIC {
        return Err(Error::invalid("this is no question to a database"));
    }
    receive(input, QUESTION_BYTES_MAX)
}
