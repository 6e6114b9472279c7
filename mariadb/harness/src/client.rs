//! One connection to a server, over its socket.
//!
//! Sending and receiving are separate calls, so that a thread can continue with another connection
//! while a statement waits for a lock. The client implements only what tests need of the protocol:
//! user `root` without a password, statements and results as text.

use std::io::{self, BufRead as _, BufReader, BufWriter};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::packet::{self, Fields, malformed};
use crate::reply::{Column, EOF, ERR, More, OK, Reply, text};

/// Longest wait for a reply, unless [`Client::set_reply_timeout`] sets another. A reply that takes
/// longer is an error.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The capabilities that the client requests: long flags, transactions, 4.1 packets and passwords,
/// several results of a CALL, named authentication methods.
const CAPABILITIES: u32 = 1 | 4 | 0x200 | 0x2000 | 0x8000 | 0x2_0000 | 0x8_0000;
const UTF8MB4: u8 = 45;
const COM_QUERY: u8 = 3;
const COM_SET_OPTION: u8 = 0x1B;

/// A connection. Dropping it closes it.
#[derive(Debug)]
pub struct Client {
    from: BufReader<UnixStream>,
    to: BufWriter<UnixStream>,
    id: u64,
}

impl Client {
    /// Connects as root.
    pub fn connect(socket: &Path) -> Result<Self> {
        let stream = UnixStream::connect(socket).map_err(lost)?;
        stream.set_read_timeout(Some(TIMEOUT)).map_err(lost)?;
        let to = BufWriter::new(stream.try_clone().map_err(lost)?);
        let mut client = Self { from: BufReader::new(stream), to, id: 0 };
        let (greeting, number) = client.read()?;
        if greeting.first() == Some(&ERR) {
            return Err(refusal(&greeting).map_err(lost)?);
        }
        client.id = connection_id(&greeting).map_err(lost)?;
        packet::write(&mut client.to, &introduction(), number + 1).map_err(lost)?;
        match client.read()?.0 {
            answer if answer.first() == Some(&OK) => Ok(client),
            answer if answer.first() == Some(&ERR) => Err(refusal(&answer).map_err(lost)?),
            _ => Err(Error::Harness("the server asks root for a password".into())),
        }
    }

    /// The connection's id in the server, which KILL takes.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Sets the longest wait for a reply; a longer one is an error.
    pub fn set_reply_timeout(&self, longest: Duration) -> Result {
        self.from.get_ref().set_read_timeout(Some(longest)).map_err(lost)
    }

    /// Executes a statement and waits for its end. Returns the first result set, even an empty
    /// one, or else the last result.
    pub fn query(&mut self, statement: impl AsRef<[u8]>) -> Result<Reply> {
        self.send(statement)?;
        self.receive()
    }

    /// From now on, allows several statements, separated by semicolons, in one message.
    pub fn allow_several_statements(&mut self) -> Result {
        // Option 0 allows several statements.
        packet::write(&mut self.to, &[COM_SET_OPTION, 0, 0], 0).map_err(lost)?;
        let (answer, _) = self.read()?;
        if answer.first() == Some(&ERR) { Err(refusal(&answer).map_err(lost)?) } else { Ok(()) }
    }

    /// Executes several statements of one message, with one round trip; returns the reply to each
    /// of them. The server stops at the first error, which is returned. Needs
    /// [`Client::allow_several_statements`].
    pub fn query_all(&mut self, statements: impl AsRef<[u8]>) -> Result<Vec<Reply>> {
        self.send(statements)?;
        let mut replies = Vec::new();
        loop {
            let (reply, more) = self.result()?;
            replies.push(reply);
            if !more {
                return Ok(replies);
            }
        }
    }

    /// Executes statements one by one until one fails; the error names the statement.
    pub fn run<S: AsRef<str>>(&mut self, statements: impl IntoIterator<Item = S>) -> Result {
        for statement in statements {
            let statement = statement.as_ref();
            self.query(statement).map_err(|error| match error {
                Error::Server { code, state, message } => {
                    Error::Server { code, state, message: format!("{message}: {statement}") }
                }
                other => other,
            })?;
        }
        Ok(())
    }

    /// Returns the only value of a query's result as text; an error if there is not exactly one.
    pub fn value(&mut self, statement: &str) -> Result<String> {
        self.query(statement)?
            .single()
            .ok_or_else(|| Error::Harness(format!("not one value: {statement}")))
    }

