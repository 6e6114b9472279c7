//! A root folder with another release of Debian: `make plugin SERVER=11.8` on a machine whose
//! release has another server.
//!
//! ```text
//!   outside   debootstrap                   target/mariadb-11.8/root
//!             cargo                         the library and test programs: they run in both
//!             unshare --mount, chroot       this program again, with the same arguments
//!   inside    as on a machine of that release, but what cargo builds is there already
//! ```
//! The checkout and the build output have the same paths inside. They are mounted in a mount
//! namespace of the command, so no mount remains, and nobody can remove the checkout by removing
//! the root.

use std::fs;
use std::path::Path;

use super::servers::{self, Server, release_of};
use super::{INSIDE, folder_of};
use crate::Result;
use crate::install::{apt, on_path};
use crate::programs;
use crate::step::Cmd;
use crate::workspace::{root, target_folder};

/// The variable of `make` and of commands that names a series of the server.
const SERVER: &str = "SERVER";

/// Runs `command` for the server that SERVER among `args` names: here if that is the server of this
/// machine, else in a root. `before` builds with cargo what the command needs. Where there can be no
/// root, prints why, and counts as skipped.
pub(crate) fn with_server(
    name: &str,
    args: &[String],
    before: impl FnOnce() -> Result,
    command: impl FnOnce(&[String]) -> Result,
) -> Result {
    let (server, rest): (Vec<String>, Vec<String>) =
        args.iter().cloned().partition(|arg| arg.split('=').next() == Some(SERVER));
    let series = server.last().and_then(|arg| arg.split_once('=')).map(|(_, series)| series);
    let Some(series) = series.filter(|series| !series.is_empty()) else {
        return command(&rest);
    };
    let server = servers::of_series(series)?;
    if release_of(Path::new("/"))? == server.release {
        return command(&rest);
    }
    if let Err(why) = make(&server) {
        println!("skipped: {name} for MariaDB {series}: {why}");
        println!("test result: ok. 0 passed; 0 failed; 1 ignored");
        return Ok(());
    }
    before()?;
    enter(&server, name, &rest)
}

/// Makes the root, if it is missing, with the server and its test suites.
fn make(server: &Server) -> Result {
    let to = folder_of(&server.series).join("root");
    if to.exists() {
        return Ok(());
    }
    if !Cmd::new("id", "-u").output().is_ok_and(|id| id == "0") {
        return Err("a root folder with another release of Debian needs the user root".to_owned());
    }
    apt("debootstrap", "debootstrap", || on_path("debootstrap"))?;
    let partial = folder_of(&server.series).join("root-partial");
    if partial.exists() {
        fs::remove_dir_all(&partial).map_err(|e| format!("{}: {e}", partial.display()))?;
    }
    fs::create_dir_all(&partial).map_err(|e| format!("{}: {e}", partial.display()))?;
    Cmd::new("debootstrap", "--variant=minbase")
        .arg(&server.release)
        .arg(&partial.display().to_string())
        .arg("http://deb.debian.org/debian")
        .run()?;
    let lists = ["deb", "deb-src"].map(|kind| super::apt::lists(kind, &server.release)).concat();
    let list = partial.join("etc/apt/sources.list");
    fs::write(&list, lists).map_err(|e| format!("{}: {e}", list.display()))?;
    // The smallest system has neither this file nor netbase.
    let hosts = partial.join("etc/hosts");
    fs::write(&hosts, "127.0.0.1 localhost\n").map_err(|e| format!("{}: {e}", hosts.display()))?;
    in_root(&partial, "apt-get update -qq").run()?;
    install_server(server, &partial)?;
    fs::rename(&partial, &to).map_err(|e| format!("{}: {e}", to.display()))
}

/// Installs the newest server if its source can be fetched, else the one of the pool.
fn install_server(server: &Server, root: &Path) -> Result {
    const SOURCE: &str = "apt-get source --download-only --print-uris mariadb";
    let newest = in_root(root, SOURCE).output()?;
    let address = newest.split('\'').find(|word| word.ends_with(".dsc"));
    let check = |address: &str| {
        in_root(root, "/usr/lib/apt/apt-helper download-file")
            .arg(address)
            .arg("/tmp/mariadb.dsc")
            .succeeds()
    };
    let packages: &[_] = match (&server.pool, address.is_some_and(check)) {
        (Some(pool), false) => {
            eprintln!("the source of the newest server cannot be had: installing {}", pool.version);
            // Later installations must not take the newest.
            let pin = root.join("etc/apt/preferences.d/mariadb");
            let text = format!(
                "Package: *mariadb*\nPin: version 1:{}\nPin-Priority: 1001\n",
                pool.version
            );
            fs::write(&pin, text).map_err(|e| format!("{}: {e}", pin.display()))?;
            &pool.packages
        }
        _ => &[],
    };
    let folder = root.join("root");
    packages.iter().try_for_each(|package| package.fetch(&folder))?;
    let install = in_root(root, "apt-get install -y --no-install-recommends")
        .env("DEBIAN_FRONTEND", "noninteractive");
    let install = packages
        .iter()
        .fold(install, |install, package| install.arg(&format!("/root/{}", package.name)));
    let names = if packages.is_empty() {
        "mariadb-server mariadb-client libmariadbd-dev mariadb-test mariadb-backup"
    } else {
        ""
    };
    names.split_whitespace().chain(["netbase", "perl", "patch"]).fold(install, Cmd::arg).run()
}

fn in_root(root: &Path, command: &str) -> Cmd {
    command
        .split_whitespace()
        .fold(Cmd::new("chroot", "").arg(&root.display().to_string()), Cmd::arg)
}

/// Mounts what a command needs, then replaces the shell by the command. The arguments are the root,
/// and the command with its arguments.
const ENTER: &str = r#"set -e
new=$1; shift
mount -t proc proc "$new/proc"
for shared in /sys /dev /tmp $FRONDB_SHARED; do
  mkdir -p "$new$shared"
  mount --rbind "$shared" "$new$shared"
done
exec chroot "$new" "$@""#;

/// Runs this program inside the root.
fn enter(server: &Server, name: &str, args: &[String]) -> Result {
    let program = std::env::current_exe().map_err(|e| format!("this program's path: {e}"))?;
    // The build output is elsewhere than in the checkout if CARGO_TARGET_DIR says so.
    let shared = [root().to_owned(), target_folder()].map(|path| path.display().to_string());
    let script = folder_of(&server.series).join("enter.sh");
    fs::write(&script, ENTER).map_err(|e| format!("{}: {e}", script.display()))?;
    let command = Cmd::new("unshare", "--mount --propagation private sh")
        .arg(&script.display().to_string())
        .arg(&folder_of(&server.series).join("root").display().to_string())
        .arg(&program.display().to_string())
        .arg(name);
    args.iter()
        .fold(command, |command, arg| command.arg(arg))
        .env("FRONDB_SHARED", &shared.join(" "))
        .env(INSIDE, &server.series)
        .env(programs::BUILT, "1")
        .run()
}
