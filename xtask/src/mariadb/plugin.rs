//! Builds ha_frondb.so.

use std::path::{Path, PathBuf};

use super::{folder, layout, source};
use crate::Result;
use crate::install::{apt, on_path};
use crate::programs;
use crate::step::Cmd;
use crate::workspace::{root, target_folder};

pub(super) const NAME: &str = "ha_frondb.so";
/// The plugin folder of Debian's server.
pub(super) const PLUGINS: &str = "/usr/lib/mysql/plugin";

/// `cargo xtask plugin`: builds the plugin and prints its path.
pub(crate) fn build() -> Result {
    let plugin = plugin()?;
    println!("built {}", plugin.display());
    println!("`make server` tries it. To load it into the installed server:");
    println!("  cargo xtask install-plugin, then the statement INSTALL SONAME 'ha_frondb'");
    println!("  (mariadb/README.md has the lines for an option file)");
    Ok(())
}

/// Installs the packages that the build needs, builds the plugin and returns its path.
pub(crate) fn plugin() -> Result<PathBuf> {
    let source = fetch()?;
    library()?;
    let build = folder().join("build");
    let define = |name: &str, path: &Path| format!("-D{name}={}", path.display());
    Cmd::new("cmake", "-S")
        .arg(&root().join("mariadb").display().to_string())
        .arg("-B")
        .arg(&build.display().to_string())
        .arg(&define("MARIADB_SOURCE", &source))
        .arg(&define("FRONDB_LIB_DIR", &target_folder().join("release")))
        .run()?;
    make(&build, "ha_frondb")?;
    layout::check(&build.join(NAME))?;
    // Build again: one file of the plugin includes the result of the comparison.
    make(&build, "ha_frondb")?;
    Ok(build.join(NAME))
}

/// Builds the library that the plugin links.
pub(crate) fn library() -> Result {
    if programs::are_built() {
        return Ok(());
    }
    Cmd::new("cargo", "build --release --package frondb-capi --lib --features jemalloc").run()
}

/// Builds a test that needs no server, in the plugin's build folder. Returns the path of its
/// program.
pub(super) fn test(name: &str) -> Result<PathBuf> {
    let build = folder().join("build");
    make(&build, name)?;
    Ok(build.join(name))
}

fn make(build: &Path, target: &str) -> Result {
    Cmd::new("cmake", "--build")
        .arg(&build.display().to_string())
        .arg("--parallel")
        .arg("2")
        .arg("--target")
        .arg(target)
        .run()
}

/// Installs what the build needs, and returns the folder of the server's source.
pub(super) fn fetch() -> Result<PathBuf> {
    apt("MariaDB's server", "mariadb-server mariadb-client", || {
        on_path("mariadb") && server().is_ok()
    })?;
    let headers = Path::new("/usr/include/mariadb/server/mysql_version.h");
    apt("MariaDB's headers", "libmariadbd-dev", || headers.exists())?;
    let tools = || ["cmake", "g++", "make", "perl"].iter().all(|tool| on_path(tool));
    apt("a C++ compiler or CMake", "cmake g++ make perl", tools)?;
    source::get()
}

/// Returns the path of the server's program.
pub(super) fn server() -> Result<PathBuf> {
    let places = ["/usr/sbin/mariadbd", "/usr/bin/mariadbd"].map(PathBuf::from);
    places.into_iter().find(|place| place.exists()).ok_or_else(|| "mariadbd is missing".to_owned())
}
