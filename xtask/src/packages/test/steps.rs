//! What the test does in the root, step by step. Each step needs those before it, so the first
//! failure ends the test.

use std::fs;
use std::path::{Path, PathBuf};

use super::system::{Server, add_archive, apt_get, sql, version};
use crate::packages::debian::ending;
use crate::packages::version::SERVER;
use crate::step::Cmd;
use crate::{Result, variables};

const PLUGIN: &str = "mariadb-plugin-frondb";
const OPTIONS: &str = "/etc/mysql/mariadb.conf.d/frondb.cnf";
const DATA: &str = "/var/lib/mysql/#sql-frondb";

/// Tables with an index, one of another engine.
const LOAD: &str = "CREATE DATABASE shop;
    USE shop;
    CREATE TABLE readings (device INT, taken INT, value INT, PRIMARY KEY (device, taken), KEY (taken)) ENGINE=FronDB;
    INSERT INTO readings SELECT seq MOD 100, seq, seq * 7 FROM seq_1_to_100000;
    CREATE TABLE devices (id INT PRIMARY KEY) ENGINE=InnoDB;
    INSERT INTO devices SELECT seq FROM seq_1_to_10";
const ASK: &str = "SELECT COUNT(*), SUM(value), (SELECT COUNT(*) FROM shop.readings WHERE taken > 99990) FROM shop.readings";
const ANSWER: &str = "100000\t35000350000\t10";

/// Archives for apt: the packages, and those of the next revision.
struct Archives {
    first: PathBuf,
    next: PathBuf,
}

type Step = fn(&Archives) -> Result;

const STEPS: [(&str, Step); 10] = [
    ("packages install", install),
    ("a table is created and loaded", load),
    ("rows survive a restart", restart),
    ("the command has pages and completions", command),
    ("a C program is built and runs", c_program),
    ("the next revision replaces the packages", upgrade),
    ("the next server is refused", next_server),
    ("the server starts after a removal", remove),
    ("the server starts after a purge", purge),
    ("a new installation has the rows", reinstall),
];

/// `cargo xtask test-packages-inside`.
pub(crate) fn inside(args: &[String]) -> Result {
    let variables = variables(args, &["ARCHIVE", "NEXT"])?;
    let [("ARCHIVE", first), ("NEXT", next)] = variables[..] else {
        return Err("test-packages-inside needs ARCHIVE= and NEXT=, folders".to_owned());
    };
    let archives = Archives { first: first.into(), next: next.into() };
    for (name, step) in STEPS {
        step(&archives).map_err(|e| format!("{name}: {e}"))?;
        println!("test {name} ... ok");
    }
    println!("test result: ok. {} passed; 0 failed; 0 ignored", STEPS.len());
    Ok(())
}

/// Installs all packages and what they need. No service starts, as there is no systemd.
fn install(archives: &Archives) -> Result {
    let policy = "/usr/sbin/policy-rc.d";
    fs::write(policy, "#!/bin/sh\nexit 101\n").map_err(|e| format!("{policy}: {e}"))?;
    Cmd::new("chmod", "+x").arg(policy).run()?;
    add_archive("frondb", &archives.first)?;
    let server = ending(Path::new("/root"), ".deb")?;
    let is_test = |package: &Path| package.to_string_lossy().contains("mariadb-test");
    let server = server.iter().filter(|package| !is_test(package));
    let install =
        apt_get(&format!("install {PLUGIN} frondb libfrondb-dev gcc libc6-dev pkg-config"));
    server.fold(install, |command, package| command.arg(&package.display().to_string())).run()
}

fn load(_: &Archives) -> Result {
    let server = Server::start()?;
    sql(LOAD)?;
    expect(&sql(ASK)?, ANSWER)?;
    expect(
        &sql("SELECT engine FROM information_schema.tables WHERE table_name = 'readings'")?,
        "FronDB",
    )?;
    server.stop()
}

fn restart(_: &Archives) -> Result {
    with_server(|| expect(&sql(ASK)?, ANSWER))
}

/// Runs the command on the files of the stopped server.
fn command(_: &Archives) -> Result {
    Cmd::new("frondb", "verify --read-only --quiet").arg(DATA).run()?;
    Cmd::new("frondb-convert", "--version").run()?;
    for file in [
        "man/man1/frondb.1.gz",
        "man/man1/frondb-backup.1.gz",
        "man/man1/frondb-convert.1.gz",
        "bash-completion/completions/frondb",
        "fish/vendor_completions.d/frondb.fish",
        "zsh/vendor-completions/_frondb",
    ] {
        let file = Path::new("/usr/share").join(file);
        if !file.is_file() {
            return Err(format!("{} is missing", file.display()));
        }
    }
    Cmd::new("bash", "-n /usr/share/bash-completion/completions/frondb").run()
}

/// Builds the example of the package libfrondb-dev, with the shared and with the static library.
fn c_program(_: &Archives) -> Result {
    let shell = |script: &str| Cmd::new("sh", "-e -c").arg(script).dir("/root".into()).output();
    let example = "/usr/share/doc/libfrondb-dev/examples/counters.c";
    shell(&format!("cc {example} $(pkg-config --cflags --libs frondb) -o shared"))?;
    shell(&format!("cc {example} -l:libfrondb.a -lm -o static"))?;
    for name in ["shared", "static"] {
        shell(&format!("./{name} data-{name}"))?;
    }
    let used = shell("ldd shared")?;
    let library = used.lines().find(|line| line.contains("libfrondb.so.0.2"));
    let is_packaged = |line: &str| line.contains("=> /lib/") || line.contains("=> /usr/lib/");
    if !library.is_some_and(is_packaged) {
        return Err(format!("the program does not use the package's library:\n{used}"));
    }
    Ok(())
}

