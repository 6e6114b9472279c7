//! `make node`: the npm package of `crates/node`, checked as a user installs it.
//!
//! ```text
//!   target/node/package      the files of the package, with an addon for each platform
//!   target/node/dist         frondb-VERSION.tgz
//!   target/node/installed    a folder in which npm has installed that file; TypeScript
//!   target/node/peers        the engines of the benchmark, pinned in crates/node/package.json
//! ```
//! One package has the addons of all platforms. A package for each platform, which a main package
//! names as optional, saves a user some megabytes. But then several packages must be published
//! together, and a lock file that npm has written on one platform may lack the addon of another one.
//!
//! `make test` runs the tests in JavaScript without the package: see crates/node/tests/node.rs.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::step::Cmd;
use crate::workspace::{read, root, target_folder};
use crate::{Result, install, variables};

const CRATE: &str = "crates/node";
/// What `package.json` says, too. Debian 12 has 18.20.
const OLDEST: (u32, u32) = (18, 19);
/// The tools of the checks of types; the other development dependencies are engines to compare with.
const OF_TYPES: [&str; 2] = ["@types/node", "typescript"];
const NPM: &str = "--no-audit --no-fund --ignore-scripts --loglevel=error";

/// A platform for which the package has an addon.
struct Platform {
    /// What node calls the processor; a value of the variable PLATFORMS.
    name: &'static str,
    target: &'static str,
    /// The prefix of Debian's compiler and binutils for it.
    tools: &'static str,
}

const PLATFORMS: [Platform; 2] = [
    Platform { name: "x64", target: "x86_64-unknown-linux-gnu", tools: "x86_64-linux-gnu" },
    Platform { name: "arm64", target: "aarch64-unknown-linux-gnu", tools: "aarch64-linux-gnu" },
];

/// Builds, installs and tests the package.
pub(crate) fn run(args: &[String]) -> Result {
    let given = variables(args, &["PLATFORMS"])?;
    let platforms = platforms(given.first().map(|(_, names)| *names))?;
    install::c_compiler()?;
    tools()?;
    install::apt("npm", "npm", || install::on_path("npm"))?;
    let package = folder().join("package");
    fresh(&package)?;
    for platform in platforms {
        addon(platform, &package)?;
    }
    copy_files(&package)?;
    let dist = folder().join("dist");
    fresh(&dist)?;
    let pack = Cmd::new("npm", "pack --silent --pack-destination").arg(&dist.to_string_lossy());
    pack.dir(package).run()?;
    install_package(&only(&dist)?)?;
    check_types()?;
    let tests = Cmd::new("node", "--test");
    let tests = tests_of_crate()?.iter().fold(tests, |tests, file| tests.arg(file));
    let installed = installed().join("node_modules/frondb");
    tests.env("FRONDB_NODE_PACKAGE", &installed.to_string_lossy()).run()?;
    println!("the package is in {}", dist.display());
    Ok(())
}

/// Makes node available, with which `make test` runs the tests in JavaScript.
pub(crate) fn tools() -> Result {
    install::apt("node", "nodejs", || install::on_path("node"))?;
    let version = Cmd::new("node", "--version").output()?;
    if is_recent(&version) {
        return Ok(());
    }
    let (major, minor) = OLDEST;
    Err(format!(
        "node is {version}, older than {major}.{minor}, so this was NOT checked: put a newer one first on PATH"
    ))
}

/// Runs the benchmark with its settings, in the folder where npm has installed the other engines.
pub(crate) fn bench(args: &[String]) -> Result {
    install::c_compiler()?;
    tools()?;
    install::apt("npm", "npm", || install::on_path("npm"))?;
    let peers = folder().join("peers");
    make(&peers)?;
    install_pinned(&peers, |name| !OF_TYPES.contains(&name))?;
    let addon = folder().join("frondb.node");
    Cmd::new("cargo", "build --release --package frondb-node").run()?;
    copy(&target_folder().join("release/libfrondb_node.so"), &addon)?;
    let program = root().join(CRATE).join("bench/compare.mjs");
    let command = Cmd::new("node", "").arg(&program.to_string_lossy());
    let command = args.iter().fold(command, |command, arg| command.arg(arg));
    command.env("FRONDB_NODE_ADDON", &addon.to_string_lossy()).dir(peers).run()
}