    /// Returns the only value of a query's result as a number; an error if there is not exactly
    /// one.
    pub fn number(&mut self, statement: &str) -> Result<u64> {
        let value = self.value(statement)?;
        value.parse().map_err(|_| Error::Harness(format!("`{value}` is not a number: {statement}")))
    }

    /// Sends a statement. The caller must call [`Client::receive`] before the next statement.
    pub fn send(&mut self, statement: impl AsRef<[u8]>) -> Result {
        let message = [&[COM_QUERY], statement.as_ref()].concat();
        packet::write(&mut self.to, &message, 0).map_err(lost)
    }

    /// Whether a reply, or its beginning, arrives within `within`.
    pub(crate) fn has_answered(&mut self, within: Duration) -> Result<bool> {
        let stream = self.from.get_ref();
        let longest = stream.read_timeout().map_err(lost)?;
        stream.set_read_timeout(Some(within)).map_err(lost)?;
        let found = self.from.fill_buf().map(|bytes| !bytes.is_empty());
        self.from.get_ref().set_read_timeout(longest).map_err(lost)?;
        match found {
            Ok(true) => Ok(true),
            Ok(false) => Err(Error::Lost("the server closed the connection".into())),
            Err(error) => match lost(error) {
                Error::Late(_) => Ok(false),
                lost => Err(lost),
            },
        }
    }

    /// Waits for the reply to the statement sent last.
    pub fn receive(&mut self) -> Result<Reply> {
        let (mut reply, mut more) = self.result()?;
        while more {
            let next;
            (next, more) = self.result()?;
            if reply.columns.is_empty() {
                reply = next;
            }
        }
        Ok(reply)
    }

    fn result(&mut self) -> Result<(Reply, More)> {
        let (head, _) = self.read()?;
        match head.first() {
            Some(&OK) => return Reply::done(&head).map_err(lost),
            Some(&ERR) => return Err(refusal(&head).map_err(lost)?),
            _ => {}
        }
        let count = Fields(&head).length().map_err(lost)?;
        let count = count.ok_or_else(|| Error::Harness("LOAD DATA LOCAL is not supported".into()));
        let mut reply = Reply::default();
        for _ in 0..count? {
            let (column, _) = self.read()?;
            reply.columns.push(Column::read(&column).map_err(lost)?);
        }
        self.read()?; // The end of the columns.
        loop {
            let (row, _) = self.read()?;
            match row.first() {
                Some(&EOF) if row.len() < 9 => {
                    let more = reply.end(&row).map_err(lost)?;
                    return Ok((reply, more));
                }
                Some(&ERR) => return Err(refusal(&row).map_err(lost)?),
                _ => reply.row(&row).map_err(lost)?,
            }
        }
    }

    fn read(&mut self) -> Result<(Vec<u8>, u8)> {
        packet::read(&mut self.from).map_err(lost)
    }
}

fn lost(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            Error::Late("the server did not answer in time".into())
        }
        _ => Error::Lost(error.to_string()),
    }
}

/// Decodes an error packet.
fn refusal(message: &[u8]) -> io::Result<Error> {
    let mut fields = Fields(message);
    fields.bytes(1)?;
    let code = fields.integer(2)? as u16;
    // Before the client has authenticated, the packet has no SQLSTATE.
    let state = match fields.0.first() {
        Some(b'#') => text(&fields.bytes(6)?[1..]),
        _ => String::new(),
    };
    Ok(Error::Server { code, state, message: text(fields.0) })
}

/// The connection's id, which follows the protocol version and the server version in the greeting.
fn connection_id(greeting: &[u8]) -> io::Result<u64> {
    let version = greeting.get(1..).and_then(|rest| rest.iter().position(|&byte| byte == 0));
    let at = version.ok_or_else(malformed)? + 2;
    Fields(&greeting[at..]).integer(4)
}

/// The login message of root, with an empty password.
fn introduction() -> Vec<u8> {
    let mut message = CAPABILITIES.to_le_bytes().to_vec();
    message.extend((64u32 << 20).to_le_bytes());
    message.push(UTF8MB4);
    message.extend([0; 23]);
    message.extend(b"root\0\0mysql_native_password\0");
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_greetings_are_read() {
        let error = refusal(b"\xff\x7a\x04#42S02Table 't' doesn't exist").unwrap();
        assert_eq!(error.code(), Some(1146));
        assert_eq!(error.to_string(), "ERROR 1146 (42S02): Table 't' doesn't exist");
        assert_eq!(connection_id(b"\x0a10.11\0\x05\x01\0\0rest").unwrap(), 261);
        assert!(connection_id(b"\x0a10.11").is_err());
    }
}
