//! `cargo xtask install-c PREFIX=...` installs the C library where C programs look for it, and
//! `cargo xtask header` writes the library's header.
//!
//! ```text
//!   PREFIX/include/frondb.h
//!   PREFIX/lib/libfrondb.so.0.2.0      the library, without debug symbols
//!   PREFIX/lib/.debug/libfrondb.so.0.2.0.debug    its debug symbols, where debuggers look
//!   PREFIX/lib/libfrondb.so.0.2        its soname: what a program is linked with
//!   PREFIX/lib/libfrondb.so            what the linker looks for
//!   PREFIX/lib/libfrondb.a             without debug symbols
//!   PREFIX/lib/pkgconfig/frondb.pc
//! ```
//! The flags of pkg-config put the folder of the library into a program (rpath), so the program
//! finds the library without `ldconfig`. With DESTDIR, which packages use, the flags have no rpath:
//! packages install into a folder that the loader searches, run `ldconfig`, and their policies
//! forbid an rpath.
//!
//! DESTDIR is put before the path of every installed file, but not before paths inside files. FROM
//! names a folder of built libraries; without FROM the command builds the libraries.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use toml::Value;

use crate::step::Cmd;
use crate::workspace::{read_toml, root, target_folder};
use crate::{Result, stripped, variables};

const HEADER: &str = "crates/capi/include/frondb.h";

/// Writes the header, by the test that otherwise compares it with the source.
pub(crate) fn header() -> Result {
    Cmd::new("cargo", "test --quiet --package frondb-capi --test header").env("REWRITE", "1").run()
}

/// Builds the libraries, unless FROM names them, and installs all files.
pub(crate) fn run(args: &[String]) -> Result {
    let variables = variables(args, &["PREFIX", "DESTDIR", "FROM"])?;
    let get = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, v)| *v);
    let prefix = get("PREFIX").unwrap_or("/usr/local");
    if !Path::new(prefix).is_absolute() {
        return Err(format!(
            "PREFIX={prefix} is not absolute: programs find the library by an absolute path"
        ));
    }
    let from = match get("FROM") {
        Some(from) => PathBuf::from(from),
        None => {
            Cmd::new("cargo", "build --release --package frondb-capi --lib").run()?;
            target_folder().join("release")
        }
    };
    let version = version()?;
    Installation {
        from: &from,
        prefix: Path::new(prefix),
        lib: "lib",
        dest_dir: get("DESTDIR").unwrap_or(""),
        keep_symbols: false,
    }
    .install(&version)?;
    println!("installed frondb {version} in {prefix}");
    println!(
        "programs linked with `pkg-config --libs frondb` find the library in {prefix}/lib; for others run \
         ldconfig as root, if the loader searches that folder"
    );
    Ok(())
}

/// Returns the version of all packages.
pub(crate) fn version() -> Result<String> {
    let table = read_toml(&root().join("Cargo.toml"))?;
    let package = table.get("workspace").and_then(|w| w.get("package"));
    let version = package.and_then(|p| p.get("version")).and_then(Value::as_str);
    version.map(str::to_owned).ok_or_else(|| "Cargo.toml: no version of the workspace".to_owned())
}

/// What is installed, and where.
pub(crate) struct Installation<'a> {
    /// The folder of the built libraries.
    pub(crate) from: &'a Path,
    pub(crate) prefix: &'a Path,
    /// The folder of the libraries, below the prefix.
    pub(crate) lib: &'a str,
    /// Put before the path of every installed file; may be empty.
    pub(crate) dest_dir: &'a str,
    /// Leaves the debug symbols in the shared library, for tools of packages that split them off.
    pub(crate) keep_symbols: bool,
}