fn upgrade(archives: &Archives) -> Result {
    let before = version(PLUGIN)?;
    add_archive("frondb-next", &archives.next)?;
    apt_get("upgrade").run()?;
    let after = version(PLUGIN)?;
    if before == after || version("libfrondb0.2")? != after || version("frondb")? != after {
        return Err(format!("the packages had version {before}, and the plugin now has {after}"));
    }
    with_server(|| expect(&sql(ASK)?, ANSWER))
}

/// Offers the next release of the server to apt: an upgrade keeps the installed one, and an
/// installation beside the plugin fails.
fn next_server(_: &Archives) -> Result {
    let server = version("mariadb-server")?;
    let next = next_of(&server).ok_or_else(|| format!("{server} is no version of a server"))?;
    let folder = Path::new("/root/next-server");
    dummies(folder, &next)?;
    // Without the pin of an older server, which would itself keep the installed one.
    let _ = fs::remove_file("/etc/apt/preferences.d/mariadb");
    add_archive("next-server", folder)?;
    apt_get("upgrade").run()?;
    for package in SERVER {
        expect(&version(package)?, &server)?;
        let newer = format!("{package}={next}");
        let (said, result) = apt_get("install --simulate").arg(&newer).arg(PLUGIN).run_kept();
        if result.is_ok() || !said.contains("unmet dependencies") {
            return Err(format!("apt installs {newer} beside the plugin:\n{said}"));
        }
    }
    fs::remove_file("/etc/apt/sources.list.d/next-server.list").map_err(|e| e.to_string())?;
    apt_get("update --quiet").run()
}

/// Returns the version of the next release: "1:10.11.20-1" of "1:10.11.19-0+deb12u1".
fn next_of(version: &str) -> Option<String> {
    let (release, _) = version.rsplit_once('-')?;
    let (series, patch) = release.rsplit_once('.')?;
    let digits = patch.split(|c: char| !c.is_ascii_digit()).next()?;
    Some(format!("{series}.{}-1", digits.parse::<u32>().ok()? + 1))
}

/// Makes an archive with empty packages of the server.
fn dummies(folder: &Path, version: &str) -> Result {
    let entries = SERVER.iter().map(|name| dummy(folder, name, version));
    let entries = entries.collect::<Result<Vec<String>>>()?;
    fs::write(folder.join("Packages"), entries.join("\n"))
        .map_err(|e| format!("{}: {e}", folder.display()))
}

/// Makes an empty package, and returns its entry for the archive.
fn dummy(folder: &Path, name: &str, version: &str) -> Result<String> {
    let control = folder.join(name).join("DEBIAN");
    let at = |e| format!("{}: {e}", folder.display());
    fs::create_dir_all(&control).map_err(at)?;
    let text = format!(
        "Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: none <none@example.org>\n\
         Description: the next server, empty\n"
    );
    fs::write(control.join("control"), &text).map_err(at)?;
    let file = format!("{name}.deb");
    Cmd::new("dpkg-deb", "--build").arg(name).arg(&file).dir(folder.to_owned()).run()?;
    let size = fs::metadata(folder.join(&file)).map_err(at)?.len();
    let sum = Cmd::new("sha256sum", &file).dir(folder.to_owned()).output()?;
    let sum = sum.split(' ').next().unwrap_or_default();
    Ok(format!("{text}Filename: ./{file}\nSize: {size}\nSHA256: {sum}\n"))
}

fn remove(_: &Archives) -> Result {
    apt_get("remove").arg(PLUGIN).run()?;
    if !Path::new(OPTIONS).exists() {
        return Err(format!("{OPTIONS} went with the package, and belongs to the administrator"));
    }
    without_engine()
}

fn purge(_: &Archives) -> Result {
    apt_get("purge").arg(PLUGIN).run()?;
    if Path::new(OPTIONS).exists() || !Path::new(DATA).exists() {
        return Err(format!("{OPTIONS} must go, {DATA} must stay"));
    }
    without_engine()
}

/// The server starts, has the other engine's rows, and refuses FronDB's table.
fn without_engine() -> Result {
    with_server(|| {
        expect(&sql("SELECT COUNT(*) FROM shop.devices")?, "10")?;
        match sql(ASK) {
            Ok(rows) => Err(format!("a table without its engine has rows: {rows}")),
            Err(_) => Ok(()),
        }
    })
}

fn reinstall(_: &Archives) -> Result {
    apt_get("install").arg(PLUGIN).run()?;
    with_server(|| expect(&sql(ASK)?, ANSWER))
}

fn with_server(run: impl FnOnce() -> Result) -> Result {
    let server = Server::start()?;
    run()?;
    server.stop()
}

fn expect(found: &str, expected: &str) -> Result {
    if found == expected { Ok(()) } else { Err(format!("found {found:?}, expected {expected:?}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_server_is_the_next_patch() {
        assert_eq!(next_of("1:10.11.19-0+deb12u1").as_deref(), Some("1:10.11.20-1"));
        assert_eq!(next_of("1:11.8.9+ds-2").as_deref(), Some("1:11.8.10-1"));
        assert_eq!(next_of("10"), None);
    }
}
