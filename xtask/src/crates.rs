//! `make crates`: makes the packages of the library, as they would be published, and builds each
//! of them alone, from its archive and those of the others: so a file that a package lacks is
//! noticed. The crate `frondb` and the crates that it needs are published together.
//!
//! [`check`], a part of `make test`, finds in an instant what would make cargo refuse a package, or
//! would make it incomplete.

use std::collections::BTreeSet;

use toml::{Table, Value};

use crate::Result;
use crate::step::Cmd;
use crate::workspace::{Member, members, read_toml, root};

/// The crate that users name. All others are published only because it needs them.
const LIBRARY: &str = "frondb";

/// Keys of `[package]` without which cargo refuses to publish.
const KEYS: [&str; 4] = ["description", "license", "repository", "rust-version"];

/// Files that must be in the folder of a package; they are links to those of the workspace.
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// Makes the packages and builds each of them.
pub(crate) fn run() -> Result {
    crate::command::report("crates", check())?;
    // From the files as they are, committed or not.
    let command = Cmd::new("cargo", "package --locked --allow-dirty");
    let published = members()?.into_iter().filter(|member| is_published(&member.manifest));
    published.fold(command, |it, member| it.arg("-p").arg(&member.package)).run()
}

/// Returns what is wrong with the packages, one sentence each.
pub(crate) fn check() -> Result<Vec<String>> {
    let members = members()?;
    let needed = needed(LIBRARY, &members);
    let mut findings = Vec::new();
    for member in &members {
        let name = &member.package;
        match (needed.contains(name), is_published(&member.manifest)) {
            (true, true) => findings.extend(lacks(member)),
            (true, false) => findings.push(format!("{name} is not published; {LIBRARY} needs it")),
            (false, true) => findings.push(format!("{name} is published; {LIBRARY} has no need")),
            (false, false) => {}
        }
    }
    findings.extend(versions(&read_toml(&root().join("Cargo.toml"))?, &needed));
    Ok(findings)
}

fn is_published(manifest: &Table) -> bool {
    let package = manifest.get("package").and_then(|package| package.get("publish"));
    package == Some(&Value::Boolean(true))
}

/// Returns `package` and the crates of the workspace that it depends on, directly or not.
fn needed(package: &str, members: &[Member]) -> BTreeSet<String> {
    let mut needed = BTreeSet::new();
    let mut open = vec![package.to_owned()];
    while let Some(name) = open.pop() {
        let Some(member) = members.iter().find(|member| member.package == name) else { continue };
        if needed.insert(name)
            && let Some(uses) = member.manifest.get("dependencies").and_then(Value::as_table)
        {
            open.extend(uses.keys().cloned());
        }
    }
    needed
}

/// Returns what a package lacks.
fn lacks(member: &Member) -> Vec<String> {
    let package = member.manifest.get("package");
    let has_key = |key: &&str| package.is_some_and(|package| package.get(key).is_some());
    let keys = KEYS.into_iter().filter(|key| !has_key(key));
    let files = LICENCES.into_iter().filter(|file| !member.path.join(file).is_file());
    keys.chain(files).map(|what| format!("the package {} has no {what}", member.package)).collect()
}

/// Compares the versions by which the needed crates name each other with that of the workspace. A
/// dependency without a version cannot be published.
fn versions(workspace: &Table, needed: &BTreeSet<String>) -> Vec<String> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or("none").to_owned();
    let of = |path: [&str; 2]| workspace.get("workspace")?.get(path[0])?.get(path[1]);
    let own = text(of(["package", "version"]));
    let named = needed.iter().map(|name| {
        (name, text(of(["dependencies", name]).and_then(|dependency| dependency.get("version"))))
    });
    named
        .filter(|(_, version)| *version != own)
        .map(|(name, version)| format!("Cargo.toml names {name} by version {version}, not {own}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, manifest: &str) -> Member {
        Member {
            folder: name.to_owned(),
            package: name.to_owned(),
            path: name.into(),
            manifest: manifest.parse().unwrap(),
        }
    }

    #[test]
    fn the_packages_can_be_published() {
        assert_eq!(check(), Ok(Vec::new()));
    }

    #[test]
    fn what_a_crate_needs_is_followed_through_other_crates() {
        let members = [
            member("a", "[dependencies]\nb = \"1\"\nserde = \"1\""),
            member("b", "[dependencies]\nc = \"1\""),
            member("c", ""),
            member("d", "[dependencies]\na = \"1\""),
        ];
        assert_eq!(needed("a", &members), ["a", "b", "c"].map(str::to_owned).into());
    }

    #[test]
    fn what_a_package_lacks_is_found() {
        let manifest = "[package]\npublish = true\ndescription = \"x\"\nlicense = \"MIT\"\n\
                        repository = \"x\"\nrust-version.workspace = true";
        let member = member("no-folder", manifest);
        assert!(is_published(&member.manifest));
        assert_eq!(lacks(&member).len(), 2, "both licences");
        let workspace = "[workspace.package]\nversion = \"1.2.0\"\n[workspace.dependencies]\n\
                         a = { version = \"1.2.0\" }\nb = { version = \"1.1.0\" }\nc = { path = \"c\" }";
        let needed = ["a", "b", "c"].map(str::to_owned).into();
        assert_eq!(
            versions(&workspace.parse().unwrap(), &needed),
            [
                "Cargo.toml names b by version 1.1.0, not 1.2.0",
                "Cargo.toml names c by version none, not 1.2.0"
            ]
        );
    }
}
