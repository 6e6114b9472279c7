//! Checks that a test compiles or runs every example of the documentation. A block of code names its
//! language, and each language has its test:
//!
//! | language | what runs it |
//! |---|---|
//! | `rust` | it is copied from the library's documentation tests ([`pages`](crate::pages)) |
//! | `c` | it is a part of a program in `crates/capi/examples` or `tests/c`, which tests compile and run |
//! | `sql` | `mariadb/harness/tests/pages.rs` runs it in a server |
//! | `sh` | `crates/cli/tests/command/pages.rs` runs its commands `frondb`; this check knows `make` and `cargo xtask`, and [`OTHER`] has the tests of other commands |
//! | `ini`, `toml` | [`OTHER`] |
//! | `text` | nothing: output, drawings, formats |

use crate::Result;
use crate::markdown::{Fence, fences_of};
use crate::pages::has_examples;
use crate::workspace::{SourceFile, files_below, read, root};

use super::contents::{Listed, pages_of_contents};

/// Other languages and commands, the page on which they stand, and the test that runs them there.
const OTHER: &[(&str, &str, &str)] = &[
    ("ini", "mariadb/README.md", "mariadb/harness/tests/recipe.rs"),
    ("js", "README.md", "crates/node/tests/package.test.mjs"),
    ("js", "docs/operating/node.md", "crates/node/tests/package.test.mjs"),
    ("npm install", "README.md", "xtask/src/node.rs"),
    ("npm install", "docs/operating/node.md", "xtask/src/node.rs"),
    ("python", "README.md", "crates/python/tests/test_package.py"),
    ("python", "docs/operating/python.md", "crates/python/tests/test_package.py"),
    ("pip", "README.md", "xtask/src/python.rs"),
    ("python3 -m venv", "docs/operating/python.md", "xtask/src/python.rs"),
    ("venv/bin/pip", "docs/operating/python.md", "xtask/src/python.rs"),
    ("toml", "README.md", "crates/frondb/Cargo.toml"),
    ("cargo build", "mariadb/README.md", "xtask/src/mariadb/plugin.rs"),
    ("cmake", "mariadb/README.md", "xtask/src/mariadb/plugin.rs"),
    ("cc", "README.md", "crates/capi/tests/c_programs.rs"),
    ("cc", "docs/operating/c-api.md", "crates/capi/tests/c_programs.rs"),
    ("./program", "docs/operating/c-api.md", "crates/capi/tests/c_programs.rs"),
    ("frondb-convert", "mariadb/docs/convert.md", "mariadb/convert/tests/convert.rs"),
    ("set", "mariadb/docs/backups.md", "mariadb/harness/tests/backups.rs"),
    ("mariadb", "mariadb/docs/backups.md", "mariadb/harness/tests/backups.rs"),
    ("frondb=$!", "mariadb/docs/backups.md", "mariadb/harness/tests/backups.rs"),
    ("until", "mariadb/docs/backups.md", "mariadb/harness/tests/backups.rs"),
    ("kill", "mariadb/docs/backups.md", "mariadb/harness/tests/backups.rs"),
    ("sleep", "mariadb/docs/backups.md", "mariadb/harness/tests/backups.rs"),
    ("done", "mariadb/docs/backups.md", "mariadb/harness/tests/backups.rs"),
    ("wait", "mariadb/docs/backups.md", "mariadb/harness/tests/backups.rs"),
    ("mariadb-backup", "mariadb/docs/backups.md", "mariadb/harness/tests/backups.rs"),
    ("mariadb-dump", "mariadb/docs/backups.md", "mariadb/harness/tests/pages.rs"),
    ("mydumper", "mariadb/docs/backups.md", "mariadb/harness/tests/pages.rs"),
    ("cp", "mariadb/docs/backups.md", "crates/cli/tests/command/pages.rs"),
    ("chown", "mariadb/docs/backups.md", "crates/cli/tests/command/pages.rs"),
    ("apt-get install", "README.md", "xtask/src/packages/test/steps.rs"),
    ("apt-get install", "docs/operating/packages.md", "xtask/src/packages/test/steps.rs"),
    ("smartctl", "docs/operating/devices.md", "crates/cli/tests/command/pages.rs"),
];

