//! A private server: started, killed, stopped and started again on the same data.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::error::{Error, Result, harness};
use crate::options::Options;
use crate::place::{Place, program};

/// How long a start or a stop may take; recovery after a kill is part of a start.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks at whether it is there.
const LOOK: Duration = Duration::from_millis(20);
/// Lines of the log that an error shows.
const LOG_LINES: usize = 12;

/// A private server. It is killed when this is dropped.
#[derive(Debug)]
pub struct Server {
    place: Place,
    options: Options,
    running: Option<Child>,
}

impl Server {
    /// Makes the folder of a server, with an empty data directory unless there is one. Not started.
    pub fn create(folder: &Path, options: Options) -> Result<Self> {
        Ok(Self { place: Place::make(folder)?, options, running: None })
    }

    /// [`Server::create`] and [`Server::start`], in an empty folder: what was in it goes.
    pub fn start_fresh(folder: &Path, options: Options) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(|e| harness(folder.display(), e))?;
        }
        let mut server = Self::create(folder, options)?;
        server.start()?;
        Ok(server)
    }

    /// Starts it and waits until it answers; an error shows the end of its log.
    pub fn start(&mut self) -> Result {
        if self.running.is_some() {
            return Ok(());
        }
        self.place.link_plugins(self.options.plugin.as_deref())?;
        let program = program()?;
        let child = Command::new(&program)
            .arg(self.options.defaults_argument())
            .args(self.place.arguments()?)
            .args(self.options.arguments())
            .envs(self.options.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| harness(program.display(), e))?;
        self.running = Some(child);
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            if self.connect().is_ok() {
                return Ok(());
            }
            if self.has_ended()? {
                self.running = None;
                return Err(self.failed("the server ended when it was started"));
            }
            std::thread::sleep(LOOK);
        }
        Err(self.failed("the server does not answer"))
    }

    /// Starts it anew with other options, after a stop.
    pub fn restart_with(&mut self, options: Options) -> Result {
        self.stop()?;
        self.options = options;
        self.start()
    }

    /// Stops it in order and starts it again.
    pub fn restart(&mut self) -> Result {
        self.stop()?;
        self.start()
    }

    /// Stops it in order.
    pub fn stop(&mut self) -> Result {
        if self.running.is_none() {
            return Ok(());
        }
        self.connect()?.query("SHUTDOWN")?;
        self.wait_for_end()
    }

    /// kill -9, now. What the server had not written is gone.
    pub fn kill(&mut self) -> Result {
        let Some(mut child) = self.running.take() else { return Ok(()) };
        child.kill().map_err(|e| harness("kill", e))?;
        child.wait().map_err(|e| harness("wait", e))?;
        Ok(())
    }

    /// Waits until it has ended by itself, after SHUTDOWN or a crash that a test provokes.
    pub fn wait_for_end(&mut self) -> Result {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            if self.has_ended()? {
                self.running = None;
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
        Err(self.failed("the server does not end"))
    }

    /// Whether it has ended; false for one that was never started.
    fn has_ended(&mut self) -> Result<bool> {
        let Some(child) = &mut self.running else { return Ok(false) };
        Ok(child.try_wait().map_err(|e| harness("wait", e))?.is_some())
    }

    /// A new connection of root.
    pub fn connect(&self) -> Result<Client> {
        Client::connect(&self.place.socket())
    }

    /// A new connection of root that uses this database; made if it is not there.
    pub fn connect_to(&self, database: &str) -> Result<Client> {
        let mut client = self.connect()?;
        client.run([
            format!("CREATE DATABASE IF NOT EXISTS {database}"),
            format!("USE {database}"),
        ])?;
        Ok(client)
    }

    /// Its process.
    pub fn pid(&self) -> Option<u32> {
        self.running.as_ref().map(Child::id)
    }

    /// Its data directory.
    pub fn data(&self) -> PathBuf {
        self.place.data()
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.place.socket()
    }

    /// What it has written into its log, in all its runs.
    pub fn log(&self) -> Result<String> {
        let bytes = fs::read(self.place.log()).map_err(|e| harness("error.log", e))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Lets the process go on when this is dropped: for a server that people use.
    pub fn detach(mut self) {
        self.running = None;
    }

    fn failed(&self, what: &str) -> Error {
        let log = self.log().unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
        Error::Late(format!("{what}; the end of {}:\n{last}", self.place.log().display()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Whoever drops it has no use for the error any more.
        let _ = self.kill();
    }
}

/// A port of the local host that nobody listens on.
pub fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|e| harness("a free port", e))?;
    Ok(listener.local_addr().map_err(|e| harness("a free port", e))?.port())
}
