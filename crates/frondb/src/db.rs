//! [`Db`]: an open database.

use std::path::Path;

use frondb_core::clock::{SharedClock, SystemClock};
use frondb_core::executor::{SharedExecutor, ThreadExecutor};
use frondb_core::sync::Arc;
use frondb_core::{Error, Result};
use frondb_device::{PosixDevice, SharedDevice};
use frondb_engine::{Durability, Engine, EngineStats, Recovery, Snapshot};

use crate::batch::Batch;
use crate::options::{Options, TreeOptions};
use crate::tree::Tree;

/// An open database. Cheap to clone; every clone is the same database. Any thread may use it.
#[derive(Clone, Debug)]
pub struct Db {
    engine: Arc<Engine>,
}

impl Db {
    /// Opens the database in a directory, or makes one there.
    ///
    /// # Errors
    /// `Busy` ("in use by pid N") if it is open already; `NotFound` if it does not exist and is
    /// not to be made; `Invalid` if the directory holds something else; `Unsupported` if a newer
    /// version wrote it; `Corruption`; `Io`.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let path = path.as_ref();
        let device: SharedDevice = if options.engine.create || options.engine.create_new {
            Arc::new(PosixDevice::create(path)?)
        } else {
            Arc::new(PosixDevice::open(path)?)
        };
        let log: Option<SharedDevice> = match &options.log_dir {
            None => None,
            Some(dir) => Some(Arc::new(PosixDevice::create(dir)?)),
        };
        let (clock, executor) = (SystemClock::shared(), ThreadExecutor::shared());
        Self::open_on(device, log, options, clock, &executor)
    }

    /// Opens a database on any device, with any clock and threads: for simulations.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_on(
        device: SharedDevice,
        log_device: Option<SharedDevice>,
        options: Options,
        clock: SharedClock,
        executor: &SharedExecutor,
    ) -> Result<Self> {
        let engine = Engine::open(device, log_device, options.engine, clock, executor)?;
        Ok(Self { engine: Arc::new(engine) })
    }

    /// What was recovered when the database was opened.
    #[must_use]
    pub fn recovery(&self) -> &Recovery {
        self.engine.recovery()
    }

    /// Makes an empty tree. It is durable when this returns.
    ///
    /// # Errors
    /// `Exists`; `Invalid` for a bad name or option, or an update function that is not registered.
    pub fn create_tree(&self, name: &str, options: TreeOptions) -> Result<Tree> {
        let options =
            frondb_engine::TreeOptions { trunk: options.trunk, update_fn: options.update_fn };
        let tree = self.engine.create_tree(name, options)?;
        Ok(Tree::new(Arc::clone(&self.engine), tree))
    }

    /// The tree of this name.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn open_tree(&self, name: &str) -> Result<Tree> {
        Ok(Tree::new(Arc::clone(&self.engine), self.engine.open_tree(name)?))
    }

    /// The names of all trees, sorted.
    #[must_use]
    pub fn list_trees(&self) -> Vec<String> {
        self.engine.list_trees()
    }

    /// Gives a tree another name. It is durable when this returns; handles stay good.
    ///
    /// # Errors
    /// `NotFound`, `Exists`, `Invalid`.
    pub fn rename_tree(&self, from: &str, to: &str) -> Result<()> {
        self.engine.rename_tree(from, to)
    }

    /// Removes a tree with all it holds, at once. It is durable when this returns; cursors that
    /// are open on it go on.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn drop_tree(&self, name: &str) -> Result<()> {
        self.engine.drop_tree(name)
    }

    /// How many bytes, as [`Batch::memory_bytes`] counts them, a batch may have: a quarter of the
    /// memory option, and at most 512 MiB.
    #[must_use]
    pub fn batch_bytes_max(&self) -> u64 {
        self.engine.batch_bytes_max()
    }

    /// Commits a batch: all of it or nothing.
    ///
    /// # Errors
    /// `Invalid` for what is wrong with the batch, or if it is too large; `NotFound` if a tree was dropped; `NoSpace`
    /// (nothing changed, may be repeated); `Poisoned`; `Closed`.
    pub fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        self.engine.write(&batch.inner, durability)
    }

    /// Makes everything committed so far durable.
    pub fn sync(&self) -> Result<()> {
        self.engine.sync()
    }

    /// A fixed state of the whole database to read at. While it lives, space of what it still
    /// sees is not given back.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.engine.snapshot()
    }

    /// Writes what is in memory to the trees, and waits for it.
    pub fn flush(&self) -> Result<()> {
        self.engine.flush()
    }

    /// Flushes and lets go of the log: the next open replays nothing from before.
    pub fn checkpoint(&self) -> Result<()> {
        self.engine.checkpoint()
    }

    /// Whether no background work that writers owe is due.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.engine.is_settled()
    }

    /// Waits until [`is_settled`](Self::is_settled); asks for nothing to be done.
    pub fn wait_settled(&self) -> Result<()> {
        self.engine.wait_settled()
    }

    /// Does one piece of background work if one is due; with
    /// [`background_threads(0)`](Options::background_threads) the only way it gets done outside of
    /// writes. `idle` lets in what is otherwise done only when nothing is written.
    pub fn run_one(&self, idle: bool) -> bool {
        self.engine.run_one(idle)
    }

    /// Figures of the whole database. Its `Display` is one readable page.
    #[must_use]
    pub fn stats(&self) -> EngineStats {
        self.engine.stats()
    }

    /// Flushes what would take long to replay, closes and frees the directory for another open, while
    /// handles may still be around. Later calls on any clone, and on trees
    /// and cursors, fail with `Closed`. A database that is dropped without this loses nothing; its
    /// next open replays the log.
    pub fn close(&self) -> Result<()> {
        self.engine.close()
    }

    pub(crate) fn trees(&self) -> Result<Vec<Tree>> {
        let open = |name: String| match self.open_tree(&name) {
            // Dropped since it was listed.
            Err(error) if error.kind() == frondb_core::ErrorKind::NotFound => None,
            other => Some(other),
        };
        self.list_trees().into_iter().filter_map(open).collect::<Result<_, Error>>()
    }
}
