//! Runs a script on one engine.
//!
//! After each step the stage waits until each connection has answered or waits for a lock, as the
//! engine reports it. So no outcome depends on timing.

use std::time::{Duration, Instant};

use super::script::{Level, Script, Step, WAYS};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::reply::{Reply, Value};
use crate::server::Server;

/// Longest time of a step. A step that takes longer counts as hung.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Interval of the checks whether a connection waits.
const POLL: Duration = Duration::from_millis(1);

/// The definition of the table, without the engine, and without the option `CLUSTERING=YES` of its
/// last key.
const TABLE: &str = "CREATE OR REPLACE TABLE o (id INT PRIMARY KEY, v INT, g INT, u INT, c INT, \
     KEY g (g), UNIQUE u (u), KEY covers (g, v), KEY c (c)";
const ROWS: &str = "INSERT INTO o VALUES (1, 10, 10, 10, 10), (2, 20, 20, 20, 20), \
     (3, 30, 30, 30, 30), (5, 50, 50, 50, 50)";

/// A connection of the script.
struct Actor {
    client: Client,
    /// The number of this connection's step that has no answer yet.
    pending: Option<usize>,
}

/// One engine with the connections for a script.
pub(super) struct Stage {
    engine: &'static str,
    actors: [Actor; 2],
    watcher: Client,
    /// The outcome of each step; at the end also the rows of the table.
    outcomes: Vec<String>,
}

impl Stage {
    /// Creates the table, and two connections with this isolation level.
    pub(super) fn new(server: &Server, engine: &'static str, level: Level) -> Result<Self> {
        let mut watcher = server.connect_to(&format!("interleavings_{engine}"))?;
        let clustering = if engine == "FronDB" { " CLUSTERING=YES" } else { "" };
        watcher.run([&format!("{TABLE}{clustering}) ENGINE={engine}"), ROWS])?;
        let actor = || -> Result<Actor> {
            let mut client = server.connect_to(&format!("interleavings_{engine}"))?;
            client.run([
                &*format!("SET SESSION TRANSACTION ISOLATION LEVEL {}", level.name),
                &format!(
                    "SET innodb_snapshot_isolation = {on}, frondb_snapshot_isolation = {on}",
                    on = u8::from(level.snapshot_isolation)
                ),
                "SET innodb_lock_wait_timeout = 1000, frondb_lock_wait_timeout = 1000",
            ])?;
            Ok(Actor { client, pending: None })
        };
        Ok(Self { engine, actors: [actor()?, actor()?], watcher, outcomes: Vec::new() })
    }

    /// Runs the steps; returns their outcomes and, as the last one, the rows of the table.
    pub(super) fn play(mut self, script: &Script) -> Result<Vec<String>> {
        self.watcher.run([&*format!("SET default_storage_engine = {}", self.engine)])?;
        self.watcher.run(script.before.iter().map(String::as_str))?;
        for (i, step) in script.steps.iter().enumerate() {
            let actor = &mut self.actors[step.actor];
            if actor.pending.is_some() {
                self.outcomes.push("not reached: its connection waits".into());
                continue;
            }
            actor.client.send(step.sql())?;
            actor.pending = Some(i);
            self.outcomes.push(String::new());
            self.settle(script, i)?;
        }
        // Roll back the transactions of connections that do not wait, so that the others can
        // continue.
        while self.actors.iter().any(|actor| actor.pending.is_some()) {
            let free = self.actors.iter().position(|actor| actor.pending.is_none());
            let free = free.ok_or_else(|| Error::Harness("both connections wait".into()))?;
            self.actors[free].client.query("ROLLBACK")?;
            self.settle(script, script.steps.len())?;
        }
        for actor in &mut self.actors {
            actor.client.query("ROLLBACK")?;
        }
        let rows = self.watcher.query("SELECT * FROM o")?.rows;
        self.outcomes.push(shown(&rows));
        let check = self.watcher.query("CHECK TABLE o EXTENDED")?;
        if check.rows.len() != 1 || check.rows[0].last() != Some(&Some(b"OK".to_vec())) {
            return Err(Error::Harness(format!("{}: {}", script.name, shown(&check.rows))));
        }
        Ok(self.outcomes)
    }

