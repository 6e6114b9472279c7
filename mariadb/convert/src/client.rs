//! A session of the server through the server's own client program, `mariadb`, because that
//! supports every way to connect and log in.
//!
//! ```text
//!   statement;                   -->  mariadb --batch  -->  rows, a line each
//!   SELECT 'frondb-convert', 7;  -->                   -->  frondb-convert <tab> 7, after all rows
//! ```
//! The program writes errors to the same pipe as rows, so the answer to each statement is complete
//! when the line of the second statement arrives. Used by one thread.

use std::io::{BufRead, BufReader, PipeReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::error::{Error, Result};

/// The first value of the row that ends each answer.
const MARK: &str = "frondb-convert";

/// Options for an unchanged output of rows in order, without headings. The program must not
/// reconnect, because a new connection would not have the session's table locks.
const OPTIONS: [&str; 8] = [
    "--batch",
    "--skip-column-names",
    "--unbuffered",
    "--force",
    "--binary-mode",
    "--skip-reconnect",
    "--skip-auto-rehash",
    "--default-character-set=utf8mb4",
];

/// A row of an answer.
pub(crate) type Row = Vec<String>;

/// A session. Dropping it ends the session, which releases its table locks.
pub(crate) struct Client {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<PipeReader>,
    marks: u64,
}

impl Client {
    /// Starts the program with the user's options, which name the server.
    pub(crate) fn connect(options: &[String]) -> Result<Self> {
        let (from, to) = std::io::pipe().map_err(|e| Error::Lost(e.to_string()))?;
        let errors = to.try_clone().map_err(|e| Error::Lost(e.to_string()))?;
        let mut child = Command::new("mariadb")
            .args(options)
            .args(OPTIONS)
            .stdin(Stdio::piped())
            .stdout(to)
            .stderr(errors)
            .spawn()
            .map_err(|e| Error::Lost(format!("cannot start the program mariadb: {e}")))?;
        let to = child.stdin.take();
        Ok(Self { child, to, from: BufReader::new(from), marks: 0 })
    }

    /// Executes a statement and returns its rows.
    pub(crate) fn query(&mut self, statement: &str) -> Result<Vec<Row>> {
        self.marks += 1;
        let mark = format!("{MARK}\t{}", self.marks);
        if let Some(to) = &mut self.to {
            let text = format!("{statement};\nSELECT '{MARK}', {};\n", self.marks);
            // If this fails, the program has ended and has printed the reason.
            let _ = to.write_all(text.as_bytes()).and_then(|()| to.flush());
        }
        let (mut rows, mut error) = (Vec::new(), Vec::new());
        loop {
            let mut line = Vec::new();
            let read = self.from.read_until(b'\n', &mut line);
            if !read.is_ok_and(|bytes| bytes > 0) {
                return Err(self.lost(&error));
            }
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches('\n');
            if line == mark {
                break;
            }
            if !error.is_empty() || is_error(line) {
                error.push(line.to_owned());
                if Error::of_server(line).ends_session() {
                    // The program ends when its input ends; otherwise it would wait for more
                    // statements.
                    self.to = None;
                }
            } else {
                rows.push(line.split('\t').map(unescaped).collect());
            }
        }
        if error.is_empty() { Ok(rows) } else { Err(Error::of_server(&error.join(" "))) }
    }

    fn lost(&mut self, said: &[String]) -> Error {
        self.to = None;
        let _ = self.child.wait();
        match said.is_empty() {
            true => Error::Lost("the connection to the server has ended".to_owned()),
            false => Error::Lost(said.join(" ")),
        }
    }
}

/// Whether the program reports an error with this line; a row may also begin with "ERROR ".
fn is_error(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("ERROR ") else { return false };
    let rest = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let has_state = rest.starts_with(" (") && rest.get(7..).is_some_and(|it| it.starts_with(")"));
    has_state || rest.starts_with("at line ")
}

impl Drop for Client {
    fn drop(&mut self) {
        // The program ends when its input ends.
        self.to = None;
        let _ = self.child.wait();
    }
}

/// Removes the escapes of the program's batch mode from a value.
fn unescaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut rest = value.chars();
    while let Some(c) = rest.next() {
        match if c == '\\' { rest.next() } else { None } {
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('0') => text.push('\0'),
            Some(other) => text.push(other),
            None => text.push(c),
        }
    }
    text
}

/// A name in backticks, for statements.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A text literal. The server must not have NO_BACKSLASH_ESCAPES on.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''").replace('\0', "\\0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_look_like_errors_are_rows() {
        assert!(is_error("ERROR 1146 (42S02) at line 3: Table 'a.b' doesn't exist"));
        assert!(is_error("ERROR at line 1: Unknown command '\\x'."));
        assert!(
            ["ERROR log", "ERROR 7", "ERROR x (a)", "ERROR", "ERRORS"]
                .iter()
                .all(|row| !is_error(row))
        );
    }

    #[test]
    fn values_and_names_are_read_and_written() {
        assert_eq!(unescaped(r"a\nb\tc\\n\0"), "a\nb\tc\\n\0");
        assert_eq!(quoted("a`b"), "`a``b`");
        assert_eq!(literal(r"it's \ "), r"'it''s \\ '");
    }
}