impl Installation<'_> {
    /// Installs the files of `version`.
    pub(crate) fn install(&self, version: &str) -> Result {
        let written = match self.prefix.strip_prefix("/") {
            Ok(below) if !self.dest_dir.is_empty() => Path::new(self.dest_dir).join(below),
            _ => self.prefix.to_owned(),
        };
        let (include, lib) = (written.join("include"), written.join(self.lib));
        for folder in [&include, &lib.join("pkgconfig")] {
            fs::create_dir_all(folder)
                .map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
        }
        copy(&root().join(HEADER), &include.join("frondb.h"))?;
        stripped::archive(&self.from.join("libfrondb_capi.a"), &lib.join("libfrondb.a"))?;
        let (file, soname) = (format!("libfrondb.so.{version}"), soname(version));
        let (built, shared) = (self.from.join("libfrondb_capi.so"), lib.join(&file));
        if self.keep_symbols {
            copy(&built, &shared)?;
        } else {
            stripped::shared(&built, &shared)?;
        }
        link(&file, &lib.join(&soname))?;
        link(&soname, &lib.join("libfrondb.so"))?;
        let pc = lib.join("pkgconfig/frondb.pc");
        fs::write(&pc, self.pkg_config(version))
            .map_err(|e| format!("cannot write {}: {e}", pc.display()))
    }

    /// Returns the text of the pkg-config file. `Libs.private` has the libraries that the static
    /// library needs (`pkg-config --static`). Without DESTDIR, an rpath makes programs look for the
    /// library in its installed folder.
    fn pkg_config(&self, version: &str) -> String {
        let path = if self.dest_dir.is_empty() { " -Wl,-rpath,${libdir}" } else { "" };
        format!(
            "prefix={}\nincludedir=${{prefix}}/include\nlibdir=${{prefix}}/{}\n\n\
             Name: frondb\nDescription: Write-optimized, transactional, compressed storage engine\n\
             Version: {version}\nCflags: -I${{includedir}}\nLibs: -L${{libdir}} -lfrondb{path}\n\
             Libs.private: -lgcc_s -lutil -lrt -lpthread -lm -ldl\n",
            self.prefix.display(),
            self.lib
        )
    }
}

/// Returns the soname, which has major and minor version, as in crates/capi/build.rs.
fn soname(version: &str) -> String {
    let parts: Vec<&str> = version.split('.').take(2).collect();
    format!("libfrondb.so.{}", parts.join("."))
}

/// Replaces `to` by a copy of `from`. A process that has `to` open keeps the old file.
fn copy(from: &Path, to: &Path) -> Result {
    let _ = fs::remove_file(to);
    let failed = |e| format!("cannot copy {} to {}: {e}", from.display(), to.display());
    fs::copy(from, to).map(|_| ()).map_err(failed)
}

fn link(target: &str, at: &Path) -> Result {
    let _ = fs::remove_file(at);
    symlink(target, at).map_err(|e| format!("cannot link {}: {e}", at.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soname_is_that_of_the_build_script() {
        assert_eq!(soname("1.22.3"), "libfrondb.so.1.22");
        let script = fs::read_to_string(root().join("crates/capi/build.rs")).unwrap();
        assert!(script.contains("soname,libfrondb.so.{major}.{minor}"));
        assert!(version().is_ok_and(|version| version.split('.').count() == 3));
    }

    #[test]
    fn files_lie_below_dest_dir_and_speak_of_the_prefix() {
        let folder = target_folder().join("install-c-test");
        let _ = fs::remove_dir_all(&folder);
        let built = folder.join("built");
        stripped::tests::build(&built, "libfrondb_capi");
        let dest = folder.join("dest");
        let dest_dir = dest.to_string_lossy();
        let installation = |dest_dir| Installation {
            from: &built,
            prefix: Path::new("/opt/x"),
            lib: "lib",
            dest_dir,
            keep_symbols: false,
        };
        // The second install replaces the files of the first.
        for _ in 0..2 {
            installation(&dest_dir).install("0.7.3").unwrap();
        }
        let lib = dest.join("opt/x/lib");
        assert!(!stripped::tests::has_section(&lib.join("libfrondb.so"), ".debug_info"));
        assert!(lib.join(".debug/libfrondb.so.0.7.3.debug").is_file());
        assert_eq!(fs::read_link(lib.join("libfrondb.so")).unwrap(), Path::new("libfrondb.so.0.7"));
        assert!(lib.join("libfrondb.so.0.7.3").is_file() && lib.join("libfrondb.a").is_file());
        assert!(dest.join("opt/x/include/frondb.h").is_file());
        let pc = fs::read_to_string(lib.join("pkgconfig/frondb.pc")).unwrap();
        assert!(pc.starts_with("prefix=/opt/x\n") && pc.contains("Version: 0.7.3\n"), "{pc}");
        assert!(pc.contains("-lfrondb\n"), "a package has no path in its programs: {pc}");
        let own = installation("").pkg_config("0.7.3");
        assert!(own.contains("-lfrondb -Wl,-rpath,${libdir}\n"), "{own}");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_relative_prefix_is_refused() {
        let refused = run(&["PREFIX=here".to_owned()]);
        assert!(refused.is_err_and(|message| message.contains("absolute")));
    }
}
