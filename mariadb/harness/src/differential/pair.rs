//! The same statements on two engines of one server: a database and a connection each.

use std::time::Duration;

use super::compare::{difference, is_lost};
use super::statement::Step;
use super::table::CLUSTERING;
use crate::client::Client;
use crate::error::{Error, Result};
use crate::reply::Reply;
use crate::server::Server;

/// How long a statement may take: more is a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// Plans that InnoDB is asked for when it answers a question otherwise than we do: the server's own, and one without
/// what differs between the engines.
const PLANS: [&str; 2] =
    ["default", "mrr=off,index_condition_pushdown=off,rowid_filter=off,index_merge=off"];

/// Our engine, then the one to compare with.
const SIDES: [&str; 2] = ["FronDB", "InnoDB"];

/// What came of a statement.
#[derive(Debug)]
pub(super) enum Met {
    /// It succeeded on both sides, in the same way.
    Same,
    /// It failed on both sides, with the same error.
    Refused(u16),
    /// The sides differ, in this.
    Different(String),
}

/// The two sides.
#[derive(Debug)]
pub(super) struct Pair {
    sides: [Client; 2],
    /// Questions to which InnoDB gave two answers, and we its second one.
    pub(super) contradictions: u64,
}

impl Pair {
    /// Both sides, empty.
    pub(super) fn fresh(server: &Server) -> Result<Self> {
        let sides = [side(server, SIDES[0])?, side(server, SIDES[1])?];
        Ok(Self { sides, contradictions: 0 })
    }

    /// Runs a statement on both sides at once.
    pub(super) fn run(&mut self, step: &Step) -> Result<Met> {
        let [ours, theirs] = &mut self.sides;
        ours.send(&step.sql)?;
        theirs.send(step.sql.replace(CLUSTERING, ""))?;
        let (ours, theirs) = (ours.receive(), theirs.receive());
        for (outcome, name) in [&ours, &theirs].into_iter().zip(SIDES) {
            if is_lost(outcome) {
                // A crash or a hang is a difference, too.
                let why = outcome.as_ref().err().map(Error::to_string).unwrap_or_default();
                return Ok(Met::Different(format!("{name}: {why}")));
            }
        }
        let what = difference(step, &ours, &theirs);
        if what.is_some() && self.contradicts_itself(step, &ours)? {
            self.contradictions += 1;
            return Ok(Met::Same);
        }
        Ok(match (what, ours) {
            (Some(what), _) => Met::Different(what),
            (None, Ok(_)) => Met::Same,
            (None, Err(error)) => Met::Refused(error.code().unwrap_or(0)),
        })
    }

    /// Whether InnoDB gives our answer to a question when it goes another way. An answer does not depend on the way,
    /// so that its first one was wrong.
    fn contradicts_itself(&mut self, step: &Step, ours: &Result<Reply>) -> Result<bool> {
        if !step.sql.starts_with("SELECT") {
            return Ok(false);
        }
        for plan in PLANS {
            self.sides[1]
                .send(format!("SET STATEMENT optimizer_switch='{plan}' FOR {}", step.sql))?;
            let theirs = self.sides[1].receive();
            if ours.is_ok() && difference(step, ours, &theirs).is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn side(server: &Server, engine: &str) -> Result<Client> {
    let mut client = server.connect()?;
    client.patience(PATIENCE)?;
    let database = format!("differential_{engine}");
    client.run([
        // A connection that was closed just now may still hold locks.
        "SET lock_wait_timeout = 10".to_owned(),
        format!("DROP DATABASE IF EXISTS {database}"),
        format!("CREATE DATABASE {database} CHARACTER SET utf8mb4"),
        format!("USE {database}"),
        format!("SET default_storage_engine = {engine}"),
        // What is now must not depend on when.
        "SET timestamp = 1700000000, time_zone = '+00:00'".to_owned(),
    ])?;
    Ok(client)
}
