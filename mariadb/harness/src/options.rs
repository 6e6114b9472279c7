//! The options of a private server.

use std::path::PathBuf;

/// A storage engine of the server, with the properties that tests and benchmarks need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// FronDB.
    FronDb,
    /// InnoDB.
    InnoDb,
    /// MyRocks, from the package `mariadb-plugin-rocksdb`.
    MyRocks,
}

impl Engine {
    /// The engine's name in `ENGINE=`.
    pub fn name(self) -> &'static str {
        match self {
            Self::FronDb => "FronDB",
            Self::InnoDb => "InnoDB",
            Self::MyRocks => "ROCKSDB",
        }
    }

    /// Settings that give the engine `bytes` bytes of memory for data.
    pub fn memory(self, bytes: u64) -> Vec<String> {
        match self {
            Self::FronDb => vec![format!("frondb-memory={bytes}")],
            Self::InnoDb => vec![format!("innodb-buffer-pool-size={bytes}")],
            Self::MyRocks => vec![format!("rocksdb-block-cache-size={bytes}")],
        }
    }
}

/// Reduces InnoDB's log from its default of 96 MB, since the tests have about fifty data
/// directories.
pub(crate) const INNODB_LOG: &str = "--innodb-log-file-size=8M";

/// Verifies the blocks of all codecs. `loose`, because plugins of earlier versions lack the option.
const VERIFY_FAST_CODECS: &str = "loose-frondb-verify-fast-codecs=ON";

/// The options with which a server starts.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub(crate) defaults: Option<PathBuf>,
    pub(crate) plugin: Option<PathBuf>,
    pub(crate) loads: Vec<String>,
    pub(crate) settings: Vec<String>,
    pub(crate) port: Option<u16>,
    pub(crate) environment: Vec<(String, String)>,
}

impl Options {
    /// Options of a server without the plugin.
    pub fn new() -> Self {
        Self::default()
    }

    /// Loads the ha_frondb.so with this path.
    pub fn plugin(mut self, path: impl Into<PathBuf>) -> Self {
        self.plugin = Some(path.into());
        self.load("ha_frondb.so")
    }

    /// Loads the plugin whose path is in `FRONDB_PLUGIN`, which `make test-mariadb` sets. That
    /// plugin is a release build, which by default does not verify the output of fast codecs. This
    /// method turns that verification on, and [`Server::stop`](crate::Server::stop) fails if a
    /// codec has written a wrong block.
    ///
    /// # Panics
    /// If the variable is not set. `make test-mariadb` sets it.
    #[allow(clippy::expect_used, reason = "for tests, which cannot go on without")]
    pub fn plugin_from_environment(self) -> Self {
        let path = std::env::var_os("FRONDB_PLUGIN");
        self.plugin(path.expect("FRONDB_PLUGIN does not name ha_frondb.so; run make test-mariadb"))
            .set(VERIFY_FAST_CODECS)
    }

    /// Puts the ha_frondb.so with this path into the server's plugin directory. An option file or a
    /// statement must load it.
    pub fn plugin_in_folder(mut self, path: impl Into<PathBuf>) -> Self {
        self.plugin = Some(path.into());
        self
    }

    /// Makes the server read this option file, and keep its own defaults for everything else.
    /// Without this method the server reads no option file and has a small InnoDB log.
    pub fn defaults_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.defaults = Some(path.into());
        self
    }

    /// Also loads another plugin, from the server's own plugin directory.
    pub fn load(mut self, file: &str) -> Self {
        self.loads.push(file.to_owned());
        self
    }

    /// Adds a setting in the form of option files: `frondb-memory=64M`, `skip-log-bin`.
    pub fn set(mut self, setting: impl Into<String>) -> Self {
        self.settings.push(setting.into());
        self
    }

    /// Adds several settings, each as for [`Options::set`].
    pub fn set_all<S: Into<String>>(mut self, settings: impl IntoIterator<Item = S>) -> Self {
        self.settings.extend(settings.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable of the server's process.
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Makes the server also listen on this port of the local host, which replication needs.
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// The argument that names the option file; must be the server's first argument.
    pub(crate) fn defaults_argument(&self) -> String {
        match &self.defaults {
            Some(path) => format!("--defaults-file={}", path.display()),
            None => "--no-defaults".to_owned(),
        }
    }

    /// The arguments that do not depend on the server's folder.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut all = Vec::new();
        if self.defaults.is_none() {
            all.push(INNODB_LOG.to_owned());
        }
        match self.port {
            None => all.push("--skip-networking".to_owned()),
            Some(port) => all.extend([format!("--port={port}"), "--bind-address=127.0.0.1".into()]),
        }
        // MyRocks' folder is not a database. FronDB excludes its own folder by itself.
        all.push("--ignore-db-dirs=#rocksdb".to_owned());
        all.extend(self.loads.iter().map(|file| format!("--plugin-load-add={file}")));
        all.extend(self.settings.iter().map(|setting| format!("--{setting}")));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_follow_the_plugins_they_belong_to() {
        let options = Options::new().plugin("/x/ha_frondb.so").set_all(Engine::FronDb.memory(64));
        let arguments = options.arguments();
        let at = |wanted: &str| arguments.iter().position(|argument| argument == wanted).unwrap();
        assert!(at("--plugin-load-add=ha_frondb.so") < at("--frondb-memory=64"));
        assert!(arguments.contains(&"--skip-networking".to_owned()));
        let arguments = options.port(3307).arguments();
        assert!(!arguments.contains(&"--skip-networking".to_owned()));
        assert!(arguments.contains(&"--port=3307".to_owned()));
    }
}
