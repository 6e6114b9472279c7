//! Checks every Cargo.toml against layers.toml, and every external dependency against
//! docs/dependencies.md.
//!
//! The compiler forbids cycles of crates, but does not know which crate may use which other crates.
//! A table lists the allowed uses, so a new dependency between crates is a decision that shows in a
//! diff.
//!
//! ```text
//!   layers.toml            Cargo.toml of each crate          docs/dependencies.md
//!   [run]                  [dependencies]                    | `zstd` | why |
//!   level = 3        <---  frondb-merge.workspace = true
//!   uses = ["merge"]       zstd.workspace = true       --->
//! ```

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use crate::Result;
use crate::workspace::{Member, members, read, read_toml, root};

/// One entry of layers.toml.
#[derive(Debug)]
struct Layer {
    level: i64,
    uses: BTreeSet<String>,
    tests_only: bool,
}

type Layers = BTreeMap<String, Layer>;

/// Returns all deviations from the two tables, one sentence each.
pub(crate) fn check() -> Result<Vec<String>> {
    let layers = parse(&read_toml(&root().join("layers.toml"))?)?;
    let members = members()?;
    let workspace = read_toml(&root().join("Cargo.toml"))?;
    let reasons = documented(&read(&root().join("docs/dependencies.md"))?);

    let mut findings = check_table(&layers);
    findings.extend(check_members(&layers, &members));
    for member in &members {
        findings.extend(check_member(&layers, &members, member));
    }
    findings.extend(check_reasons(&external(&workspace), &reasons));
    findings.extend(check_lock(&members, &read_toml(&root().join("fuzz/Cargo.lock"))?));
    Ok(findings)
}

fn parse(table: &Table) -> Result<Layers> {
    let mut layers = Layers::new();
    for (name, row) in table {
        let level = row.get("level").and_then(Value::as_integer);
        let uses = row.get("uses").and_then(Value::as_array);
        let (Some(level), Some(uses)) = (level, uses) else {
            return Err(format!("layers.toml: [{name}] needs `level` and `uses`"));
        };
        let uses = uses.iter().filter_map(|u| u.as_str().map(str::to_owned)).collect();
        let tests_only = row.get("tests-only").and_then(Value::as_bool).unwrap_or(false);
        layers.insert(name.clone(), Layer { level, uses, tests_only });
    }
    Ok(layers)
}

/// Checks the table itself: a crate may use only crates of lower levels, and a crate that ships may
/// not use a crate that is for tests only.
fn check_table(layers: &Layers) -> Vec<String> {
    let mut findings = Vec::new();
    for (name, layer) in layers {
        for used in &layer.uses {
            let Some(lower) = layers.get(used) else {
                findings.push(format!("layers.toml: {name} uses {used}, which has no entry"));
                continue;
            };
            if lower.level >= layer.level {
                findings.push(format!(
                    "layers.toml: {name} (level {}) must not use {used} (level {})",
                    layer.level, lower.level
                ));
            }
            if lower.tests_only && !layer.tests_only {
                findings.push(format!("layers.toml: {name} ships, and {used} is for tests only"));
            }
        }
    }
    findings
}

fn check_members(layers: &Layers, members: &[Member]) -> Vec<String> {
    let folders: BTreeSet<&str> = members.iter().map(|m| m.folder.as_str()).collect();
    let mut findings = Vec::new();
    for member in members {
        if !layers.contains_key(&member.folder) {
            findings.push(format!("layers.toml: crate {} has no entry", member.folder));
        }
        let expected = match member.folder.as_str() {
            product @ ("frondb" | "xtask") => product.to_owned(),
            "harness" => "frondb-mariadb-harness".to_owned(),
            part => format!("frondb-{part}"),
        };
        if member.package != expected {
            findings.push(format!("crate {}: package should be {expected}", member.folder));
        }
    }
    for name in layers.keys().filter(|name| !folders.contains(name.as_str())) {
        findings.push(format!("layers.toml: [{name}] is not a crate"));
    }
    findings
}

