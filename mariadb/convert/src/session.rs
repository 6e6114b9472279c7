//! The session of a run. With --dry-run it only shows the changes.

use crate::client::{Client, Row};
use crate::error::{Error, Result};

/// Settings of the session. Zero dates, and zeros in AUTO_INCREMENT columns, are copied unchanged.
/// CHECK constraints are not evaluated for copied rows. No limit of the server or of the client
/// program truncates or refuses data that this program reads.
const SETTINGS: &str = "SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES', \
     check_constraint_checks = 0, sql_quote_show_create = 1, max_statement_time = 0, autocommit = 1, \
     sql_select_limit = 18446744073709551615, max_join_size = 18446744073709551615, sql_safe_updates = 0, \
     tx_read_only = 0, alter_algorithm = 'DEFAULT'";

pub(crate) struct Session {
    pub(crate) client: Client,
    is_dry: bool,
}

impl Session {
    /// Begins a session. `lock_wait_seconds`: longest wait for other sessions.
    pub(crate) fn begin(options: &[String], is_dry: bool, lock_wait_seconds: u32) -> Result<Self> {
        let mut client = Client::connect(options)?;
        client.query(&format!("{SETTINGS}, lock_wait_timeout = {lock_wait_seconds}"))?;
        // Prevents a second run, which would mistake this run's work for the work of a stopped run.
        // The lock ends with the session.
        let locked = format!("SELECT GET_LOCK('frondb-convert', {lock_wait_seconds})");
        if !is_dry && client.query(&locked)? != [["1"]] {
            let why = "another frondb-convert is running on this server: wait for its end";
            return Err(Error::Lost(why.to_owned()));
        }
        Ok(Self { client, is_dry })
    }

    pub(crate) fn read(&mut self, statement: &str) -> Result<Vec<Row>> {
        self.client.query(statement)
    }

    /// Executes a statement that changes data; with --dry-run only shows the statement.
    pub(crate) fn change(&mut self, statement: &str) -> Result<()> {
        if self.is_dry {
            say(&format!("{statement};"));
            return Ok(());
        }
        self.client.query(statement).map(drop)
    }

    pub(crate) fn is_dry(&self) -> bool {
        self.is_dry
    }
}

/// Prints a line on standard output; ignores that standard output may be closed.
#[allow(clippy::print_stdout, reason = "this is the output of the program")]
pub(crate) fn say(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