fn folder() -> PathBuf {
    target_folder().join("node")
}

fn installed() -> PathBuf {
    folder().join("installed")
}

/// Returns whether node's version, such as `v18.20.4`, is not older than [`OLDEST`].
fn is_recent(version: &str) -> bool {
    let mut numbers = version.trim_start_matches('v').split('.').map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { return false };
    (major, minor) >= OLDEST
}

/// Returns the platforms of these names, separated by commas; without names, this machine's.
fn platforms(names: Option<&str>) -> Result<Vec<&'static Platform>> {
    let of = |name: &str| PLATFORMS.iter().find(|platform| platform.name == name);
    let Some(names) = names else {
        return PLATFORMS.iter().find(|it| is_here(it)).map(|it| vec![it]).ok_or_else(|| {
            format!("the package has no addon for the processor {}", std::env::consts::ARCH)
        });
    };
    let unknown = |name| format!("unknown platform `{name}`; known are x64 and arm64");
    names.split(',').map(|name| of(name).ok_or_else(|| unknown(name))).collect()
}

fn is_here(platform: &Platform) -> bool {
    platform.target.starts_with(std::env::consts::ARCH)
}

/// Builds the addon of a platform, and puts it into the package without its symbols.
fn addon(platform: &Platform, package: &Path) -> Result {
    let Platform { name, target, tools } = platform;
    let mut build = Cmd::new("cargo", "build --release --package frondb-node");
    let mut built = target_folder();
    let mut strip = String::from("strip");
    if !is_here(platform) {
        let compiler = format!("{tools}-gcc");
        let packages = format!("gcc-{} libc6-dev-{name}-cross", tools.replace('_', "-"));
        let packages = packages.replace("-x64-", "-amd64-");
        install::apt(&compiler, &packages, || install::on_path(&compiler))?;
        let linker = target.replace('-', "_").to_uppercase();
        build = build.arg("--target").arg(target);
        build = build.env(&format!("CARGO_TARGET_{linker}_LINKER"), &compiler);
        built = built.join(target);
        strip = format!("{tools}-strip");
    }
    build.run().map_err(|e| {
        format!("{e}\nif the standard library is missing: rustup target add {target}")
    })?;
    let library = built.join("release/libfrondb_node.so");
    let to = package.join(format!("frondb.linux-{name}-gnu.node"));
    let strip = Cmd::new(&strip, "--strip-all -o").arg(&to.to_string_lossy());
    strip.arg(&library.to_string_lossy()).run()
}

/// Copies the files that `package.json` names, and itself, to the package.
fn copy_files(package: &Path) -> Result {
    let crate_folder = root().join(CRATE);
    for name in
        ["package.json", "index.js", "index.d.ts", "README.md", "LICENSE-MIT", "LICENSE-APACHE"]
    {
        copy(&crate_folder.join(name), &package.join(name))?;
    }
    let lib = package.join("lib");
    make(&lib)?;
    for (path, name) in files(&crate_folder.join("lib"))? {
        copy(&path, &lib.join(name))?;
    }
    Ok(())
}

/// Installs the package as the only one into a fresh folder, and runs a program there.
fn install_package(package: &Path) -> Result {
    let folder = installed();
    fresh(&folder)?;
    fs::write(folder.join("package.json"), "{\"private\": true}\n").map_err(|e| e.to_string())?;
    let npm = Cmd::new("npm", &format!("install {NPM}")).arg(&package.to_string_lossy());
    npm.dir(folder.clone()).run()?;
    let program = "const { open } = require('frondb'); \
         open('data').then(async (db) => { \
           const tree = await db.tree('t'); \
           await tree.put('key', 'value'); \
           console.log(String(await tree.get('key'))); \
           await db.close(); \
         });";
    let said = Cmd::new("node", "--eval").arg(program).dir(folder).output()?;
    if said == "value" { Ok(()) } else { Err(format!("the installed package printed `{said}`")) }
}

/// Compiles programs with the types of the installed package.
fn check_types() -> Result {
    let folder = installed();
    install_pinned(&folder, |name| OF_TYPES.contains(&name))?;
    copy(&root().join(CRATE).join("tests/types.ts"), &folder.join("types.ts"))?;
    let options = "--noEmit --strict --target es2022 --lib es2022,esnext.disposable --module nodenext --types node types.ts";
    let compiler = folder.join("node_modules/.bin/tsc");
    Cmd::new(&compiler.to_string_lossy(), options).dir(folder).run()
}

