//! Gets the source of the installed server, for headers that Debian's packages lack.
//!
//! A server loads only plugins built with its own `mysql_version.h`, which is in a package.
//! `handler.h` is in no package, and may come from a nearby patch release, since the source of the
//! newest release may not be published yet. `layout.rs` compares the layouts of headers and server
//! after the build, and the plugin compares them again when it is loaded
//! (mariadb/src/plugin/abi.cc).

use std::fs;
use std::path::{Path, PathBuf};

use super::apt::Apt;
use super::{folder, servers};
use crate::Result;
use crate::step::Cmd;
use crate::workspace::read;

/// Headers of the installed server.
pub(super) const INCLUDE: &str = "/usr/include/mariadb/server";

/// The environment variable, or variable of `make`, that names a folder with the source.
const GIVEN: &str = "MARIADB_SOURCE";

/// The files to unpack; the whole source has 115 MB.
const PARTS: [&str; 6] = [
    "*/include/*",
    "*/sql/*.h",
    "*/wsrep-lib/*",
    "*/scripts/dheadgen.pl",
    "mariadb-*/VERSION",
    "*/COPYING",
];

/// Returns the folder with the source: the folder that the user names, or else a folder below
/// `target/`. Fetches and unpacks the source if it is missing.
pub(super) fn get() -> Result<PathBuf> {
    if let Some(given) = std::env::var_os(GIVEN).filter(|given| !given.is_empty()) {
        let given = PathBuf::from(given);
        let has_headers = given.join("sql/handler.h").exists();
        let found = given.canonicalize().ok().filter(|_| has_headers);
        return found.ok_or_else(|| {
            format!(
                "{GIVEN}={}: there is no sql/handler.h; name a server's unpacked source",
                given.display()
            )
        });
    }
    let version = installed_version()?;
    let home = folder().join("source");
    if let Some(found) = unpacked(&home, &version) {
        return Ok(found);
    }
    fs::create_dir_all(&home).map_err(|e| format!("{}: {e}", home.display()))?;
    let file = match of_pool(&home, &version)? {
        Some(file) => file,
        None => of_archive(&home, &version)?,
    };
    unpack(&home, &file)?;
    unpacked(&home, &version).ok_or_else(|| format!("{file} does not have sql/handler.h"))
}

/// Fetches the source from the pool if the installed server is the one of the pool. Returns the
/// file's name.
fn of_pool(home: &Path, version: &str) -> Result<Option<String>> {
    let pool = servers::all()?.into_iter().filter_map(|server| server.pool);
    let Some(pool) = pool.into_iter().find(|pool| upstream(&pool.version) == version) else {
        return Ok(None);
    };
    pool.source.iter().try_for_each(|file| file.fetch(home))?;
    Ok(pool.source.first().map(|file| file.name.clone()))
}

/// Fetches the source nearest to `version` that Debian's archive lists. Returns the file's name.
fn of_archive(home: &Path, version: &str) -> Result<String> {
    let apt = Apt::new("deb-src")?;
    let listed = apt.cmd("apt-cache", "showsrc --only-source mariadb").output()?;
    let wanted = by_nearness(&listed, version).into_iter().find(|wanted| {
        // apt may list the newest version before its source can be fetched.
        let download = apt.cmd("apt-get", "source --download-only");
        download.arg(&format!("mariadb={wanted}")).dir(home.to_owned()).run().is_ok()
    });
    let wanted = wanted.ok_or_else(|| {
        format!("no source of MariaDB {} can be had from Debian", series(version))
    })?;
    if upstream(&wanted) != version {
        eprintln!("no source of MariaDB {version}: taking the headers of {}", upstream(&wanted));
    }
    let files = fs::read_dir(home).map_err(|e| format!("{}: {e}", home.display()))?;
    let names = files.flatten().filter_map(|file| file.file_name().into_string().ok());
    let is_source = |name: &String| {
        let version = name.strip_prefix("mariadb_").and_then(|rest| rest.split_once(".orig.tar."));
        version.is_some_and(|(version, kind)| {
            upstream(version) == upstream(&wanted) && !kind.ends_with("asc")
        })
    };
    names.into_iter().find(is_source).ok_or_else(|| format!("apt-get has not fetched {wanted}"))
}

/// Unpacks the headers and removes the file.
fn unpack(home: &Path, name: &str) -> Result {
    let command = Cmd::new("tar", "--extract --auto-compress --wildcards --file").arg(name);
    PARTS.iter().fold(command.dir(home.to_owned()), |command, part| command.arg(part)).run()?;
    fs::remove_file(home.join(name)).map_err(|e| format!("{name}: {e}"))
}

