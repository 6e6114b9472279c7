//! Checks house rules that the compiler, clippy and rustfmt do not check.
//!
//! | module | rules |
//! |---|---|
//! | [`source`] | head comment, file length, ASCII, blanks, unfinished work, bodies in lib.rs |
//! | [`shims`] | time, threads, locks and files only through the crates that own them |
//! | [`names`] | no synonym of the glossary's nouns in names |
//! | [`decoders`] | a fuzz target for every decoder |
//! | [`rules`] | a test for every rule of docs/design/rules.md |
//! | [`links`] | every link in a document leads somewhere |
//! | [`contents`] | every page is in the contents, docs/README.md |
//! | [`examples`] | a test runs every example on a page |
//! | [`places`] | every place in the code that a page of the design names exists |
//! | [`pages`] | pages that are written from the source are up to date |
//! | [`report`] | README.md, benchmarks.md and heritage.md agree with the recorded figures |
//! | [`packages`] | debian/ has the version of Cargo.toml |
//! | [`mariadb`] | a reason for each difference in MariaDB's own test suites |

mod contents;
mod decoders;
mod examples;
mod links;
mod names;
mod places;
mod rules;
mod shims;
mod source;

use crate::workspace::{SourceFile, root, rust_files_below};
use crate::{Result, mariadb, packages, pages, report};

pub(crate) use contents::{CONTENTS, Listed, pages_of_contents};
pub(crate) use source::code_of_line;

/// Returns all deviations from the rules, one sentence each, with file and line.
pub(crate) fn check() -> Result<Vec<String>> {
    let mut findings = Vec::new();
    let files = all_rust_files()?;
    let synonyms = names::synonyms()?;
    for file in &files {
        findings.extend(source::check(file));
        findings.extend(shims::check(file));
        findings.extend(names::check(file, &synonyms));
    }
    findings.extend(rules::check(&files)?);
    findings.extend(decoders::check()?);
    findings.extend(links::check()?);
    findings.extend(contents::check()?);
    findings.extend(examples::check()?);
    findings.extend(places::check(&files)?);
    findings.extend(pages::check()?);
    findings.extend(report::check()?);
    findings.extend(mariadb::check_differences()?);
    findings.extend(packages::check()?);
    Ok(findings)
}

fn all_rust_files() -> Result<Vec<SourceFile>> {
    let mut files = Vec::new();
    for folder in
        ["crates", "mariadb/convert", "mariadb/harness", "mariadb/sql-bench", "xtask", "fuzz"]
    {
        files.extend(rust_files_below(&root().join(folder))?);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_house_rules_are_kept() {
        let findings = super::check().unwrap();
        assert!(findings.is_empty(), "{}", findings.join("\n"));
    }
}
