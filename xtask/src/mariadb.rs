//! `cargo xtask plugin`, `install-plugin`, `server`, `server-stop`, `test-mariadb`,
//! `test-mariadb-full`, `test-apps` and `mtr`: ENGINE=FronDB for the MariaDB server of Debian.
//!
//! | module | role | files, below target/mariadb |
//! |---|---|---|
//! | `source` | headers that no package has, from the server's source package | `source` |
//! | `layout` | compares the headers with the server's debug information | `layout` |
//! | `plugin` | links libfrondb_capi.a and mariadb/ | `build/ha_frondb.so` |
//! | `install` | installs the plugin, without debug symbols | the server's plugin_dir |
//! | `server` | a private mariadbd with the plugin loaded | `var/` of the checkout |
//! | `mtr` | the server's own test suites, in a private tree | `mtr` |
//! | `test` | all tests that need a server | |
//! | `apps` | schemas of Debian's applications, compared with InnoDB | `apps` |
//! | `servers` | the series of servers, from mariadb/servers.toml | |
//! | `root` | another release of Debian, for a server that this machine's release lacks | `../mariadb-11.8` |
//! | `apt` | fetches packages of Debian, with package lists of its own | `apt` |

mod apps;
mod apt;
mod install;
mod layout;
mod mtr;
mod plugin;
mod root;
mod server;
mod servers;
mod source;
mod test;

pub(crate) use apps::run as test_apps;
pub(crate) use install::run as install_plugin;
pub(crate) use mtr::{check_differences, command as mtr};
pub(crate) use plugin::{build, library, plugin};
pub(crate) use root::with_server;
pub(crate) use server::{start, stop};
pub(crate) use test::{
    build as build_tests, fetch, full as test_full, jobs as test_jobs, run as test,
};

use std::path::PathBuf;

use crate::workspace::target_folder;

/// The variable that is set inside a root: the series of its server.
const INSIDE: &str = "FRONDB_SERVER_ROOT";

/// Returns the folder in which these commands build.
fn folder() -> PathBuf {
    match std::env::var(INSIDE) {
        Ok(series) => folder_of(&series),
        Err(_) => target_folder().join("mariadb"),
    }
}

/// Returns the folder for a server in a root.
fn folder_of(series: &str) -> PathBuf {
    target_folder().join(format!("mariadb-{series}"))
}
