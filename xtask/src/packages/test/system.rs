//! The system in the root: apt, the server and its client. There is no systemd, so the test starts
//! the server as its unit does.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::Result;
use crate::step::Cmd;
use crate::workspace::read;

/// How long a server may take to start or to stop, in tries of a tenth of a second.
const TRIES: u32 = 600;
const LOG: &str = "/root/server.log";

/// Returns a command of apt that asks nothing.
pub(super) fn apt_get(args: &str) -> Cmd {
    let command = Cmd::new("apt-get", "--assume-yes --no-install-recommends");
    args.split_whitespace().fold(command, Cmd::arg).env("DEBIAN_FRONTEND", "noninteractive")
}

/// Makes apt take packages from a folder, too.
pub(super) fn add_archive(name: &str, folder: &Path) -> Result {
    let list = format!("deb [trusted=yes] file:{} ./\n", folder.display());
    let file = format!("/etc/apt/sources.list.d/{name}.list");
    fs::write(&file, list).map_err(|e| format!("{file}: {e}"))?;
    apt_get("update --quiet").run()
}

/// Returns the version of an installed package.
pub(super) fn version(package: &str) -> Result<String> {
    Cmd::new("dpkg-query", "-W -f ${Version}").arg(package).output()
}

/// Runs statements, and returns what they print.
pub(super) fn sql(statements: &str) -> Result<String> {
    Cmd::new("mariadb", "--batch --skip-column-names --execute").arg(statements).output()
}

/// A running server, with the option files of the packages. It ends with this value.
pub(super) struct Server(Child);

impl Server {
    pub(super) fn start() -> Result<Self> {
        Cmd::new("install", "--directory --owner=mysql --group=mysql /run/mysqld").run()?;
        let log = File::create(LOG).map_err(|e| format!("{LOG}: {e}"))?;
        let other = log.try_clone().map_err(|e| format!("{LOG}: {e}"))?;
        // The network is that of the machine, where another server may run.
        let child = Command::new("/usr/sbin/mariadbd")
            .args(["--user=mysql", "--skip-networking"])
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(other)
            .spawn()
            .map_err(|e| format!("cannot start mariadbd: {e}"))?;
        let mut server = Self(child);
        let answers = || Cmd::new("mariadb-admin", "ping").succeeds();
        if server.wait(|server| answers() || server.has_ended()) && !server.has_ended() {
            return Ok(server);
        }
        let log = read(Path::new(LOG)).unwrap_or_default();
        Err(format!("the server does not start; its log:\n{log}"))
    }

    pub(super) fn stop(mut self) -> Result {
        Cmd::new("mariadb-admin", "shutdown").run()?;
        if self.wait(Self::has_ended) { Ok(()) } else { Err("the server does not stop".to_owned()) }
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    fn wait(&mut self, done: impl Fn(&mut Self) -> bool) -> bool {
        for _ in 0..TRIES {
            if done(self) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        false
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An error means that the server has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