    /// Waits until each connection has answered or waits for a lock.
    fn settle(&mut self, script: &Script, now: usize) -> Result {
        let mut moved = true;
        while std::mem::take(&mut moved) {
            for at in 0..self.actors.len() {
                let Some(step) = self.actors[at].pending else { continue };
                let Some(outcome) = self.answer(at)? else {
                    self.outcomes[step] = "waits".into();
                    continue;
                };
                let outcome = told(&script.steps[step], outcome)?;
                self.outcomes[step] = match step {
                    step if step == now => outcome,
                    _ if now == script.steps.len() => format!("waits to the end: {outcome}"),
                    _ => format!("waits for step {}: {outcome}", now + 1),
                };
                self.actors[at].pending = None;
                // The other connection may have waited for this one, so check again.
                moved = true;
            }
        }
        Ok(())
    }

    /// Waits for the answer of a connection; returns none if the connection waits for a lock.
    fn answer(&mut self, at: usize) -> Result<Option<Result<Reply>>> {
        let begin = Instant::now();
        while begin.elapsed() < TIMEOUT {
            let client = &mut self.actors[at].client;
            if client.has_answered(POLL)? {
                return Ok(Some(client.receive()));
            }
            let id = client.id();
            if self.waits(id)? {
                return Ok(None);
            }
        }
        Err(Error::Late(format!("{}: a step neither ends nor waits", self.engine)))
    }

    /// Whether the connection with this id waits for a lock now.
    fn waits(&mut self, id: u64) -> Result<bool> {
        if self.engine == "FronDB" {
            let sql = format!(
                "SELECT count(*) FROM information_schema.FRONDB_LOCK_WAITS \
                 WHERE WAITING_THREAD_ID = {id}"
            );
            return Ok(self.watcher.query(sql)?.number() != Some(0));
        }
        // InnoDB's tables in the information schema may be up to a tenth of a second old; the text
        // of SHOW ENGINE INNODB STATUS is current.
        let status = self.watcher.query("SHOW ENGINE INNODB STATUS")?;
        let text = status.rows.first().and_then(|row| row.last().cloned().flatten());
        let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
        let own = format!("MariaDB thread id {id},");
        // Skip the text before the first transaction, which also describes the last deadlock.
        let mut transactions = text.split("---TRANSACTION").skip(1);
        Ok(transactions.any(|one| one.contains(&own) && one.contains("LOCK WAIT")))
    }
}

/// An outcome as text.
fn told(step: &Step, outcome: Result<Reply>) -> Result<String> {
    match outcome {
        Ok(reply) if step.looks() => Ok(looked(&reply)),
        Ok(reply) if !reply.columns.is_empty() => Ok(shown(&reply.rows)),
        Ok(reply) => Ok(format!("{} affected", reply.affected)),
        Err(Error::Server { code, .. }) => Ok(format!("error {code}")),
        Err(lost) => Err(lost),
    }
}

fn shown(rows: &[Vec<Value>]) -> String {
    if rows.is_empty() {
        return "no row".into();
    }
    let value = |value: &Value| match value {
        None => "NULL".to_owned(),
        Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    };
    let row = |row: &Vec<Value>| row.iter().map(value).collect::<Vec<_>>().join(",");
    let mut rows: Vec<String> = rows.iter().map(row).collect();
    rows.sort();
    rows.join(" ")
}

/// The rows by the primary key, and the rows by each other key if they differ.
fn looked(reply: &Reply) -> String {
    let by = |way: &str, columns: usize| {
        let of_way = |row: &&Vec<Value>| row[0].as_deref() == Some(way.as_bytes());
        let rows = reply.rows.iter().filter(of_way).map(|row| row[1..=columns].to_vec());
        shown(&rows.collect::<Vec<_>>())
    };
    let mut text = by(WAYS[0].0, 5);
    for (way, read) in &WAYS[1..] {
        let columns = if read.contains("NULL") { 3 } else { 5 };
        let found = by(way, columns);
        if found != by(WAYS[0].0, columns) {
            text.push_str(&format!("; by {way}: {found}"));
        }
    }
    text
}
