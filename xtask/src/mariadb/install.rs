//! `cargo xtask install-plugin` installs ha_frondb.so where the installed server looks for plugins.
//! It also installs the programs that belong to the plugin.
//!
//! ```text
//!   PLUGIN_DIR/ha_frondb.so                  without debug symbols
//!   PLUGIN_DIR/.debug/ha_frondb.so.debug     the debug symbols
//!   BIN_DIR/frondb                           verifies and restores backups
//!   BIN_DIR/frondb-convert                   changes the engine of tables
//!   BIN_DIR/.debug/                          their debug symbols
//! ```
//! PLUGIN_DIR is `plugin_dir` of the server, by default the folder of Debian's server. BIN_DIR is
//! `/usr/local/bin` by default. DESTDIR, for packages, is put before all paths. FROM names a plugin
//! that is already built. With FROM, the command installs the programs only if PROGRAMS names the
//! folder in which they were built.

use std::fs;
use std::path::{Path, PathBuf};

use super::plugin::{NAME, PLUGINS, plugin};
use crate::step::Cmd;
use crate::workspace::target_folder;
use crate::{Result, stripped, variables};

/// Each program and its package.
const PROGRAMS: [(&str, &str); 2] =
    [("frondb", "frondb-cli"), ("frondb-convert", "frondb-convert")];
/// The usual folder of programs installed without a package.
const BIN: &str = "/usr/local/bin";

pub(crate) fn run(args: &[String]) -> Result {
    let variables = variables(args, &["PLUGIN_DIR", "BIN_DIR", "DESTDIR", "FROM", "PROGRAMS"])?;
    let get = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, v)| *v);
    let folder = |name: &str, usual| folder(name, get(name).unwrap_or(usual), get("DESTDIR"));
    let (plugins, bin) = (folder("PLUGIN_DIR", PLUGINS)?, folder("BIN_DIR", BIN)?);
    let from = get("FROM").map_or_else(plugin, |from| Ok(PathBuf::from(from)))?;
    install(&from, &plugins, NAME)?;
    let programs = match (get("PROGRAMS"), get("FROM")) {
        (Some(folder), _) => PathBuf::from(folder),
        (None, Some(_)) => return Ok(()),
        (None, None) => build_programs()?,
    };
    PROGRAMS.iter().try_for_each(|(name, _)| install(&programs.join(name), &bin, name))
}

/// Returns the folder that a variable names, below DESTDIR if that is given.
fn folder(variable: &str, value: &str, dest_dir: Option<&str>) -> Result<PathBuf> {
    let folder = Path::new(value);
    let Ok(below) = folder.strip_prefix("/") else {
        return Err(format!("{variable}={value} is not absolute"));
    };
    Ok(dest_dir.map_or_else(|| folder.to_owned(), |dest_dir| Path::new(dest_dir).join(below)))
}

fn install(from: &Path, folder: &Path, name: &str) -> Result {
    fs::create_dir_all(folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    stripped::shared(from, &folder.join(name))?;
    println!("installed {name} in {}", folder.display());
    Ok(())
}

/// Builds the programs and returns their folder.
fn build_programs() -> Result<PathBuf> {
    let build = Cmd::new("cargo", "build --release --bins");
    PROGRAMS.iter().fold(build, |build, (_, package)| build.arg("--package").arg(package)).run()?;
    Ok(target_folder().join("release"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stripped::tests::{build, has_section};

    #[test]
    fn the_plugin_is_installed_without_symbols() {
        let folder = crate::workspace::target_folder().join("install-plugin-test");
        let _ = fs::remove_dir_all(&folder);
        build(&folder, "built");
        let variable = |name: &str, value: &Path| format!("{name}={}", value.display());
        let args = [
            variable("FROM", &folder.join("built.so")),
            variable("DESTDIR", &folder.join("dest")),
            variable("PLUGIN_DIR", Path::new("/usr/lib/plugins")),
        ];
        // The second install replaces the files of the first.
        run(&args).and_then(|()| run(&args)).unwrap();
        let installed = folder.join("dest/usr/lib/plugins/ha_frondb.so");
        let debug = folder.join("dest/usr/lib/plugins/.debug/ha_frondb.so.debug");
        assert!(!has_section(&installed, ".debug_info") && has_section(&debug, ".debug_info"));
        assert!(run(&["PLUGIN_DIR=here".to_owned(), args[0].clone()]).is_err());
        assert!(!folder.join("dest/usr/local").exists());
        for (program, _) in PROGRAMS {
            fs::copy(folder.join("built.so"), folder.join(program)).unwrap();
        }
        let programs = variable("PROGRAMS", &folder);
        run(&[args[0].clone(), args[1].clone(), args[2].clone(), programs]).unwrap();
        for (program, _) in PROGRAMS {
            let installed = folder.join("dest/usr/local/bin").join(program);
            assert!(!has_section(&installed, ".debug_info"), "{program}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
