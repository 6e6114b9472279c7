//! The folder of a private server: a data directory, and a plugin directory with the server's
//! plugins and FronDB's.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Error, Result, harness};
use crate::options::INNODB_LOG;

/// The plugin directory of Debian's packages.
const PLUGINS: &str = "/usr/lib/mysql/plugin";
/// The longest path that Linux accepts for a socket, bytes.
const SOCKET_PATH_MAX: usize = 107;

#[derive(Debug, Clone)]
pub(crate) struct Place(PathBuf);

impl Place {
    /// Creates the folder with a data directory if they do not exist.
    pub(crate) fn make(folder: &Path) -> Result<Self> {
        let tmp = folder.join("tmp");
        fs::create_dir_all(&tmp).map_err(|e| harness(tmp.display(), e))?;
        let place = Self(folder.canonicalize().map_err(|e| harness(folder.display(), e))?);
        let socket = place.socket();
        if socket.as_os_str().len() > SOCKET_PATH_MAX {
            return Err(harness(socket.display(), "too long a path for a socket"));
        }
        if !place.data().join("mysql").exists() {
            place.install()?;
        }
        Ok(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path("data")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path("socket")
    }

    pub(crate) fn pid(&self) -> PathBuf {
        self.path("pid")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path("error.log")
    }

    /// The server's arguments for the paths of its files.
    pub(crate) fn arguments(&self) -> Result<Vec<String>> {
        let argument = |name: &str, path: PathBuf| format!("--{name}={}", path.display());
        Ok(vec![
            argument("datadir", self.data()),
            argument("plugin-dir", self.path("plugins")),
            argument("socket", self.socket()),
            argument("pid-file", self.pid()),
            argument("log-error", self.log()),
            // A server that starts removes the temporary tables of other servers from a shared
            // folder.
            argument("tmpdir", self.path("tmp")),
            format!("--user={}", user()?),
        ])
    }

    fn install(&self) -> Result {
        let program = "mariadb-install-db";
        let done = Command::new(program)
            .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
            .arg(INNODB_LOG)
            .arg(format!("--datadir={}", self.data().display()))
            .arg(format!("--user={}", user()?))
            // mariadb-install-db also runs a server, which must not use a shared folder either: see
            // `arguments`.
            .env("TMPDIR", self.path("tmp"))
            .stdin(Stdio::null())
            .output()
            .map_err(|e| harness(program, e))?;
        if done.status.success() {
            return Ok(());
        }
        let said = [done.stdout, done.stderr].concat();
        Err(Error::Harness(format!("{program} failed:\n{}", String::from_utf8_lossy(&said))))
    }

    /// Recreates the plugin directory, which contains links to the plugins.
    pub(crate) fn link_plugins(&self, ours: Option<&Path>) -> Result {
        let folder = self.path("plugins");
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|e| harness(folder.display(), e))?;
        }
        fs::create_dir(&folder).map_err(|e| harness(folder.display(), e))?;
        for entry in fs::read_dir(PLUGINS).map_err(|e| harness(PLUGINS, e))? {
            let path = entry.map_err(|e| harness(PLUGINS, e))?.path();
            // Skip a FronDB plugin in the server's own directory: it is not the one to test.
            if path.file_name().is_some_and(|name| name != "ha_frondb.so") {
                link(&path, &folder)?;
            }
        }
        let Some(ours) = ours else { return Ok(()) };
        link(&ours.canonicalize().map_err(|e| harness(ours.display(), e))?, &folder)
    }
}

fn link(file: &Path, folder: &Path) -> Result {
    let name = file.file_name().unwrap_or_default();
    symlink(file, folder.join(name)).map_err(|e| harness(file.display(), e))
}

/// The user of this process. The server runs as root only if an option names root.
fn user() -> Result<String> {
    let output = Command::new("id").arg("-un").output().map_err(|e| harness("id", e))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The path of the server's program.
pub(crate) fn program() -> Result<PathBuf> {
    let places = ["/usr/sbin/mariadbd", "/usr/bin/mariadbd"].map(PathBuf::from);
    places
        .into_iter()
        .find(|place| place.exists())
        .ok_or_else(|| Error::Harness("mariadbd is missing: install mariadb-server".into()))
}
