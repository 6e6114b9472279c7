//! Versions of packages: that of debian/changelog, for each release of Debian, and the versions of
//! the server with which the plugin works.

use std::path::Path;

use crate::Result;
use crate::install_c;
use crate::step::Cmd;
use crate::workspace::{read, root};

pub(super) const CHANGELOG: &str = "debian/changelog";

/// Finds deviations of debian/ from Cargo.toml.
pub(crate) fn check() -> Result<Vec<String>> {
    let version = install_c::version()?;
    let mut findings = Vec::new();
    let changelog = read(&root().join(CHANGELOG))?;
    let (upstream, _) = of_changelog(&changelog)?;
    if upstream != version {
        findings.push(format!("{CHANGELOG}: begins with {upstream}, and Cargo.toml has {version}"));
    }
    let library = format!("Package: libfrondb{}\n", of_interface(&version));
    if !read(&root().join("debian/control"))?.contains(&library) {
        findings.push(format!("debian/control: has no line {}", library.trim()));
    }
    Ok(findings)
}

/// Returns the part of a version that the soname has: "0.2" of "0.2.0".
pub(super) fn of_interface(version: &str) -> &str {
    version.rsplit_once('.').map_or(version, |(interface, _)| interface)
}

/// Returns version and revision of the newest entry of a changelog: "0.2.0" and "1" of "0.2.0-1".
fn of_changelog(changelog: &str) -> Result<(&str, &str)> {
    let version = changelog.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    let parts = version.and_then(|(version, _)| version.rsplit_once('-'));
    parts.ok_or_else(|| format!("{CHANGELOG}: the first line has no version"))
}

/// Returns the changelog for a release of Debian. Its version is smaller than that for a later
/// release, so an upgrade of the release replaces the package.
pub(super) fn changelog_of(
    changelog: &str,
    release: &Release,
    revision: Option<&str>,
) -> Result<String> {
    let (upstream, first) = of_changelog(changelog)?;
    let (_, rest) = changelog.split_once('\n').unwrap_or_default();
    Ok(format!(
        "frondb ({upstream}-{}~deb{}u1) {}; urgency=medium\n{rest}",
        revision.unwrap_or(first),
        release.number,
        release.codename
    ))
}

/// A release of Debian.
#[derive(Debug, PartialEq)]
pub(super) struct Release {
    codename: String,
    number: u32,
}

impl Release {
    /// Returns the release in a root.
    pub(super) fn of(root: &Path) -> Result<Self> {
        Self::parse(&read(&root.join("etc/os-release"))?).ok_or_else(|| {
            format!("{}: /etc/os-release names no release of Debian", root.display())
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let value = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            Some(value?.trim_matches('"'))
        };
        value("ID").filter(|id| *id == "debian")?;
        let number = value("VERSION_ID")?.parse().ok()?;
        Some(Self { codename: value("VERSION_CODENAME")?.to_owned(), number })
    }
}

/// Refuses a machine whose programs need a newer C library than the release in `root` has.
pub(super) fn check_machine(machine: &Path, root: &Path) -> Result {
    let (here, there) = (Release::of(machine)?, Release::of(root)?);
    if here.number > there.number {
        return Err(format!(
            "this machine has {}, and what is built here does not run on {}: build on {}",
            here.codename, there.codename, there.codename
        ));
    }
    Ok(())
}

/// The packages of the server. The program is in the second, and the first takes any newer second.
pub(super) const SERVER: [&str; 2] = ["mariadb-server", "mariadb-server-core"];

/// Returns the dependency of the plugin's package on the installed server: on all of Debian's
/// packages of its release.
pub(super) fn server() -> Result<String> {
    let query = |package: &str| Cmd::new("dpkg-query", "-W -f ${Version}").arg(package).output();
    let server = query("mariadb-server")?;
    for other in ["mariadb-server-core", "libmariadbd-dev"] {
        let other_version = query(other)?;
        if server != other_version {
            return Err(format!("mariadb-server is {server}, and {other} is {other_version}"));
        }
    }
    Ok(range(&server))
}

/// Returns the dependency on a version without its revision. Packages of MariaDB itself, which have
/// a `+` after the version, are not meant: their server was not compared with the headers.
fn range(version: &str) -> String {
    let release = version.rsplit_once('-').map_or(version, |(release, _)| release);
    let of = |package: &str| format!("{package} (>= {release}), {package} (<< {release}+)");
    SERVER.map(of).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debian_agrees_with_cargo() {
        assert_eq!(check(), Ok(Vec::new()));
    }

    #[test]
    fn the_changelog_gets_the_release() {
        let release = Release { codename: "trixie".to_owned(), number: 13 };
        let text = "frondb (0.2.0-1) UNRELEASED; urgency=medium\n\n  * Packages.\n";
        let of = |revision| changelog_of(text, &release, revision).unwrap();
        assert_eq!(of(None), "frondb (0.2.0-1~deb13u1) trixie; urgency=medium\n\n  * Packages.\n");
        assert!(of(Some("2")).starts_with("frondb (0.2.0-2~deb13u1) trixie;"));
        assert!(changelog_of("frondb", &release, None).is_err());
        assert_eq!(of_interface("0.2.11"), "0.2");
    }

    #[test]
    fn releases_are_read() {
        let text =
            "PRETTY_NAME=\"Debian\"\nVERSION_ID=\"12\"\nVERSION_CODENAME=bookworm\nID=debian\n";
        let release = Release { codename: "bookworm".to_owned(), number: 12 };
        assert_eq!(Release::parse(text), Some(release));
        assert_eq!(Release::parse(&text.replace("ID=debian", "ID=ubuntu")), None);
    }

    #[test]
    fn the_plugin_depends_on_one_release_of_the_server() {
        let expected = "mariadb-server (>= 1:10.11.19), mariadb-server (<< 1:10.11.19+), \
                        mariadb-server-core (>= 1:10.11.19), mariadb-server-core (<< 1:10.11.19+)";
        assert_eq!(range("1:10.11.19-0+deb12u1"), expected);
        let fits = |version: &str| {
            let compare = |relation: &str, other: &str| {
                let args = format!("--compare-versions {version} {relation} {other}");
                Cmd::new("dpkg", &args).succeeds()
            };
            compare("ge", "1:10.11.19") && compare("lt", "1:10.11.19+")
        };
        assert!(fits("1:10.11.19-0+deb12u1") && fits("1:10.11.19-0+deb12u2"));
        for other in ["1:10.11.18-0+deb12u1", "1:10.11.20-0+deb12u1", "1:10.11.19+maria~deb12"] {
            assert!(!fits(other), "{other}");
        }
    }
}
