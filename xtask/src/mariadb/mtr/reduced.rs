//! A suite with tests of the suite `innodb`, without the passages that need features that FronDB
//! refuses by design. A test ends at its first wrong statement, so with such a passage the rest of
//! the test would not be compared.
//!
//! The passages are left out of the tests and of their results. InnoDB runs the suite too: its run
//! passes only if exactly the results of the removed statements are left out.

use std::fs;
use std::path::Path;

use Part::{Answer, Both, Statements};

use crate::Result;

/// The suite's name.
pub(in crate::mariadb) const SUITE: &str = "innodb_reduced";
const OF: &str = "innodb";

/// The file from which a passage is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The test, and the result, which repeats the test's statements.
    Both,
    /// Only the test.
    Statements,
    /// Only the result.
    Answer,
}

/// A passage that is left out.
#[derive(Debug)]
struct Passage {
    test: &'static str,
    part: Part,
    /// The passage begins with the first occurrence of this text.
    from: &'static str,
    /// The passage ends before the next occurrence of this text.
    until: &'static str,
    why: &'static str,
}

const fn passage(
    test: &'static str,
    part: Part,
    from: &'static str,
    until: &'static str,
    why: &'static str,
) -> Passage {
    Passage { test, part, from, until, why }
}

const FULLTEXT: &str = "FULLTEXT is refused";
const DICTIONARY: &str = "reads InnoDB's own tables of the information schema";
const FILES: &str = "lists files of InnoDB";
const READ_ONLY: &str = "sets innodb_read_only";

/// The passages, in the order in which the code removes them from a test.
const PASSAGES: [Passage; 18] = [
    passage("fk_drop_alter", Both, SYS_FOREIGN, "DROP TABLE best.t2", DICTIONARY),
    passage("foreign_key", Both, " FULLTEXT INDEX(b),", "\n", FULLTEXT),
    passage("foreign_key", Answer, "  FULLTEXT KEY `b` (`b`),", "  CONSTRAINT", FULLTEXT),
    passage("foreign_key", Both, ADD_FULLTEXT, "DROP TABLE t1;", FULLTEXT),
    passage("foreign_key", Both, ADD_FULLTEXT, "DROP TABLE t1;", FULLTEXT),
    passage("innodb-fk", Both, "FULLTEXT KEY(a), ", "CONSTRAINT fk", FULLTEXT),
    passage("innodb-fk", Statements, SYS_FOREIGN, "# Enable SET", DICTIONARY),
    passage("innodb-fk", Answer, SYS_FOREIGN, "SET FOREIGN_KEY_CHECKS=0;", DICTIONARY),
    passage("innodb-fkcheck", Statements, LIST, "\n", FILES),
    passage("innodb-fkcheck", Statements, LIST, "\n", FILES),
    passage("innodb-fkcheck", Statements, LIST, "\n", FILES),
    passage("innodb-fkcheck", Answer, "b.frm\nb.ibd\n", "drop table if exists b;", FILES),
    passage("innodb-get-fk", Statements, "--innodb-read-only", "\n", READ_ONLY),
    passage("innodb-get-fk", Statements, "--innodb-read-only", "\n", READ_ONLY),
    passage("innodb-get-fk", Statements, "--error ER_OPEN_AS", "SHOW CREATE", READ_ONLY),
    passage("innodb-get-fk", Answer, ": --innodb-read-only", "\n", READ_ONLY),
    passage("innodb-get-fk", Answer, ": --innodb-read-only", "\n", READ_ONLY),
    passage("innodb-get-fk", Answer, REFUSED, "SHOW CREATE", READ_ONLY),
];

const SYS_FOREIGN: &str = "SELECT * FROM INFORMATION_SCHEMA.INNODB_SYS_FOREIGN;";
const ADD_FULLTEXT: &str = "ALTER TABLE t1 ADD FULLTEXT INDEX ft1";
const LIST: &str = "--list_files $MYSQLD_DATADIR/bug_fk b*";
const REFUSED: &str = "ALTER TABLE `repro`.`crew_role_assigned` COMMENT = 'innodb_read_only';";