/// Finds examples that no test runs.
pub(super) fn check() -> Result<Vec<String>> {
    let mut programs = files_below(&root().join("crates/capi/examples"), "c")?;
    programs.extend(files_below(&root().join("crates/capi/tests/c"), "c")?);
    let commands = read(&root().join("Makefile"))? + &read(&root().join("xtask/src/main.rs"))?;
    let mut findings = Vec::new();
    for (language, page, test) in OTHER {
        if !root().join(test).is_file() {
            findings.push(format!("{test}: is missing; it runs `{language}` of {page}"));
        }
    }
    for Listed { path, .. } in pages_of_contents()?.1 {
        let page = path.to_string_lossy().into_owned();
        // A page that does not exist is a dead link of the contents.
        let Ok(text) = read(&root().join(&path)) else { continue };
        for fence in fences_of(&text) {
            let line = text[..fence.place.start].lines().count();
            let untested = untested(&page, &fence, &programs, &commands);
            findings.extend(untested.map(|why| format!("{page}:{line}: {why}")));
        }
    }
    Ok(findings)
}

fn untested(page: &str, fence: &Fence, programs: &[SourceFile], commands: &str) -> Option<String> {
    let is_other = |name: &str| {
        OTHER
            .iter()
            .any(|(of, on, _)| *on == page && (name == *of || name.starts_with(&format!("{of} "))))
    };
    match fence.language {
        "text" | "sql" => None,
        "rust" if has_examples(page) => None,
        "c" if programs.iter().any(|program| has_lines(&program.text, fence.text)) => None,
        "c" => Some("is no part of a program that tests run".to_owned()),
        "sh" => {
            let known = |line: &str| is_known(line, commands) || is_other(line);
            let unknown = lines(fence.text).find(|line| !known(line))?;
            Some(format!("no test runs `{unknown}`"))
        }
        other if is_other(other) => None,
        "" => Some("give the block a language; `text` is not run".to_owned()),
        other => Some(format!("no test runs `{other}` on this page")),
    }
}

/// Returns the commands of a block, without comments.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let commands = text.lines().map(|line| line.split(" #").next().unwrap_or_default().trim());
    commands.filter(|line| !line.is_empty())
}

/// Returns whether the page's test of `frondb` runs the line, or it names a command of this project
/// that exists. `commands` is the Makefile and the list of xtask's commands.
fn is_known(line: &str, commands: &str) -> bool {
    let mut words = line.split_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some("frondb"), ..) => true,
        (Some("make"), Some(target), _) => commands.contains(&format!("\n{target}: ")),
        (Some("cargo"), Some("xtask"), Some(name)) => commands.contains(&format!("\n  {name} ")),
        _ => false,
    }
}

/// Returns whether the lines of `part` follow each other in `text`, whatever their indents.
fn has_lines(text: &str, part: &str) -> bool {
    let trimmed = |text: &str| {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join("\n")
    };
    trimmed(text).contains(&trimmed(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_without_a_test_are_found() {
        let program =
            SourceFile { path: "p.c".into(), text: "int main() {\n  a();\n\n  b();\n}\n".into() };
        let of = |page: &str, text: &str| {
            let fences = fences_of(text);
            untested(page, &fences[0], std::slice::from_ref(&program), "\ntest: x\n  tidy  y\n")
        };
        for tested in [
            "```text\nx\n```\n",
            "a\n```c\n    a();\n    b();\n```\n",
            "```sh\nmake test   # all\nfrondb create d\ncargo xtask tidy\n```\n",
            "```sql\nSELECT 1;\n```\n",
        ] {
            assert_eq!(of("docs/x.md", tested), None, "{tested}");
        }
        for not in [
            "```\nx\n```\n",
            "```c\nb();\na();\n```\n",
            "```sh\nmake tset\n```\n",
            "```sh\nrm -r /\n```\n",
            "```rust\nx();\n```\n",
            "```ini\n[x]\n```\n",
        ] {
            assert!(of("docs/x.md", not).is_some(), "{not}");
        }
        assert_eq!(of("mariadb/README.md", "```ini\n[x]\n```\n"), None);
    }
}
