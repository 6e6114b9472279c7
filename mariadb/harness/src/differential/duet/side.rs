//! One engine with two connections, none of which waits for a lock, and the undoing of statements
//! that one of two engines has refused for a lock.

use crate::client::Client;
use crate::error::Result;
use crate::reply::Reply;
use crate::server::Server;

/// The two engines; ours is the first.
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
    /// A statement that only one connection runs, so that no lock refuses it.
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
    /// Two connections to this database.
    pub(in crate::differential) fn connect(server: &Server, database: &str) -> Result<Self> {
        let connect = || -> Result<Actor> {
            let mut client = server.connect_to(database)?;
            client.run(["SET innodb_lock_wait_timeout = 0, frondb_lock_wait_timeout = 0"])?;
            Ok(Actor { client, is_open: false })
        };
        Ok(Self { actors: [connect()?, connect()?] })
    }

    /// Runs a statement; `level` is the isolation level of a transaction that begins.
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
                // BEGIN commits an open transaction.
                let level = format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}");
                actor.client.run(["COMMIT", &level])?;
            }
            // A statement that may be undone needs a savepoint, and outside a transaction a
            // transaction of its own.
            Act::Write if actor.is_open => actor.client.run(["SAVEPOINT before_it"])?,
            Act::Write => actor.client.run(["BEGIN"])?,
            Act::End => actor.is_open = false,
            Act::Read | Act::Savepoint | Act::Alone => {}
        }
        Ok(actor.client.query(sql))
    }

    /// Called after a statement that commits the open transaction.
    pub(in crate::differential) fn has_committed(&mut self, actor: usize) {
        self.actors[actor].is_open = false;
    }

    /// Called after a statement that neither engine has refused for a lock.
    fn finish(&mut self, actor: usize, act: Act) -> Result {
        let actor = &mut self.actors[actor];
        if act == Act::Write && !actor.is_open {
            actor.client.run(["COMMIT"])?;
        }
        Ok(())
    }

    /// Undoes a statement that an engine has refused for a lock; if `gone`, its whole transaction.
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

/// Ends a statement with these error codes on both sides: undoes it if one of them is a refusal for
/// a lock, which is returned.
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

/// Ends a statement on both sides: undoes it if it is refused; if `gone`, its whole transaction.
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
