//! Fills a table with rows by multi-row INSERTs over one connection. The client makes the next
//! statement while the server executes the previous one.

use frondb_bench::{Error, Result};
use frondb_mariadb_harness::Client;

/// Size from which a statement is sent. The limit is in bytes, 1,000 rows of 100 bytes, so that
/// statements of all tables take about the same time.
const STATEMENT_BYTES: usize = 100_000;

/// Writes the rows of one table.
pub(crate) struct Bulk<'a> {
    client: &'a mut Client,
    head: String,
    statement: String,
    is_waiting: bool,
}

impl<'a> Bulk<'a> {
    /// Begins to fill a table. `columns` is empty or a list such as "(a,b)".
    pub(crate) fn new(client: &'a mut Client, table: &str, columns: &str) -> Self {
        let head = format!("INSERT INTO {table} {columns} VALUES ");
        Self { client, statement: head.clone(), head, is_waiting: false }
    }

    /// Adds a row. `write` appends its values, without the parentheses.
    pub(crate) fn row(&mut self, write: impl FnOnce(&mut String)) -> Result<()> {
        self.statement.push(if self.statement.len() == self.head.len() { ' ' } else { ',' });
        self.statement.push('(');
        write(&mut self.statement);
        self.statement.push(')');
        if self.statement.len() >= STATEMENT_BYTES { self.send() } else { Ok(()) }
    }

    /// Sends the last rows and waits until the server has executed all statements.
    pub(crate) fn finish(mut self) -> Result<()> {
        if self.statement.len() > self.head.len() {
            self.send()?;
        }
        self.wait()
    }

    fn send(&mut self) -> Result<()> {
        self.wait()?;
        self.client.send(&self.statement).map_err(Error::engine)?;
        self.is_waiting = true;
        self.statement.truncate(self.head.len());
        Ok(())
    }

    fn wait(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_waiting) {
            self.client.receive().map_err(Error::engine)?;
        }
        Ok(())
    }
}
