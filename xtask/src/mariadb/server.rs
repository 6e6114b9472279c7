//! A private server with the plugin loaded: a data directory below `var/`, a socket, no port.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::plugin;
use crate::Result;
use crate::step::Cmd;
use crate::workspace::{read, root};

/// How long a server may take to start, recovery included, or to stop, in tries of a tenth of a
/// second.
const TRIES: u32 = 600;

/// `cargo xtask server`: builds the plugin, starts the server unless it runs, and opens a client.
pub(crate) fn start() -> Result {
    let plugin = plugin::plugin()?;
    let place = Place::new()?;
    if place.answers() {
        println!("the server runs already; `make server-stop` stops it");
    } else {
        place.prepare(&plugin)?;
        place.launch()?;
    }
    println!("socket {}, log {}", place.socket().display(), place.path("error.log").display());
    // The client replaces this process and takes over the terminal.
    let error = place.client("mariadb").exec();
    Err(format!("cannot start the client mariadb: {error}"))
}

/// `cargo xtask server-stop`: shuts the server down if it runs.
pub(crate) fn stop() -> Result {
    let place = Place::new()?;
    if !place.answers() {
        println!("no server runs in {}", place.0.display());
        return Ok(());
    }
    let stopped = place.client("mariadb-admin").arg("shutdown").status();
    if !stopped.is_ok_and(|status| status.success()) {
        return Err("the server does not stop; see var/error.log".to_owned());
    }
    place.wait(|| !place.path("pid").exists(), "stop")?;
    println!("stopped");
    Ok(())
}

/// The folder of the server's files.
struct Place(PathBuf);

impl Place {
    fn new() -> Result<Self> {
        let place = Self(root().join("var"));
        fs::create_dir_all(&place.0).map_err(|e| format!("{}: {e}", place.0.display()))?;
        Ok(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn socket(&self) -> PathBuf {
        self.path("socket")
    }

    fn client(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .arg("--no-defaults")
            .arg("--user=root")
            .arg(format!("--socket={}", self.socket().display()));
        command
    }

    fn answers(&self) -> bool {
        let mut ping = self.client("mariadb-admin");
        ping.arg("ping").stdout(Stdio::null()).stderr(Stdio::null());
        ping.status().is_ok_and(|status| status.success())
    }

    /// Creates the data directory, and a folder with the server's plugins and ours.
    fn prepare(&self, plugin: &Path) -> Result {
        let tmp = self.path("tmp");
        fs::create_dir_all(&tmp).map_err(|e| format!("{}: {e}", tmp.display()))?;
        let data = self.path("data");
        if !data.join("mysql").exists() {
            Cmd::new(
                "mariadb-install-db",
                "--no-defaults --auth-root-authentication-method=normal",
            )
            .arg(&format!("--datadir={}", data.display()))
            .arg(&format!("--user={}", user()?))
            // mariadb-install-db also runs a server, which needs its own folder for temporary
            // files: see `launch`.
            .env("TMPDIR", &tmp.display().to_string())
            .run()?;
        }
        let plugins = self.path("plugins");
        let _ = fs::remove_dir_all(&plugins);
        fs::create_dir_all(&plugins).map_err(|e| format!("{}: {e}", plugins.display()))?;
        let link = |from: &Path| {
            let name = from.file_name().unwrap_or_default();
            symlink(from, plugins.join(name)).map_err(|e| format!("{}: {e}", from.display()))
        };
        for entry in fs::read_dir(plugin::PLUGINS).into_iter().flatten().flatten() {
            link(&entry.path())?;
        }
        link(plugin)
    }

    fn launch(&self) -> Result {
        let log = self.path("error.log");
        let argument = |name: &str, path: PathBuf| format!("--{name}={}", path.display());
        Command::new(plugin::server()?)
            .args(["--no-defaults", "--skip-networking"])
            .arg("--plugin-load-add=ha_frondb.so")
            .arg(format!("--user={}", user()?))
            .arg(argument("datadir", self.path("data")))
            .arg(argument("plugin-dir", self.path("plugins")))
            .arg(argument("socket", self.socket()))
            // If servers share this folder, a starting server removes the temporary tables of the
            // others.
            .arg(argument("tmpdir", self.path("tmp")))
            .arg(argument("pid-file", self.path("pid")))
            .arg(argument("log-error", log.clone()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|e| format!("cannot start the server: {e}"))?;
        self.wait(|| self.answers(), "start").map_err(|error| {
            let text = read(&log).unwrap_or_default();
            let last: Vec<&str> = text.lines().rev().take(5).collect();
            format!(
                "{error}; the end of its log:\n{}",
                last.into_iter().rev().collect::<Vec<_>>().join("\n")
            )
        })
    }

    fn wait(&self, done: impl Fn() -> bool, what: &str) -> Result {
        for _ in 0..TRIES {
            if done() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err(format!("the server did not {what} within a minute"))
    }
}

/// Returns the user of this process; a server that runs as root must be given its user explicitly.
fn user() -> Result<String> {
    Cmd::new("id", "-un").output()
}
