//! `cargo xtask install-plugin` installs ha_frondb.so where the installed server looks for plugins.
//!
//! ```text
//!   PLUGIN_DIR/ha_frondb.so                  without debug symbols
//!   PLUGIN_DIR/.debug/ha_frondb.so.debug     these
//! ```
//! PLUGIN_DIR is `plugin_dir` of the server, by default that of Debian's. For packages, DESTDIR is put before both paths. FROM names a plugin that is built already.

use std::fs;
use std::path::{Path, PathBuf};

use super::plugin::{NAME, PLUGINS, plugin};
use crate::{Result, stripped, variables};

pub(crate) fn run(args: &[String]) -> Result {
    let variables = variables(args, &["PLUGIN_DIR", "DESTDIR", "FROM"])?;
    let get = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, v)| *v);
    let from = get("FROM").map_or_else(plugin, |from| Ok(PathBuf::from(from)))?;
    let folder = Path::new(get("PLUGIN_DIR").unwrap_or(PLUGINS));
    let Ok(below) = folder.strip_prefix("/") else {
        return Err(format!("PLUGIN_DIR={} is not absolute", folder.display()));
    };
    let folder =
        get("DESTDIR").map_or_else(|| folder.to_owned(), |dest| Path::new(dest).join(below));
    fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    stripped::shared(&from, &folder.join(NAME))?;
    println!("installed {} in {}", NAME, folder.display());
    Ok(())
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
        fs::remove_dir_all(&folder).unwrap();
    }
}