/// Installs pinned packages into a folder.
fn install_pinned(folder: &Path, wanted: impl Fn(&str) -> bool) -> Result {
    let packages: Vec<String> = pinned()?
        .into_iter()
        .filter(|(name, _)| wanted(name))
        .map(|(name, version)| format!("{name}@{version}"))
        .collect();
    Cmd::new("npm", &format!("install {NPM} {}", packages.join(" ")))
        .dir(folder.to_owned())
        .run()
        .map_err(|e| format!("packages of npm are missing, so this was NOT checked: {e}"))
}

/// Returns the names and versions of the development dependencies.
fn pinned() -> Result<Vec<(String, String)>> {
    let manifest = read(&root().join(CRATE).join("package.json"))?;
    let manifest: Value =
        serde_json::from_str(&manifest).map_err(|e| format!("{CRATE}/package.json: {e}"))?;
    let packages = manifest["devDependencies"].as_object().into_iter().flatten();
    let pair = |(name, version): (&String, &Value)| {
        (name.clone(), version.as_str().unwrap_or_default().to_owned())
    };
    Ok(packages.map(pair).collect())
}

/// Returns the paths of the tests from the root.
fn tests_of_crate() -> Result<Vec<String>> {
    let tests = files(&root().join(CRATE).join("tests"))?.into_iter();
    let tests = tests.filter(|(_, name)| name.ends_with(".test.mjs"));
    Ok(tests.map(|(_, name)| format!("{CRATE}/tests/{name}")).collect())
}

/// Returns the paths and names of the files in a folder, sorted.
fn files(folder: &Path) -> Result<Vec<(PathBuf, String)>> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let mut files: Vec<_> = paths
        .filter(|path| path.is_file())
        .filter_map(|path| Some((path.clone(), path.file_name()?.to_str()?.to_owned())))
        .collect();
    files.sort();
    Ok(files)
}

/// Returns the only file of a folder.
fn only(folder: &Path) -> Result<PathBuf> {
    match <[_; 1]>::try_from(files(folder)?) {
        Ok([(path, _)]) => Ok(path),
        Err(_) => Err(format!("{} must have one file", folder.display())),
    }
}

fn copy(from: &Path, to: &Path) -> Result {
    fs::copy(from, to).map(drop).map_err(|e| format!("cannot copy {}: {e}", from.display()))
}

fn make(folder: &Path) -> Result {
    fs::create_dir_all(folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))
}

/// Makes an empty folder.
fn fresh(folder: &Path) -> Result {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {e}", folder.display()))
        }
        _ => make(folder),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_are_pinned() {
        let pinned = pinned().unwrap();
        for wanted in OF_TYPES.iter().chain(&["lmdb", "classic-level"]) {
            assert!(pinned.iter().any(|(name, _)| name == wanted), "{wanted}: {pinned:?}");
        }
        let is_version = |text: &str| text.split('.').all(|part| part.parse::<u32>().is_ok());
        assert!(pinned.iter().all(|(_, version)| is_version(version)), "{pinned:?}");
    }

    #[test]
    fn versions_of_node_are_compared_by_their_numbers() {
        assert!(
            ["v18.19.0", "v18.20.4", "v20.0.0", "v100.1.0"].map(is_recent).iter().all(|it| *it)
        );
        assert!(!["v18.9.1", "v16.20.2", "", "v20"].map(is_recent).iter().any(|it| *it));
        let manifest = read(&root().join(CRATE).join("package.json")).unwrap();
        let (major, minor) = OLDEST;
        assert!(manifest.contains(&format!("\"node\": \">={major}.{minor}\"")));
    }

    #[test]
    fn platforms_are_known_by_their_names() {
        let names = |given| platforms(given).map(|all| all.iter().map(|it| it.name).collect());
        assert_eq!(names(Some("x64,arm64")), Ok(vec!["x64", "arm64"]));
        assert!(platforms(Some("x64,mips")).is_err_and(|e| e.contains("unknown platform `mips`")));
        assert_eq!(names(None).map(|all: Vec<&str>| all.len()), Ok(1));
    }
}
