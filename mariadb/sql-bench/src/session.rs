//! A connection that runs transactions, and repeats those that a conflict with another connection
//! has ended.

use frondb_bench::{Error, Result};
use frondb_mariadb_harness::{self as harness, Client, Reply};

/// The errors of a transaction that lost against another: a deadlock, a lock that was not granted
/// in time, a row that has changed since the snapshot.
const CONFLICTS: [u16; 3] = [1213, 1205, 1020];

/// A connection with a count of repeated transactions. It belongs to one thread.
pub(crate) struct Session {
    client: Client,
    retries: u64,
}

impl Session {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, retries: 0 }
    }

    /// The number of transactions that conflicts have ended, each of which was repeated.
    pub(crate) fn retries(&self) -> u64 {
        self.retries
    }

    /// Runs one statement as a transaction of its own.
    pub(crate) fn query(&mut self, sql: &str) -> Result<Reply> {
        self.until_done(|client| client.query(sql))
    }

    /// Runs `body` between BEGIN and COMMIT; after a conflict again from the start.
    pub(crate) fn transaction<T>(
        &mut self,
        mut body: impl FnMut(&mut Client) -> harness::Result<T>,
    ) -> Result<T> {
        self.until_done(|client| {
            client.query("BEGIN")?;
            let result = body(client)?;
            client.query("COMMIT")?;
            Ok(result)
        })
    }

    fn until_done<T>(
        &mut self,
        mut attempt: impl FnMut(&mut Client) -> harness::Result<T>,
    ) -> Result<T> {
        loop {
            match attempt(&mut self.client) {
                Ok(result) => return Ok(result),
                Err(error) if is_conflict(&error) => {
                    self.retries += 1;
                    self.client.query("ROLLBACK").map_err(Error::engine)?;
                }
                Err(error) => return Err(Error::engine(error)),
            }
        }
    }
}

fn is_conflict(error: &harness::Error) -> bool {
    error.code().is_some_and(|code| CONFLICTS.contains(&code))
}

/// A value of a reply as a number; an error that names the statement's purpose otherwise.
pub(crate) fn number<T: std::str::FromStr>(
    row: &[Option<Vec<u8>>],
    column: usize,
) -> harness::Result<T> {
    let value = row.get(column).and_then(Option::as_deref);
    let text = value.and_then(|bytes| std::str::from_utf8(bytes).ok());
    text.and_then(|text| text.parse().ok()).ok_or_else(|| {
        harness::Error::Harness(format!("column {column} of the answer is not a number: {text:?}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_conflicts_are_repeated() {
        let server =
            |code| harness::Error::Server { code, state: String::new(), message: String::new() };
        assert!([1213, 1205, 1020].into_iter().all(|code| is_conflict(&server(code))));
        assert!(!is_conflict(&server(1062)));
        assert!(!is_conflict(&harness::Error::Lost(String::new())));
    }

    #[test]
    fn numbers_of_an_answer_are_read() {
        let row = [Some(b"12".to_vec()), None, Some(b"3.50".to_vec())];
        assert_eq!(number::<u64>(&row, 0), Ok(12));
        assert_eq!(number::<f64>(&row, 2), Ok(3.5));
        assert!(number::<u64>(&row, 1).is_err() && number::<u64>(&row, 3).is_err());
    }
}