/// Writes the suite into the folder `suites`, from the suites in `installed`.
pub(super) fn write(installed: &Path, suites: &Path) -> Result {
    let suite = suites.join(SUITE);
    if suite.exists() {
        fs::remove_dir_all(&suite).map_err(at(&suite))?;
    }
    let is_reduced = |test: &str| PASSAGES.iter().any(|passage| passage.test == test);
    for folder in ["t", "r", "include"] {
        let from = installed.join(OF).join(folder);
        let to = suite.join(folder);
        fs::create_dir_all(&to).map_err(at(&to))?;
        for entry in fs::read_dir(&from).map_err(at(&from))? {
            let path = entry.map_err(at(&from))?.path();
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // The file of a difference of a combination is `test,combination.rdiff`.
            let test = file.split(['.', ',']).next().unwrap_or_default();
            if folder != "include" && !is_reduced(test) {
                continue;
            }
            let text = fs::read(&path).map_err(at(&path))?;
            let text = match (folder, path.extension().and_then(|end| end.to_str())) {
                ("t", Some("test")) => without(&text, test, Statements)?,
                ("r", Some("result")) => without(&text, test, Answer)?,
                _ => text,
            };
            fs::write(to.join(&file), text).map_err(at(&to))?;
        }
    }
    Ok(())
}

fn at(path: &Path) -> impl Fn(std::io::Error) -> String {
    let path = path.display().to_string();
    move |error| format!("{path}: {error}")
}

/// Returns a test, or its result, without the passages.
fn without(old: &[u8], test: &str, part: Part) -> Result<Vec<u8>> {
    let mut new = old.to_vec();
    let passages = PASSAGES.iter().filter(|known| known.test == test);
    for passage in passages.filter(|known| known.part == part || known.part == Both) {
        leave_out(&mut new, passage.from, passage.until).ok_or_else(|| {
            format!("{OF}.{test}, {part:?}: no passage `{}` ({})", passage.from, passage.why)
        })?;
    }
    Ok(new)
}

/// Removes a passage; `None` if the text does not have it.
fn leave_out(text: &mut Vec<u8>, from: &str, until: &str) -> Option<()> {
    let start = find(text, from)?;
    let after = start + from.len();
    let end = after + find(&text[after..], until)?;
    text.drain(start..end);
    Some(())
}

fn find(text: &[u8], what: &str) -> Option<usize> {
    text.windows(what.len()).position(|part| part == what.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{read, root};

    #[test]
    fn a_passage_is_left_out_once() {
        let mut text = b"a\nb 1\nc\nb 2\nc\n\xff".to_vec();
        assert_eq!(leave_out(&mut text, "b ", "c"), Some(()));
        assert_eq!(text, b"a\nc\nb 2\nc\n\xff");
        assert_eq!(leave_out(&mut text, "b ", "d"), None);
        assert_eq!(leave_out(&mut text, "x", "c"), None);
        assert_eq!(text, b"a\nc\nb 2\nc\n\xff");
    }

    #[test]
    fn a_missing_passage_is_an_error() {
        let old =
            b"SELECT 1;\nSELECT * FROM INFORMATION_SCHEMA.INNODB_SYS_FOREIGN;\nDROP TABLE best.t2;";
        let new = without(old, "fk_drop_alter", Answer).unwrap();
        assert_eq!(new, b"SELECT 1;\nDROP TABLE best.t2;");
        assert!(without(&new, "fk_drop_alter", Answer).is_err());
    }

    #[test]
    fn the_page_lists_what_is_left_out() {
        let page = read(&root().join("mariadb/mysql-test/suites.md")).unwrap();
        for passage in &PASSAGES {
            let named = |line: &&str| line.starts_with(&format!("| {} |", passage.test));
            let mut rows = page.lines().filter(named);
            assert!(rows.any(|row| row.contains(passage.why)), "{passage:?}");
        }
    }
}