fn check_member(layers: &Layers, members: &[Member], member: &Member) -> Vec<String> {
    let Some(layer) = layers.get(&member.folder) else { return Vec::new() };
    let name = &member.folder;
    let mut findings = Vec::new();
    let mut used = BTreeSet::new();
    for (section, dependency, value) in dependencies(&member.manifest) {
        let inherited = value.get("workspace").and_then(Value::as_bool) == Some(true);
        // With a version, `cargo package` would look for the crate among the published ones.
        let is_self =
            dependency == member.package && value.get("path").and_then(Value::as_str) == Some(".");
        if !inherited && !is_self {
            findings.push(format!(
                "crate {name}: {dependency} must come from [workspace.dependencies]"
            ));
        }
        let Some(ours) = members.iter().find(|m| m.package == dependency) else { continue };
        if section == "dev-dependencies" {
            // A crate may name itself among its dev-dependencies, to turn on a feature in its
            // tests.
            let below = layers.get(&ours.folder).is_some_and(|l| l.level < layer.level);
            if !below && ours.folder != "testkit" && ours.folder != *name {
                findings.push(format!(
                    "crate {name}: its tests use {}, which is not below it",
                    ours.folder
                ));
            }
        } else {
            used.insert(ours.folder.clone());
            if !layer.uses.contains(&ours.folder) {
                findings.push(format!(
                    "crate {name}: layers.toml does not allow it to use {}",
                    ours.folder
                ));
            }
        }
    }
    for idle in layer.uses.difference(&used) {
        findings.push(format!("layers.toml: {name} may use {idle} and does not: drop it"));
    }
    findings
}

/// Returns all dependencies of a manifest as (section, package, value), including those for single
/// platforms.
fn dependencies(manifest: &Table) -> Vec<(&'static str, String, Value)> {
    const SECTIONS: [&str; 3] = ["dependencies", "build-dependencies", "dev-dependencies"];
    let mut tables = vec![manifest];
    if let Some(targets) = manifest.get("target").and_then(Value::as_table) {
        tables.extend(targets.values().filter_map(Value::as_table));
    }
    let mut found = Vec::new();
    for table in tables {
        for section in SECTIONS {
            let Some(list) = table.get(section).and_then(Value::as_table) else { continue };
            for (name, value) in list {
                found.push((section, name.clone(), value.clone()));
            }
        }
    }
    found
}

/// Returns the names in [workspace.dependencies] that are not crates of this workspace.
fn external(workspace: &Table) -> BTreeSet<String> {
    let list = workspace.get("workspace").and_then(|w| w.get("dependencies")?.as_table());
    list.into_iter()
        .flatten()
        .filter(|(_, value)| value.get("path").is_none())
        .map(|(name, _)| name.clone())
        .collect()
}

/// Returns the names in the rows of docs/dependencies.md that give a reason.
fn documented(page: &str) -> BTreeSet<String> {
    page.lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
            let name = cells.next()?.strip_suffix('`')?;
            let reason = cells.next()?;
            (!reason.is_empty()).then(|| name.to_owned())
        })
        .collect()
}

fn check_reasons(external: &BTreeSet<String>, documented: &BTreeSet<String>) -> Vec<String> {
    let missing = external
        .difference(documented)
        .map(|name| format!("docs/dependencies.md: {name} has no row with a reason"));
    let stale = documented
        .difference(external)
        .map(|name| format!("docs/dependencies.md: {name} is no longer in Cargo.toml"));
    missing.chain(stale).collect()
}

