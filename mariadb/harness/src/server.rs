//! A private server that is started, killed, stopped and started again on the same data.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::error::{Error, Result, harness};
use crate::options::Options;
use crate::place::{Place, program};

/// Longest time of a start or a stop; a start includes recovery after a kill.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Time between two checks whether it runs.
const POLL: Duration = Duration::from_millis(20);
/// Lines of the server's log in an error.
const LOG_LINES: usize = 12;

/// A private server. Dropping this kills it.
#[derive(Debug)]
pub struct Server {
    place: Place,
    options: Options,
    running: Option<Child>,
}

impl Server {
    /// Creates the folder of a server, with an empty data directory unless there is one. Does not
    /// start it.
    pub fn create(folder: &Path, options: Options) -> Result<Self> {
        Ok(Self { place: Place::make(folder)?, options, running: None })
    }

    /// [`Server::create`] and [`Server::start`] in an emptied folder.
    pub fn start_fresh(folder: &Path, options: Options) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(|e| harness(folder.display(), e))?;
        }
        let mut server = Self::create(folder, options)?;
        server.start()?;
        Ok(server)
    }

    /// Starts the server and waits until it answers; an error shows the end of its log.
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

    /// Starts the server with other options, after a stop.
    pub fn restart_with(&mut self, options: Options) -> Result {
        self.stop()?;
        self.options = options;
        self.start()
    }

    /// Shuts the server down and starts it again.
    pub fn restart(&mut self) -> Result {
        self.stop()?;
        self.start()
    }

    /// Shuts the server down.
    ///
    /// # Errors
    /// Also if a codec of FronDB has written a block that does not decode again.
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

    /// kill -9, now. Data that the server had not written is lost.
    pub fn kill(&mut self) -> Result {
        let Some(mut child) = self.running.take() else { return Ok(()) };
        child.kill().map_err(|e| harness("kill", e))?;
        child.wait().map_err(|e| harness("wait", e))?;
        Ok(())
    }

    /// Waits until the server has ended by itself, after SHUTDOWN or a crash that a test causes.
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

    /// Whether the server has ended; false for one that was never started.
    fn has_ended(&mut self) -> Result<bool> {
        let Some(child) = &mut self.running else { return Ok(false) };
        Ok(child.try_wait().map_err(|e| harness("wait", e))?.is_some())
    }

    /// A new connection of root.
    pub fn connect(&self) -> Result<Client> {
        Client::connect(&self.place.socket())
    }

    /// A new connection of root that uses this database, which is created if it does not exist.
    pub fn connect_to(&self, database: &str) -> Result<Client> {
        let mut client = self.connect()?;
        client.run([
            format!("CREATE DATABASE IF NOT EXISTS {database}"),
            format!("USE {database}"),
        ])?;
        Ok(client)
    }

    /// The id of its process; none if it does not run.
    pub fn pid(&self) -> Option<u32> {
        self.running.as_ref().map(Child::id)
    }

    /// Its data directory.
    pub fn data(&self) -> PathBuf {
        self.place.data()
    }

    /// The path of its socket.
    pub fn socket(&self) -> PathBuf {
        self.place.socket()
    }

    /// The server's log, of all its runs.
    pub fn log(&self) -> Result<String> {
        let bytes = fs::read(self.place.log()).map_err(|e| harness("error.log", e))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Leaves the process running when this is dropped: for a server that people use.
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
        // The caller that drops it has no use for an error.
        let _ = self.kill();
    }
}

/// Blocks that did not decode as they were written; 0 for a server without FronDB.
fn miscoded_blocks(client: &mut Client) -> Result<u64> {
    client.number(
        "SELECT IFNULL(SUM(variable_value), 0) + 0 FROM information_schema.global_status \
         WHERE variable_name = 'Frondb_miscoded_blocks'",
    )
}

/// A port of the local host on which no program listens.
pub fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|e| harness("a free port", e))?;
    Ok(listener.local_addr().map_err(|e| harness("a free port", e))?.port())
}
