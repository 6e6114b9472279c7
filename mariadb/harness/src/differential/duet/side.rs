//! One engine with two connections that never wait for locks. Undoes statements that one of the two
//! engines has refused because of a lock.

use crate::client::Client;
use crate::error::Result;
use crate::reply::Reply;
use crate::server::Server;

/// The two engines; FronDB is the first.
pub(in crate::differential) const ENGINES: [&str; 2] = ["FronDB", "InnoDB"];
/// "Lock wait timeout exceeded" and "Deadlock found".
pub(in crate::differential) const TIMEOUT: u16 = 1205;
const DEADLOCK: u16 = 1213;

/// The kind of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::differential) enum Act {
    Begin,
    End,
    Write,
    Read,
    Savepoint,
    /// A statement of a round in which only one connection writes, so that no lock refuses it.
    Alone,
}

/// One engine with both connections.
pub(in crate::differential) struct Side {
    pub(in crate::differential) actors: [Actor; 2],
}

/// A connection.
pub(in crate::differential) struct Actor {
    pub(in crate::differential) client: Client,
    is_open: bool,
}

impl Side {
    /// Opens two connections to this database.
    pub(in crate::differential) fn connect(server: &Server, database: &str) -> Result<Self> {
        let connect = || -> Result<Actor> {
            let mut client = server.connect_to(database)?;
            client.run(["SET innodb_lock_wait_timeout = 0, frondb_lock_wait_timeout = 0"])?;
            Ok(Actor { client, is_open: false })
        };
        Ok(Self { actors: [connect()?, connect()?] })
    }

    /// Runs a statement; `level` is the isolation level if the statement begins a transaction.
    pub(in crate::differential) fn run(
        &mut self,
        actor: usize,
        act: Act,
        sql: &str,
        level: &str,
    ) -> Result<Result<Reply>> {
        let actor = &mut self.actors[actor];
        match act {
            Act::Begin => {
                actor.is_open = true;
                // The next BEGIN would commit an open transaction; commit it first to set the
                // level.
                let level = format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}");
                actor.client.run(["COMMIT", &level])?;
            }
            // A statement that may be undone needs a savepoint or, outside a transaction, its own
            // transaction.
            Act::Write if actor.is_open => actor.client.run(["SAVEPOINT before_it"])?,
            Act::Write => actor.client.run(["BEGIN"])?,
            Act::End => actor.is_open = false,
            Act::Read | Act::Savepoint | Act::Alone => {}
        }
        Ok(actor.client.query(sql))
    }

    /// Records that a statement has committed the open transaction.
    pub(in crate::differential) fn has_committed(&mut self, actor: usize) {
        self.actors[actor].is_open = false;
    }

    /// Completes a statement that no lock refused: commits it if it runs outside a transaction.
    fn finish(&mut self, actor: usize, act: Act) -> Result {
        let actor = &mut self.actors[actor];
        if act == Act::Write && !actor.is_open {
            actor.client.run(["COMMIT"])?;
        }
        Ok(())
    }

    /// Undoes a statement that an engine has refused because of a lock; if `gone`, the whole
    /// transaction.
    fn undo(&mut self, actor: usize, act: Act, gone: bool) -> Result {
        let actor = &mut self.actors[actor];
        if gone || !actor.is_open {
            actor.is_open = false;
            return actor.client.run(["ROLLBACK"]);
        }
        if act == Act::Write {
            actor.client.run(["ROLLBACK TO before_it"])?;
        }
        Ok(())
    }
}

/// Completes a statement with these error codes on both sides. If one of the codes is a refusal
/// because of a lock, undoes the statement on both sides and returns true.
pub(in crate::differential) fn refused_for_a_lock(
    sides: &mut [Side; 2],
    actor: usize,
    act: Act,
    codes: [Option<u16>; 2],
) -> Result<bool> {
    let is_refused = codes.into_iter().any(|code| matches!(code, Some(TIMEOUT | DEADLOCK)));
    end(sides, actor, act, is_refused, codes.contains(&Some(DEADLOCK)))?;
    Ok(is_refused)
}

/// Completes a statement on both sides. If it was refused, undoes the statement, and if `gone` the
/// whole transaction.
pub(in crate::differential) fn end(
    sides: &mut [Side; 2],
    actor: usize,
    act: Act,
    is_refused: bool,
    gone: bool,
) -> Result {
    for side in sides {
        if is_refused {
            side.undo(actor, act, gone)?;
        } else {
            side.finish(actor, act)?;
        }
    }
    Ok(())
}