/// Finds dependencies that fuzz/Cargo.lock lacks. Cargo updates only the lock file of the main
/// workspace. Without this check, a stale lock file of fuzz/ would fail later, in `make audit` and
/// `make fuzz`.
fn check_lock(members: &[Member], lock: &Table) -> Vec<String> {
    let packages = lock.get("package").and_then(Value::as_array);
    let mut findings = Vec::new();
    for package in packages.into_iter().flatten() {
        let name = package.get("name").and_then(Value::as_str);
        let Some(member) = members.iter().find(|m| Some(&*m.package) == name) else { continue };
        let known = package.get("dependencies").and_then(Value::as_array);
        // An entry is a name, followed by a version if the lock file has several versions of the
        // package.
        let known: BTreeSet<&str> = known
            .into_iter()
            .flatten()
            .filter_map(|known| known.as_str()?.split(' ').next())
            .collect();
        for (section, dependency, value) in dependencies(&member.manifest) {
            let optional = value.get("optional").and_then(Value::as_bool) == Some(true);
            if section != "dev-dependencies" && !optional && !known.contains(&*dependency) {
                findings.push(format!(
                    "fuzz/Cargo.lock: {} uses {dependency}; `cargo metadata` in fuzz/ updates it",
                    member.package
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn every_crate_keeps_to_its_layer_and_every_dependency_has_a_reason() {
        let findings = check().unwrap();
        assert!(findings.is_empty(), "{}", findings.join("\n"));
    }

    fn layers(text: &str) -> Layers {
        parse(&text.parse().unwrap()).unwrap()
    }

    fn member(folder: &str, manifest: &str) -> Member {
        Member {
            folder: folder.to_owned(),
            package: format!("frondb-{folder}"),
            path: PathBuf::new(),
            manifest: manifest.parse().unwrap(),
        }
    }

    #[test]
    fn a_table_that_points_sideways_or_up_is_found() {
        let layers = layers(
            "[a]\nlevel = 1\nuses = [\"b\", \"gone\"]\n[b]\nlevel = 1\nuses = []\n\
             [c]\nlevel = 2\nuses = [\"t\"]\n[t]\nlevel = 1\nuses = []\ntests-only = true\n",
        );
        assert_eq!(
            check_table(&layers),
            [
                "layers.toml: a (level 1) must not use b (level 1)",
                "layers.toml: a uses gone, which has no entry",
                "layers.toml: c ships, and t is for tests only",
            ]
        );
    }

    #[test]
    fn an_edge_that_the_table_lacks_is_found_also_in_a_target_section() {
        let layers = layers(
            "[a]\nlevel = 0\nuses = []\n[b]\nlevel = 1\nuses = []\n[c]\nlevel = 2\nuses = [\"b\"]",
        );
        let members = [
            member("a", ""),
            member("b", ""),
            member("c", "[target.'cfg(unix)'.dependencies]\nfrondb-a.workspace = true\n"),
        ];
        assert_eq!(
            check_member(&layers, &members, &members[2]),
            [
                "crate c: layers.toml does not allow it to use a",
                "layers.toml: c may use b and does not: drop it"
            ]
        );
    }

    #[test]
    fn tests_may_use_lower_crates_and_testkit_only() {
        let layers = layers(
            "[a]\nlevel = 1\nuses = []\n[b]\nlevel = 2\nuses = []\n\
             [testkit]\nlevel = 2\nuses = []\ntests-only = true",
        );
        let manifest =
            "[dev-dependencies]\nfrondb-b.workspace = true\nfrondb-testkit.workspace = true\n";
        let members = [member("a", manifest), member("b", ""), member("testkit", "")];
        assert_eq!(
            check_member(&layers, &members, &members[0]),
            ["crate a: its tests use b, which is not below it"]
        );
    }

    #[test]
    fn a_dependency_with_its_own_version_is_found() {
        let layers = layers("[a]\nlevel = 1\nuses = []");
        let members = [member("a", "[dependencies]\nzstd = \"1\"\n")];
        let findings = check_member(&layers, &members, &members[0]);
        assert_eq!(findings, ["crate a: zstd must come from [workspace.dependencies]"]);
    }

    #[test]
    fn dependencies_missing_from_the_lock_file_of_the_fuzzers_are_found() {
        let manifest = "[dependencies]\nzstd.workspace = true\nsmallvec.workspace = true\n\
                        tikv-jemallocator = { workspace = true, optional = true }\n\
                        [dev-dependencies]\nproptest.workspace = true\n";
        let members = [member("a", manifest), member("b", manifest)];
        let lock = "[[package]]\nname = \"frondb-a\"\ndependencies = [\"zstd 0.13.3\"]\n";
        let findings = check_lock(&members, &lock.parse().unwrap());
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].contains("frondb-a uses smallvec"));
    }

    #[test]
    fn dependencies_without_a_reason_and_reasons_without_one_are_found() {
        let workspace =
            "[workspace.dependencies]\nzstd = \"1\"\nfrondb-core = { path = \"x\" }\nserde = \"1\"";
        let page =
            "| crate | why |\n|---|---|\n| `zstd` | a codec |\n| `gone` | old |\n| `serde` | |";
        let findings = check_reasons(&external(&workspace.parse().unwrap()), &documented(page));
        assert_eq!(findings.len(), 2);
        assert!(findings[0].contains("serde has no row"));
        assert!(findings[1].contains("gone is no longer in Cargo.toml"));
    }
}
