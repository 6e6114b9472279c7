//! `cargo xtask plugin`, `server` and `server-stop`: ENGINE=FronDB for the MariaDB server of Debian.
//!
//! ```text
//!   source    headers that no package has, from the server's source package  target/mariadb/source
//!   plugin    libfrondb_capi.a and mariadb/, together                        target/mariadb/build/ha_frondb.so
//!   server    a private mariadbd with the plugin loaded                      var/
//! ```

mod plugin;
mod server;
mod source;

pub(crate) use plugin::{build, plugin};
pub(crate) use server::{start, stop};

use std::path::PathBuf;

use crate::workspace::target_folder;

/// Where everything of these commands is built.
fn folder() -> PathBuf {
    target_folder().join("mariadb")
}
