//! Opening a database: locks the directory, recovers, plans the work that is due, starts workers.

use frondb_background::{plan_all, stow, worker};
use frondb_core::Result;
use frondb_core::clock::SharedClock;
use frondb_core::executor::{Priority, SharedExecutor};
use frondb_core::sync::atomic::AtomicBool;
use frondb_core::sync::{Arc, Mutex};
use frondb_device::{CopyOnWriteDevice, DeviceLock, SharedDevice};

use super::Open;
use crate::open::damage::Damage;
use crate::open::layout::LOCK_FILE;
use crate::open::parts::Parts;
use crate::open::recovery::{self, Recovered};
use crate::options::Options;
use crate::readers::Readers;

impl Open {
    /// Opens the database in `device`, or creates one if the options allow it. The log is in
    /// `log_device`, or without one in the directory `wal` of `device`.
    ///
    /// # Errors
    /// `Busy` if another process, or this one, has the database open; `NotFound` or `Exists` as the
    /// options require; `Invalid` for bad options, a directory with other files, or a log of
    /// another database; `Unsupported` if a newer version of FronDB wrote the database;
    /// `Corruption`; `Io`. With invalid options, or in a directory that holds other files, the call
    /// creates nothing.
    ///
    /// # Read-only
    /// With [`Options::read_only`] the files on the devices never change: the writes of
    /// recovery go to memory and a temporary file ([`CopyOnWriteDevice`]). The open shares the
    /// directory's lock with other readers, and takes no lock where the lock file does not exist.
    /// There are no workers, and every call that would write fails with `Invalid`.
    pub(crate) fn on(
        device: SharedDevice,
        log_device: Option<SharedDevice>,
        options: Options,
        clock: SharedClock,
        executor: &SharedExecutor,
    ) -> Result<Self> {
        Self::open_with(device, log_device, options, clock, executor, None)
    }

    /// Opens the readable part of a damaged database, read-only, and reports the damage. The call
    /// repairs a single byte or bit of a record of the manifest or the log if a 64-bit checksum
    /// proves the repair; otherwise it cuts the manifest or the log at the record. Missing parts of
    /// data files read as zeros, which match no checksum. The files on the devices do not change.
    ///
    /// # Errors
    /// As [`on`](Self::on); `Corruption` only if nothing of the database can be read.
    pub(crate) fn salvage(
        device: SharedDevice,
        log_device: Option<SharedDevice>,
        options: Options,
        clock: SharedClock,
        executor: &SharedExecutor,
    ) -> Result<(Self, Damage)> {
        let mut damage = Damage::default();
        let options = Options { read_only: true, ..options };
        let open =
            Self::open_with(device, log_device, options, clock, executor, Some(&mut damage))?;
        Ok((open, damage))
    }

    fn open_with(
        device: SharedDevice,
        log_device: Option<SharedDevice>,
        options: Options,
        clock: SharedClock,
        executor: &SharedExecutor,
        mut damage: Option<&mut Damage>,
    ) -> Result<Self> {
        options.check()?;
        let (device, log_device, options) = if options.read_only {
            let over = |below| Arc::new(CopyOnWriteDevice::new(below)) as SharedDevice;
            let options =
                Options { create: false, create_new: false, background_threads: 0, ..options };
            (over(device), log_device.map(over), options)
        } else {
            (device, log_device, options)
        };
        let lock = match &mut damage {
            // Lock first: while another process writes a database, its files look damaged.
            Some(damage) => {
                let lock = device.lock(LOCK_FILE)?;
                damage.add(frondb_manifest::salvage(&device)?);
                lock
            }
            // Check first: locking creates a file, but a directory that may not become a database
            // must not change.
            None => {
                if !recovery::exists(&device, &options)? {
                    recovery::check_new_log(&device, log_device.as_ref())?;
                }
                device.lock(LOCK_FILE)?
            }
        };
        let recovered =
            recovery::open(Arc::clone(&device), log_device, options.clone(), clock, damage)?;
        Self::start(recovered, lock, device, options, executor)
    }

    /// Plans the work of the recovered trees, takes the locks of prepared transactions and starts
    /// the workers.
    fn start(
        recovered: Recovered,
        lock: DeviceLock,
        device: SharedDevice,
        options: Options,
        executor: &SharedExecutor,
    ) -> Result<Self> {
        let Recovered { parts, recovery, memory, log_device, lock: log_lock } = recovered;
        let readers = Readers::new(Arc::clone(&parts.reads), SharedExecutor::clone(executor));
        let open = Self {
            parts,
            memory,
            options,
            device,
            log_device,
            workers: Mutex::default(),
            readers,
            recovery,
            locks: Mutex::new(vec![log_lock, lock]),
            is_backing_up: AtomicBool::new(false),
            closed: Mutex::new(Ok(())),
        };
        let Parts { background, jobs, trees, txns, .. } = &open.parts;
        for tree in trees.all().into_iter().filter(|tree| !tree.is_stowed()) {
            plan_all(jobs, &background.queue, &tree);
            if tree.has_frozen() {
                background.queue.add_flush(&tree);
            }
            // Stow the trees that recovery has flushed.
            stow(jobs, &tree);
        }
        frondb_txn::lock_again(txns)?;
        for i in 0..open.options.background_threads {
            let background = Arc::clone(background);
            let task = Box::new(move || worker(&background));
            let handle = executor.spawn(&format!("frondb-{i}"), Priority::Background, task)?;
            open.workers.lock().push(handle);
        }
        background.freeze_if_full();
        background.mark_recovered();
        Ok(open)
    }

    /// Returns whether `device` has a database. If it returns `false`, [`on`](Self::on) with these
    /// options would create one, unless they are read-only. Changes nothing.
    ///
    /// # Errors
    /// The errors of `on` that can be found without opening.
    pub(crate) fn is_there(device: &SharedDevice, options: &Options) -> Result<bool> {
        options.check()?;
        recovery::exists(device, options)
    }
}
