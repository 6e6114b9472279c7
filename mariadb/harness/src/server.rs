//! A private server that can be started, killed, stopped and restarted on the same data.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::error::{Error, Result, harness};
use crate::options::Options;
use crate::place::{Place, program};

/// Longest time of a start or a stop. A start includes recovery after a kill.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Interval of the checks whether the server runs.
const POLL: Duration = Duration::from_millis(20);
/// Lines of the server's log that an error shows.
const LOG_LINES: usize = 12;

/// A private server. Dropping it kills the server.
#[derive(Debug)]
pub struct Server {
    place: Place,
    options: Options,
    running: Option<Child>,
}

impl Server {
    /// Creates the folder of a server, and an empty data directory if the folder has none. Does not
    /// start the server.
    pub fn create(folder: &Path, options: Options) -> Result<Self> {
        Ok(Self { place: Place::make(folder)?, options, running: None })
    }

    /// Empties the folder, and then calls [`Server::create`] and [`Server::start`].
    pub fn start_fresh(folder: &Path, options: Options) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(|e| harness(folder.display(), e))?;
        }
        let mut server = Self::create(folder, options)?;
        server.start()?;
        Ok(server)
    }

    /// Starts the server and waits until it answers. If the start fails, the error shows the end of
    /// the server's log.
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
        while begin.elapsed() < TIMEOUT {
            if self.connect().is_ok() {
                return Ok(());
            }
            if self.has_ended()? {
                self.running = None;
                return Err(self.failed("the server ended when it was started"));
            }
            std::thread::sleep(POLL);
        }
        Err(self.failed("the server does not answer"))
    }

    /// Stops the server and starts it with other options.
    pub fn restart_with(&mut self, options: Options) -> Result {
        self.stop()?;
        self.options = options;
        self.start()
    }

    /// Stops the server and starts it again.
    pub fn restart(&mut self) -> Result {
        self.stop()?;
        self.start()
    }

    /// Shuts the server down and waits for its end.
    ///
    /// # Errors
    /// `Harness` if a codec of FronDB has written a block that cannot be decoded; `Late` or a lost
    /// connection if the shutdown fails.
    pub fn stop(&mut self) -> Result {
        if self.running.is_none() {
            return Ok(());
        }
        let mut client = self.connect()?;
        let miscoded = miscoded_blocks(&mut client)?;
        client.query("SHUTDOWN")?;
        self.wait_for_end()?;
        if miscoded > 0 {
            let what = format!("codecs have miswritten {miscoded} blocks (Frondb_miscoded_blocks)");
            return Err(Error::Harness(what));
        }
        Ok(())
    }

    /// Kills the server with SIGKILL. Data that it had not written is lost.
    pub fn kill(&mut self) -> Result {
        let Some(mut child) = self.running.take() else { return Ok(()) };
        child.kill().map_err(|e| harness("kill", e))?;
        child.wait().map_err(|e| harness("wait", e))?;
        Ok(())
    }

    /// Waits until the server ends by itself, after SHUTDOWN or after a crash that a test causes.
    pub fn wait_for_end(&mut self) -> Result {
        let begin = Instant::now();
        while begin.elapsed() < TIMEOUT {
            if self.has_ended()? {
                self.running = None;
                return Ok(());
            }
            std::thread::sleep(POLL);
        }
        Err(self.failed("the server does not end in time"))
    }

    /// Whether the server's process has ended; false if there is no process to wait for.
    fn has_ended(&mut self) -> Result<bool> {
        let Some(child) = &mut self.running else { return Ok(false) };
        Ok(child.try_wait().map_err(|e| harness("wait", e))?.is_some())
    }

    /// Opens a connection of root.
    pub fn connect(&self) -> Result<Client> {
        Client::connect(&self.place.socket())
    }

    /// Opens a connection of root that uses this database; creates the database if it does not
    /// exist.
    pub fn connect_to(&self, database: &str) -> Result<Client> {
        let mut client = self.connect()?;
        client.run([
            format!("CREATE DATABASE IF NOT EXISTS {database}"),
            format!("USE {database}"),
        ])?;
        Ok(client)
    }

    /// The id of the server's process; none if the server does not run.
    pub fn pid(&self) -> Option<u32> {
        self.running.as_ref().map(Child::id)
    }

    /// The server's data directory.
    pub fn data(&self) -> PathBuf {
        self.place.data()
    }

    /// The path of the server's socket.
    pub fn socket(&self) -> PathBuf {
        self.place.socket()
    }

    /// The server's log, with all its runs.
    pub fn log(&self) -> Result<String> {
        let bytes = fs::read(self.place.log()).map_err(|e| harness("error.log", e))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Drops this handle but leaves the process running, as a server for people.
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
        // A caller that drops the server cannot handle an error.
        let _ = self.kill();
    }
}

/// Number of blocks that did not decode to what was written; 0 for a server without FronDB.
fn miscoded_blocks(client: &mut Client) -> Result<u64> {
    client.number(
        "SELECT IFNULL(SUM(variable_value), 0) + 0 FROM information_schema.global_status \
         WHERE variable_name = 'Frondb_miscoded_blocks'",
    )
}

/// Returns a port of the local host on which no program listens.
pub fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|e| harness("a free port", e))?;
    Ok(listener.local_addr().map_err(|e| harness("a free port", e))?.port())
}
