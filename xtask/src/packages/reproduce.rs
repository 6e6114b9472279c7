//! Builds the packages a second time, from a copy of the checkout in another folder and with another
//! folder for the build output, and compares all files.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::debian::ending;
use super::{folder, work};
use crate::step::Cmd;
use crate::{Result, mariadb};

/// Compares the packages of `suite` with those of a second build.
///
/// # Errors
/// The names of packages that differ.
pub(super) fn check(suite: &str) -> Result {
    let place = work(suite).join("again");
    if place.exists() {
        fs::remove_dir_all(&place).map_err(|e| format!("{}: {e}", place.display()))?;
    }
    let (copy, output) = (place.join("checkout"), place.join("output"));
    fs::create_dir_all(&copy).map_err(|e| format!("{}: {e}", copy.display()))?;
    Cmd::new("sh", "-e -c")
        .arg("git ls-files -z | tar --create --null --files-from=- | tar --extract --directory \"$0\"")
        .arg(&copy.display().to_string())
        .run()?;
    share_root(suite, &output)?;
    Cmd::new("cargo", "run --quiet --package xtask -- packages")
        .arg(&format!("SUITE={suite}"))
        .dir(copy)
        .env("CARGO_TARGET_DIR", &output.display().to_string())
        .run()?;
    let (first, second) = (sums(&folder(suite))?, sums(&output.join("packages").join(suite))?);
    let differences = differences(&first, &second);
    if !differences.is_empty() {
        return Err(format!("a second build has other packages: {}", differences.join(", ")));
    }
    println!("test {} packages are the same in a second build ... ok", first.len());
    Ok(())
}

/// Makes the second build use the root and the server's source of the first.
fn share_root(suite: &str, output: &Path) -> Result {
    let (_, root) = mariadb::root_of(suite)?;
    let from = root.parent().unwrap_or(&root);
    let to = output.join(from.file_name().unwrap_or_default());
    fs::create_dir_all(&to).map_err(|e| format!("{}: {e}", to.display()))?;
    symlink(&root, to.join("root")).map_err(|e| format!("{}: {e}", to.display()))?;
    let copy = Cmd::new("cp", "--archive").arg(&from.join("source").display().to_string());
    copy.arg(&to.display().to_string()).run()
}

/// Returns the sum of each package in a folder, by its name.
fn sums(folder: &Path) -> Result<BTreeMap<String, String>> {
    let sum = |package: &Path| {
        let name = package.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let line = Cmd::new("sha256sum", "").arg(&package.display().to_string()).output()?;
        Ok((name, line.split(' ').next().unwrap_or_default().to_owned()))
    };
    ending(folder, ".deb")?.iter().map(|package| sum(package)).collect()
}

/// Returns the names that are in one of the builds only, or have another sum.
fn differences<'a>(
    first: &'a BTreeMap<String, String>,
    second: &'a BTreeMap<String, String>,
) -> Vec<&'a str> {
    let names = first.keys().chain(second.keys().filter(|name| !first.contains_key(*name)));
    names.filter(|name| first.get(*name) != second.get(*name)).map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_missing_and_new_packages_are_named() {
        let sums = |list: &[(&str, &str)]| {
            list.iter().map(|(name, sum)| ((*name).to_owned(), (*sum).to_owned())).collect()
        };
        let first = sums(&[("a", "1"), ("b", "2"), ("c", "3")]);
        assert_eq!(differences(&first, &first), [""; 0]);
        let second = sums(&[("a", "1"), ("b", "9"), ("d", "4")]);
        assert_eq!(differences(&first, &second), ["b", "c", "d"]);
    }
}
