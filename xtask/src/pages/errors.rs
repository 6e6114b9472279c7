//! docs/operating/errors.md: the kinds of errors, with what to do, from three sources.
//!
//! | column | source |
//! |---|---|
//! | kind, what to do | the comments of `ErrorKind` |
//! | exit code | the command's table of exit codes |
//! | MariaDB | the plugin's table of the server's numbers, and [`IN_SQL`] |

use super::items::{Item, items};

pub(super) const PAGE: &str = "docs/operating/errors.md";
pub(super) const KINDS: &str = "crates/core/src/error.rs";
pub(super) const EXIT_CODES: &str = "crates/cli/src/failure.rs";
pub(super) const NUMBERS: &str = "mariadb/src/engine/error_numbers.h";

/// The error that a user gets for a number of the server's handler interface.
const IN_SQL: [(&str, &str); 10] = [
    ("HA_ERR_RECORD_CHANGED", "1020"),
    ("HA_ERR_LOCK_DEADLOCK", "1213"),
    ("HA_ERR_LOCK_WAIT_TIMEOUT", "1205"),
    ("HA_ERR_NO_SUCH_TABLE", "1146"),
    ("HA_ERR_FOUND_DUPP_KEY", "1062"),
    ("HA_ERR_DISK_FULL", "1021"),
    ("HA_ERR_CRASHED", "1034"),
    ("HA_ERR_ABORTED_BY_USER", "1317"),
    ("HA_ERR_LOCK_TABLE_FULL", "1206"),
    ("HA_ERR_FRONDB", "1296"),
];

const HEAD: &str = "\
# Errors

Written from the source by `cargo xtask pages`: do not edit it, change the comments of `ErrorKind`.

Every error has a kind, which says what to do, and a message, which says what happened, to which object. `Error::kind`
returns the kind in Rust, `frondb_error_kind()` in C, where `NoSpace` is `FRONDB_NO_SPACE`; the command `frondb` exits with
the [code](command-line.md#exit-codes) of the kind; a MariaDB server reports the number, and for 1296 the message.
[Troubleshooting](troubleshooting.md) begins with what you see.

| kind | what to do | exit code | MariaDB |
|---|---|---|---|
";

/// Returns the page. The sources are the files [`KINDS`], [`EXIT_CODES`] and [`NUMBERS`].
pub(super) fn page(kinds: &str, exit_codes: &str, numbers: &str) -> String {
    let mut page = HEAD.to_owned();
    for Item { doc, code } in items(kinds, "pub enum ErrorKind {") {
        let kind = code.trim_end_matches(',');
        let cells = [
            format!("`{kind}`"),
            doc,
            exit_code(exit_codes, kind).unwrap_or_default(),
            in_sql(numbers, &constant(kind)).unwrap_or_default().to_owned(),
        ];
        page.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    page
}

/// `NoSpace` becomes `FRONDB_NO_SPACE`.
fn constant(kind: &str) -> String {
    let mut name = "FRONDB".to_owned();
    for c in kind.chars() {
        if c.is_uppercase() {
            name.push('_');
        }
        name.push(c.to_ascii_uppercase());
    }
    name
}

/// Finds the number of the row `(NUMBER, "KIND, KIND", ..)` that has the kind.
fn exit_code(source: &str, kind: &str) -> Option<String> {
    let (_, rows) = source.split_once("EXIT_CODES: ")?;
    let (rows, _) = rows.split_once("];")?;
    rows.split('(').find_map(|row| {
        let (number, rest) = row.split_once(',')?;
        let kinds = rest.split('"').nth(1)?;
        kinds.split(", ").any(|it| it == kind).then(|| number.trim().to_owned())
    })
}

/// Finds the line `HA_ERR_..,  // CONSTANT`.
fn in_sql(source: &str, constant: &str) -> Option<&'static str> {
    let line = source.lines().find(|line| {
        let comment = line.split_once("// ").map(|(_, comment)| comment.trim());
        comment.and_then(|it| it.split(':').next()) == Some(constant)
    })?;
    let (number, _) = line.trim().split_once(',')?;
    IN_SQL.iter().find(|(name, _)| *name == number).map(|(_, sql)| *sql)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_its_row_in_each_source() {
        let kinds =
            "pub enum ErrorKind {\n    /// It is full: free\n    /// space.\n    NoSpace,\n}\n";
        let codes = "EXIT_CODES: &[(u8, &str, &str)] = &[\n (4, \"Busy, Io\", \"x\"),\n (\n 5,\n \"NoSpace\",\n \"y\"),\n];";
        let numbers = "    HA_ERR_DISK_FULL,   // FRONDB_NO_SPACE: always\n";
        let page = page(kinds, codes, numbers);
        let row = "| `NoSpace` | It is full: free space. | 5 | 1021 |\n";
        assert!(page.ends_with(row), "{page}");
        assert_eq!(exit_code(codes, "Io").as_deref(), Some("4"));
        assert_eq!(in_sql(numbers, "FRONDB_IO"), None);
    }
}
