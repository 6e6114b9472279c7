//! Two databases of one server with the same tables: one with InnoDB, one with FronDB.

use super::list::App;
use crate::client::Client;
use crate::error::{Result, harness};
use crate::options::Engine;
use crate::reply::{Reply, Value, text};
use crate::server::Server;

/// The connection to the database of one engine.
pub(super) struct Side {
    pub(super) engine: Engine,
    pub(super) database: String,
    pub(super) client: Client,
}

pub(super) struct Pair {
    pub(super) ours: Side,
    pub(super) theirs: Side,
}

impl Side {
    fn connect(server: &Server, app: &App, engine: Engine) -> Result<Self> {
        let database = format!("{}_{}", app.name, engine.name().to_lowercase());
        Self::connect_to(server, app, engine, database)
    }

    /// Connects to a database; creates the database if it does not exist.
    pub(super) fn connect_to(
        server: &Server,
        app: &App,
        engine: Engine,
        database: String,
    ) -> Result<Self> {
        let mut client = server.connect()?;
        client.run([
            format!("CREATE DATABASE IF NOT EXISTS {database} {}", app.charset),
            format!("USE {database}"),
            format!("SET default_storage_engine = {}", engine.name()),
            // A fixed time, so that both engines store the same value of the current time.
            "SET timestamp = 1700000000".to_owned(),
        ])?;
        Ok(Self { engine, database, client })
    }

    /// Runs a query; returns each row as a line of text, with the values separated by tabs.
    pub(super) fn lines(&mut self, query: &str) -> Result<Vec<String>> {
        let reply = self.client.query(query).map_err(|error| harness(query, error))?;
        Ok(reply.rows.iter().map(|row| line(row)).collect())
    }

    /// The names of the database's tables, of the engine `of` or of all engines.
    pub(super) fn tables(&mut self, of: Option<Engine>) -> Result<Vec<String>> {
        let engine = of.map_or(String::new(), |engine| format!("AND engine = '{}'", engine.name()));
        self.lines(&format!(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = database() \
             AND table_type = 'BASE TABLE' {engine} ORDER BY table_name"
        ))
    }

    pub(super) fn foreign_keys(&mut self) -> Result<u64> {
        self.client.number(
            "SELECT count(*) FROM information_schema.referential_constraints \
             WHERE constraint_schema = database()",
        )
    }
}

impl Pair {
    /// Connects to both databases.
    pub(super) fn connect(server: &Server, app: &App) -> Result<Self> {
        Ok(Self {
            ours: Side::connect(server, app, Engine::FronDb)?,
            theirs: Side::connect(server, app, Engine::InnoDb)?,
        })
    }

    /// Executes a statement on both engines.
    pub(super) fn execute(&mut self, statement: impl Fn(Engine) -> String) -> Met {
        Met {
            theirs: self.theirs.client.query(statement(self.theirs.engine)),
            ours: self.ours.client.query(statement(self.ours.engine)),
        }
    }
}

/// The outcomes of one statement.
pub(super) struct Met {
    pub(super) ours: Result<Reply>,
    pub(super) theirs: Result<Reply>,
}

impl Met {
    /// Both outcomes as text with the beginning of the statement; none if the outcomes are equal.
    pub(super) fn difference(&self, statement: &str) -> Option<String> {
        if compared(&self.ours) == compared(&self.theirs) {
            return None;
        }
        let (ours, theirs) = (shown(&self.ours), shown(&self.theirs));
        Some(format!("{}\n  FronDB: {ours}\n  InnoDB: {theirs}", beginning(statement)))
    }
}

/// The beginning of a statement, which identifies the statement in a message.
pub(super) fn beginning(statement: &str) -> String {
    statement.chars().take(200).collect()
}

/// The parts of an outcome that must be equal: rows and counts, or the number of an error. An
/// error's text names the database, so it may differ.
fn compared(outcome: &Result<Reply>) -> Option<std::result::Result<Reply, u16>> {
    match outcome {
        Ok(reply) => Some(Ok(reply.clone())),
        Err(error) => error.code().map(Err),
    }
}

fn shown(outcome: &Result<Reply>) -> String {
    match outcome {
        Ok(reply) => {
            let rows: Vec<String> = reply.rows.iter().map(|row| line(row)).collect();
            let Reply { affected, warnings, .. } = reply;
            format!("{affected} affected, {warnings} warnings, rows: {}", rows.join("\n"))
        }
        Err(error) => error.to_string(),
    }
}

fn line(row: &[Value]) -> String {
    let values = row.iter().map(|value| value.as_deref().map_or("NULL".to_owned(), text));
    values.collect::<Vec<_>>().join("\t")
}
