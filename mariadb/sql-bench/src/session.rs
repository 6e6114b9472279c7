//! A connection that runs transactions and repeats each transaction that a conflict with another
//! connection has ended.

use std::fmt::Display;

use frondb_bench::{Error, Result};
use frondb_mariadb_harness::{self as harness, Client, Reply, Value};

/// Error numbers of a transaction that a conflict with another transaction has ended.
const CONFLICTS: [u16; 3] = [1213, 1205, 1020];
/// The names of these errors in reports.
pub(crate) const CONFLICT_NAMES: [&str; 3] = ["deadlocks", "lock timeouts", "rows changed (1020)"];

/// Number of transactions that each of these errors has ended. All were repeated.
pub(crate) type Conflicts = [u64; 3];

/// A connection with the counts of its conflicts. Used by one thread.
pub(crate) struct Session {
    client: Client,
    conflicts: Conflicts,
}

impl Session {
    pub(crate) fn new(mut client: Client) -> Result<Self> {
        client.allow_several_statements().map_err(Error::engine)?;
        Ok(Self { client, conflicts: [0; 3] })
    }

    pub(crate) fn conflicts(&self) -> Conflicts {
        self.conflicts
    }

    /// Runs one statement as a transaction of its own.
    pub(crate) fn query(&mut self, sql: &str) -> Result<Reply> {
        self.transaction(|client| client.query(sql))
    }

    /// Runs a transaction and repeats it after a conflict. `body` itself must begin and end the
    /// transaction.
    pub(crate) fn transaction<T>(
        &mut self,
        mut body: impl FnMut(&mut Client) -> harness::Result<T>,
    ) -> Result<T> {
        loop {
            let error = match body(&mut self.client) {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            match conflict(&error) {
                Some(kind) => self.conflicts[kind] += 1,
                None => return Err(Error::engine(error)),
            }
            self.client.query("ROLLBACK").map_err(Error::engine)?;
        }
    }
}

fn conflict(error: &harness::Error) -> Option<usize> {
    let code = error.code()?;
    CONFLICTS.iter().position(|conflict| *conflict == code)
}

/// Statements that the server receives in one message and executes one after the other until one
/// fails. One message saves round trips: each costs the client as much time as a small statement
/// costs the server.
pub(crate) struct Batch(String);

impl Batch {
    /// A batch that begins a transaction.
    pub(crate) fn begin() -> Self {
        Self("BEGIN".to_owned())
    }

    /// A batch inside a transaction.
    pub(crate) fn next() -> Self {
        Self(String::new())
    }

    pub(crate) fn add(&mut self, statement: impl Display) -> &mut Self {
        use std::fmt::Write;
        let separator = if self.0.is_empty() { "" } else { ";" };
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{separator}{statement}");
        self
    }

    /// Runs the statements; returns the reply to each of them, including BEGIN.
    pub(crate) fn run(&self, client: &mut Client) -> harness::Result<Vec<Reply>> {
        client.query_all(&self.0)
    }
}

pub(crate) fn number<T: std::str::FromStr>(row: &[Value], column: usize) -> harness::Result<T> {
    let value = row.get(column).and_then(Option::as_deref);
    let text = value.and_then(|bytes| std::str::from_utf8(bytes).ok());
    text.and_then(|text| text.parse().ok()).ok_or_else(|| {
        harness::Error::Harness(format!("column {column} of the answer is not a number: {text:?}"))
    })
}

/// A value of the reply's only row, as a number.
pub(crate) fn only<T: std::str::FromStr>(reply: &Reply, column: usize) -> harness::Result<T> {
    match reply.rows.as_slice() {
        [row] => number(row, column),
        rows => Err(harness::Error::Harness(format!("{} rows were found, not one", rows.len()))),
    }
}

/// A value of the reply's first row, as text; empty without rows.
pub(crate) fn text(reply: &Reply, column: usize) -> String {
    let value = reply.rows.first().and_then(|row| row.get(column)?.as_deref());
    value.map_or_else(String::new, |bytes| String::from_utf8_lossy(bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_conflicts_are_repeated() {
        let server =
            |code| harness::Error::Server { code, state: String::new(), message: String::new() };
        let kinds = [1213, 1205, 1020, 1062].map(|code| conflict(&server(code)));
        assert_eq!(kinds, [Some(0), Some(1), Some(2), None]);
        assert_eq!(conflict(&harness::Error::Lost(String::new())), None);
    }

    #[test]
    fn statements_of_a_batch_are_separated() {
        let mut batch = Batch::begin();
        batch.add("SELECT 1").add("COMMIT");
        assert_eq!(batch.0, "BEGIN;SELECT 1;COMMIT");
        let mut batch = Batch::next();
        batch.add("SELECT 1");
        assert_eq!(batch.0, "SELECT 1");
    }

    #[test]
    fn values_of_an_answer_are_read() {
        let row = vec![Some(b"12".to_vec()), None, Some(b"3.50".to_vec())];
        let mut reply = Reply { rows: vec![row.clone()], ..Reply::default() };
        assert_eq!((only::<u64>(&reply, 0), only::<f64>(&reply, 2)), (Ok(12), Ok(3.5)));
        assert!(only::<u64>(&reply, 1).is_err() && number::<u64>(&row, 3).is_err());
        assert_eq!((text(&reply, 2), text(&reply, 1)), ("3.50".to_owned(), String::new()));
        reply.rows.push(row);
        assert!(only::<u64>(&reply, 0).is_err());
    }
}