/// Returns the version of the installed headers, for example "10.11.19".
pub(super) fn installed_version() -> Result<String> {
    let path = Path::new(INCLUDE).join("mysql_version.h");
    version_of(&read(&path)?).ok_or_else(|| format!("{}: names no version", path.display()))
}

/// Returns the version of the source, which has the headers that no package has, for example
/// "10.11.18".
pub(super) fn version_of_headers() -> Result<String> {
    let source = get()?;
    if let Ok(file) = fs::read_to_string(source.join("VERSION")) {
        return Ok(version_in_source(&file));
    }
    let name = source.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    Ok(upstream(name.trim_start_matches("mariadb-")).to_owned())
}

/// Parses the file VERSION of a source into, for example, "10.11.18".
fn version_in_source(file: &str) -> String {
    let parts = ["MAJOR", "MINOR", "PATCH"].map(|part| {
        let name = format!("MYSQL_VERSION_{part}=");
        file.lines().find_map(|line| line.strip_prefix(&*name)).unwrap_or_default().trim()
    });
    parts.join(".")
}

fn version_of(header: &str) -> Option<String> {
    let line = header.lines().find(|line| line.starts_with("#define MYSQL_SERVER_VERSION"))?;
    let quoted = line.split('"').nth(1)?;
    Some(quoted.split('-').next()?.to_owned())
}

/// Returns the series: "10.11" of "10.11.19".
pub(super) fn series(version: &str) -> &str {
    version.rsplit_once('.').map_or(version, |(series, _)| series)
}

/// Returns the upstream version of a package version: "10.11.18" of "1:10.11.18-0+deb12u1", "11.8.9"
/// of "1:11.8.9+ds-2".
fn upstream(version: &str) -> &str {
    let version = version.split_once(':').map_or(version, |(_, rest)| rest);
    version.split(['-', '+']).next().unwrap_or(version)
}

fn patch(version: &str) -> u32 {
    version.rsplit('.').next().and_then(|patch| patch.parse().ok()).unwrap_or(0)
}

/// Returns the listed package versions of the same series, the nearest to `version` first.
fn by_nearness(listed: &str, version: &str) -> Vec<String> {
    let versions = listed.lines().filter_map(|line| line.strip_prefix("Version: "));
    let of_series = versions.filter(|found| series(upstream(found)) == series(version));
    let mut of_series: Vec<String> = of_series.map(str::to_owned).collect();
    of_series.sort_by_key(|found| patch(upstream(found)).abs_diff(patch(version)));
    of_series
}

/// Returns the unpacked source of the same series whose version is nearest to `version`.
fn unpacked(home: &Path, version: &str) -> Option<PathBuf> {
    let folders = fs::read_dir(home).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let sources = folders.filter(|path| path.join("sql/handler.h").exists());
    let of_series = sources.filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let found = name.strip_prefix("mariadb-").map(upstream);
        found.is_some_and(|found| series(found) == series(version))
    });
    of_series.min_by_key(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        patch(upstream(name.trim_start_matches("mariadb-"))).abs_diff(patch(version))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_the_nearest_is_taken() {
        let header =
            "#define PROTOCOL_VERSION 10\n#define MYSQL_SERVER_VERSION  \"10.11.19-MariaDB\"\n";
        assert_eq!(version_of(header).as_deref(), Some("10.11.19"));
        let file = "MYSQL_VERSION_MAJOR=10\nMYSQL_VERSION_MINOR=11\nMYSQL_VERSION_PATCH=18\nSERVER_MATURITY=stable\n";
        assert_eq!(version_in_source(file), "10.11.18");
        let listed = "Package: mariadb\nVersion: 1:10.11.14-0+deb12u2\n\nVersion: 1:10.11.18-0+deb12u1\n\
                      Version: 1:11.8.19+ds-1\n";
        let (old, new) = ("1:10.11.14-0+deb12u2", "1:10.11.18-0+deb12u1");
        assert_eq!(by_nearness(listed, "10.11.19"), [new, old]);
        assert_eq!(by_nearness(listed, "10.11.14"), [old, new]);
        assert!(by_nearness(listed, "10.6.1").is_empty());
        assert_eq!(by_nearness(listed, "11.8.9"), ["1:11.8.19+ds-1"]);
        assert_eq!(upstream("1:11.8.19+ds-1"), "11.8.19");
    }
}
