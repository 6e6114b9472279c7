//! The servers that the plugin is built for, from mariadb/servers.toml.

use std::path::Path;

use toml::Table;

use crate::Result;
use crate::step::Cmd;
use crate::workspace::{read, read_toml, root};

const FILE: &str = "mariadb/servers.toml";
const POOL: &str = "http://deb.debian.org/debian/pool/main/m/mariadb";

/// A series of MariaDB's server.
#[derive(Debug)]
pub(super) struct Server {
    /// For example "11.8".
    pub(super) series: String,
    /// The code name of the release of Debian that has this series.
    pub(super) release: String,
    pub(super) pool: Option<Pool>,
}

/// A version whose source and packages Debian's pool has together.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) version: String,
    pub(super) source: Vec<PoolFile>,
    pub(super) packages: Vec<PoolFile>,
}

/// A file of the pool.
#[derive(Debug)]
pub(super) struct PoolFile {
    pub(super) name: String,
    sha256: String,
}

impl PoolFile {
    /// Fetches the file into a folder, unless it is there; checks its sum. `within` begins the
    /// command: nothing, or `chroot ROOT`.
    pub(super) fn fetch(&self, folder: &Path) -> Result {
        let to = folder.join(&self.name);
        // apt's own user cannot write into a folder of the caller.
        Cmd::new("/usr/lib/apt/apt-helper", "-o APT::Sandbox::User=root download-file")
            .arg(&format!("{POOL}/{}", self.name.replace('+', "%2b")))
            .arg(&to.display().to_string())
            .arg(&format!("SHA256:{}", self.sha256))
            .run()
    }
}

/// Returns the servers of mariadb/servers.toml.
pub(super) fn all() -> Result<Vec<Server>> {
    let file = read_toml(&root().join(FILE))?;
    let servers = file.get("server").and_then(|list| list.as_array());
    let servers = servers.ok_or_else(|| format!("{FILE}: has no [[server]]"))?;
    servers.iter().map(|server| server_of(server.as_table()?)).collect::<Option<_>>().ok_or_else(|| {
        format!("{FILE}: a [[server]] needs series and release, its pool a version, sources and packages")
    })
}

/// Returns the server of a series.
pub(super) fn of_series(series: &str) -> Result<Server> {
    let mut all = all()?;
    let at = all.iter().position(|server| server.series == series).ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(|server| server.series.as_str()).collect();
        format!("SERVER={series}: the plugin is built for MariaDB {}", known.join(" and "))
    })?;
    Ok(all.swap_remove(at))
}

/// Returns the code name of the release of Debian in a root.
pub(super) fn release_of(root: &Path) -> Result<String> {
    let release = read(&root.join("etc/os-release"))?;
    let codename = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    codename.map(str::to_owned).ok_or_else(|| "/etc/os-release names no release of Debian".into())
}

fn server_of(server: &Table) -> Option<Server> {
    let pool = match server.get("pool") {
        Some(pool) => Some(pool_of(pool.as_table()?)?),
        None => None,
    };
    Some(Server { series: text(server, "series")?, release: text(server, "release")?, pool })
}

fn pool_of(pool: &Table) -> Option<Pool> {
    let files = |name: &str| {
        let files = pool.get(name)?.as_table()?.iter();
        let file = |(name, sha256): (&String, &toml::Value)| {
            Some(PoolFile { name: name.clone(), sha256: sha256.as_str()?.to_owned() })
        };
        files.map(file).collect::<Option<Vec<_>>>()
    };
    Some(Pool {
        version: text(pool, "version")?,
        source: files("source")?,
        packages: files("packages")?,
    })
}

fn text(table: &Table, name: &str) -> Option<String> {
    Some(table.get(name)?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_has_a_release_and_unknown_ones_are_refused() {
        let new = of_series("11.8").unwrap();
        assert_eq!(new.release, "trixie");
        let pool = new.pool.unwrap();
        assert_eq!(pool.source.len(), 1);
        assert!(pool.packages.iter().all(|file| file.name.contains(&pool.version)));
        assert!(of_series("10.11").unwrap().pool.is_none());
        assert!(of_series("5.5").is_err_and(|message| message.contains("10.11 and 11.8")));
    }
}
