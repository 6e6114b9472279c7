//! A private server for one engine, and the kernel's counters of its process.

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use frondb_bench::driver::{note, remove};
use frondb_bench::measure::disk::{Device, sync_file_system};
use frondb_bench::measure::process::Process;
use frondb_bench::measure::{DiskLimit, GroupWrites, Throttle};
use frondb_bench::{Error, Result};
use frondb_mariadb_harness::{Client, Server};

use crate::args::Args;
use crate::contender::{Contender, DATABASE};

/// The benchmark's own folder inside the folder that the user names. The benchmark deletes its
/// contents without asking.
const FOLDER: &str = "frondb-sql-bench-data";
/// A server that writes almost nothing for this time has no background work left.
const QUIET: Duration = Duration::from_secs(4);
/// Longest wait for the server to settle.
const SETTLE_MAX: Duration = Duration::from_secs(300);

/// A running server with an empty database, on a disk of the chosen speed.
pub(crate) struct Host {
    server: Server,
    contender: Contender,
    folder: PathBuf,
    /// Limits or counts the server's requests to the disk; must live as long as the server.
    throttle: Option<Throttle>,
}

impl Host {
    /// Starts a server on a fresh data directory, on a disk of the chosen speed.
    pub(crate) fn start(contender: Contender, args: &Args) -> Result<Self> {
        let mut host = Self::start_at_full_speed(contender, args)?;
        host.slow_disk_down(args)?;
        Ok(host)
    }

    /// Starts a server whose disk has its full speed until [`Host::slow_disk_down`].
    pub(crate) fn start_at_full_speed(contender: Contender, args: &Args) -> Result<Self> {
        let folder = std::path::absolute(args.common.dir.join(FOLDER).join(contender.name()))
            .map_err(Error::io("find the data directory"))?;
        let options = contender.options(args.memory_of(contender), args.plugin.as_deref())?;
        let server = Server::start_fresh(&folder, options).map_err(Error::engine)?;
        Ok(Self { server, contender, folder, throttle: None })
    }

    /// Limits the disk to the chosen speed.
    pub(crate) fn slow_disk_down(&mut self, args: &Args) -> Result<()> {
        if let Some(limit) = args.disk_limit() {
            let throttle = Throttle::create(&self.folder, limit)?;
            throttle.add(self.pid()?)?;
            self.throttle = Some(throttle);
        }
        Ok(())
    }

    /// Puts the server into a control group that counts its requests to the disk. If that fails,
    /// only the device's counters are available.
    pub(crate) fn count_writes(&mut self) -> Result<()> {
        if self.throttle.is_none() {
            match Throttle::create(&self.folder, DiskLimit::BEYOND) {
                Ok(throttle) => {
                    throttle.add(self.pid()?)?;
                    self.throttle = Some(throttle);
                }
                Err(error) => note(&format!("warning: only the device counts requests: {error}")),
            }
        }
        Ok(())
    }

    /// What the server has written to the disk since [`Host::count_writes`]; still readable after
    /// the server has stopped. None if no control group counts.
    pub(crate) fn writes(&self) -> Option<GroupWrites> {
        self.throttle.as_ref()?.writes()
    }

    /// Opens a connection that uses the database.
    pub(crate) fn connect(&self) -> Result<Client> {
        let client = self.server.connect_to(DATABASE).map_err(Error::engine)?;
        // On a slow disk an engine may delay a statement for minutes.
        client.set_reply_timeout(Duration::from_secs(3_600)).map_err(Error::engine)?;
        Ok(client)
    }

    pub(crate) fn process(&self) -> Result<Process> {
        self.pid().map(Process::of)
    }

    fn pid(&self) -> Result<u32> {
        self.server.pid().ok_or_else(|| Error::Engine("the server has ended".to_owned()))
    }

    /// Stops the server's process until [`Host::resume`].
    pub(crate) fn pause(&self) -> Result<()> {
        self.process()?.pause()
    }

    /// Continues the server's process.
    pub(crate) fn resume(&self) -> Result<()> {
        self.process()?.resume()
    }

    /// The device that holds the data, if it is a single one.
    pub(crate) fn device(&self) -> Option<Device> {
        Device::under(&self.folder)
    }

    /// The folder that holds the data.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The socket of the server.
    pub(crate) fn socket(&self) -> PathBuf {
        self.server.socket()
    }

    /// Waits until the server has written almost nothing for [`QUIET`], or until [`SETTLE_MAX`] is
    /// over. Returns the time until its last larger write.
    pub(crate) fn settle(&self) -> Result<Duration> {
        let process = self.process()?;
        let begin = Instant::now();
        let (mut last, mut since) = (process.io()?.written_bytes, begin);
        while since.elapsed() < QUIET && begin.elapsed() < SETTLE_MAX {
            sleep(Duration::from_millis(200));
            let now = process.io()?.written_bytes;
            // Every server writes a little from time to time, which is not background work.
            if now > last + (64 << 10) {
                (last, since) = (now, Instant::now());
            }
        }
        sync_file_system(&self.folder)?;
        Ok(since - begin)
    }

    /// Returns a function, for use in another thread, that returns the bytes of the engine's files
    /// on disk.
    pub(crate) fn disk_bytes(&self) -> impl Fn() -> Result<u64> + Send + use<> {
        let (contender, data) = (self.contender, self.server.data());
        move || contender.disk_bytes(&data)
    }

    /// Stops the server; returns the bytes that it leaves on disk.
    pub(crate) fn stop(mut self) -> Result<u64> {
        self.halt()
    }

    /// Stops the server like [`stop`](Self::stop), but the counters of the server's writes stay
    /// readable.
    pub(crate) fn halt(&mut self) -> Result<u64> {
        self.server.stop().map_err(Error::engine)?;
        sync_file_system(&self.folder)?;
        self.contender.disk_bytes(&self.server.data())
    }
}

/// Removes the data of all engines, and waits until the file system has freed the space.
pub(crate) fn clear(args: &Args) -> Result<()> {
    remove(&args.common.dir.join(FOLDER))
}
