//! Tests of the server's own suites whose result with FronDB differs from the expected result. The
//! differences are files `<test>.rdiff` and `disabled.def` of our overlay. Each has a row with its
//! reason in mariadb/mysql-test/README.md.
//!
//! ```text
//!   | storage_engine.alter_table | server | prints a default and a collation | ...
//!     test                         kind     what and why
//! ```
//!
//! Kind `server`: every engine has the difference, because the server is newer than the expected
//! results. Kind `innodb`: InnoDB has the same difference, byte for byte, on the same server. Kind
//! `engine`: only FronDB has the difference. Kind `disabled`: the test does not run.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Result;
use crate::workspace::{files_below, read, root};

const PAGE: &str = "mariadb/mysql-test/README.md";
const OVERLAY: &str = "mariadb/mysql-test/storage_engine";

const KINDS: [&str; 4] = ["server", "innodb", "engine", "disabled"];

/// Tests with the kind of their difference.
type Kinds = BTreeMap<String, String>;

/// Reads the rows of the page.
pub(crate) fn documented() -> Result<Kinds> {
    Ok(rows(&read(&root().join(PAGE))?))
}

/// Finds differences without a row, rows without a difference, and errors in the table of sums.
pub(crate) fn check() -> Result<Vec<String>> {
    let mut present = Kinds::new();
    for file in files_below(&root().join(OVERLAY), "rdiff")? {
        present.insert(name(&file.path, ".rdiff"), "rdiff".to_owned());
    }
    for file in files_below(&root().join(OVERLAY), "def")? {
        let suite = name(&file.path, "/disabled.def");
        present.extend(
            disabled(&file.text).map(|test| (format!("{suite}.{test}"), "disabled".to_owned())),
        );
    }
    let documented = documented()?;
    let mut findings = compare(&present, &documented);
    findings.extend(wrong_sums(&read(&root().join(PAGE))?, &documented));
    Ok(findings)
}

/// Finds errors in the page's table of sums. Its first row, `| tests | 121 |`, counts all tests;
/// each further row counts the tests with one result. The row of a kind of difference contains the
/// name of the kind.
fn wrong_sums(page: &str, documented: &Kinds) -> Vec<String> {
    let table = page.lines().skip_while(|line| !line.starts_with("| tests |"));
    let rows: Vec<(&str, usize)> = table
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| {
            let (what, number) = line.trim_matches('|').rsplit_once('|')?;
            Some((what, number.trim().parse().ok()?))
        })
        .collect();
    let Some(((_, total), parts)) = rows.split_first() else {
        return vec![format!("{PAGE}: no table of sums")];
    };
    let mut findings = Vec::new();
    for kind in KINDS {
        let counted = documented.values().filter(|known| *known == kind).count();
        let said = parts.iter().find(|(what, _)| what.contains(&format!("(`{kind}`)")));
        if said.is_none_or(|&(_, number)| number != counted) {
            findings.push(format!("{PAGE}: {counted} tests are of the kind `{kind}`"));
        }
    }
    let sum: usize = parts.iter().map(|(_, number)| number).sum();
    if sum != *total {
        findings.push(format!("{PAGE}: the table of sums makes {sum} tests of {total}"));
    }
    findings
}

/// Returns the name of a test, for example `storage_engine/trx.xa`, from its file in the overlay;
/// for a disabled.def, the name of its suite.
fn name(path: &str, end: &str) -> String {
    let inner = path.strip_prefix("mariadb/mysql-test/").unwrap_or(path);
    let inner = inner.strip_suffix(end).unwrap_or(inner);
    if end.starts_with('/') {
        return inner.to_owned();
    }
    let file = Path::new(inner);
    let suite = file.parent().unwrap_or(Path::new("")).display();
    format!("{suite}.{}", file.file_name().unwrap_or_default().to_string_lossy())
}

/// Returns the test names in a disabled.def.
fn disabled(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| Some(line.split_once(':')?.0.trim()))
}

fn rows(page: &str) -> Kinds {
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    page.lines()
        .map(cells)
        .filter(|cells| cells.len() > 3 && cells[1].starts_with("storage_engine"))
        .map(|mut cells| (cells.swap_remove(1), cells[2].clone()))
        .collect()
}

fn compare(present: &Kinds, documented: &Kinds) -> Vec<String> {
    let mut findings = Vec::new();
    for (test, how) in present {
        let fits = match documented.get(test).map(String::as_str) {
            Some("disabled") => how == "disabled",
            Some("server" | "innodb" | "engine") => how == "rdiff",
            _ => false,
        };
        if !fits {
            findings.push(format!("{PAGE}: {test} ({how}) has no row, or one of another kind"));
        }
    }
    let idle = documented.keys().filter(|test| !present.contains_key(*test));
    findings.extend(idle.map(|test| format!("{PAGE}: {test} has a row and no difference")));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_rows() {
        let kinds = Kinds::from([("storage_engine.a".to_owned(), "server".to_owned())]);
        let page = |server: u32, exact: u32| {
            format!(
                "| tests | 5 |\n|---|---|\n| x (`disabled`) | 0 |\n| exact | {exact} |\n\
                 | y (`server`) | {server} |\n| z (`innodb`) | 0 |\n| e (`engine`) | 0 |\n\n| tests | 7 |\n"
            )
        };
        assert_eq!(wrong_sums(&page(1, 4), &kinds), Vec::<String>::new());
        assert_eq!(wrong_sums(&page(2, 4), &kinds).len(), 2);
        assert_eq!(wrong_sums(&page(1, 3), &kinds).len(), 1);
        assert_eq!(wrong_sums("nothing", &kinds).len(), 1);
    }

    #[test]
    fn every_difference_has_its_row_and_every_row_its_difference() {
        let page = "| test | kind |\n|---|---|\n| storage_engine.a | server | x |\n\
                    | storage_engine/trx.b | disabled | y |\n| storage_engine.gone | engine | z |\n";
        let present = Kinds::from(
            [
                ("storage_engine.a", "rdiff"),
                ("storage_engine/trx.b", "rdiff"),
                ("storage_engine.c", "rdiff"),
            ]
            .map(|(test, how)| (test.to_owned(), how.to_owned())),
        );
        let findings = compare(&present, &rows(page));
        assert_eq!(findings.len(), 3, "{findings:?}");
        assert_eq!(
            name("mariadb/mysql-test/storage_engine/trx/xa.rdiff", ".rdiff"),
            "storage_engine/trx.xa"
        );
        assert_eq!(disabled("# head\na : why\nb: c: d\n").collect::<Vec<_>>(), ["a", "b"]);
    }
}
