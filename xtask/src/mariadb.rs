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
//! | `apt` | fetches packages of Debian, with package lists of its own | `apt` |

mod apps;
mod apt;
mod install;
mod layout;
mod mtr;
mod plugin;
mod server;
mod source;
mod test;

pub(crate) use apps::run as test_apps;
pub(crate) use install::run as install_plugin;
pub(crate) use mtr::{check_differences, command as mtr};
pub(crate) use plugin::{build, plugin};
pub(crate) use server::{start, stop};
pub(crate) use test::{fetch, full as test_full, jobs as test_jobs, run as test};

use std::path::PathBuf;

use crate::workspace::target_folder;

/// Returns the folder in which these commands build.
fn folder() -> PathBuf {
    target_folder().join("mariadb")
}
