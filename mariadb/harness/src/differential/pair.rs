//! Runs the same statements on two engines of one server. Each engine has its own database and
//! connection.

use std::time::Duration;

use super::compare::{DUPLICATE, difference, is_duplicate_found_late, is_lost};
use super::statement::Step;
use super::table::CLUSTERING;
use crate::client::Client;
use crate::error::{Error, Result};
use crate::reply::{Reply, Value};
use crate::server::Server;

/// Longest wait for the reply to a statement. A statement that takes longer counts as hung.
const TIMEOUT: Duration = Duration::from_secs(60);

/// When InnoDB's answer differs from FronDB's, InnoDB answers again with these plans: the server's
/// own plan, and one without the optimizations that differ between the engines.
const PLANS: [&str; 2] =
    ["default", "mrr=off,index_condition_pushdown=off,rowid_filter=off,index_merge=off"];

/// FronDB, then the engine to compare with.
const SIDES: [&str; 2] = ["FronDB", "InnoDB"];

/// The comparison of a statement's outcomes.
#[derive(Debug)]
pub(super) enum Met {
    /// The statement succeeded on both sides, with the same result; for a query, InnoDB may have
    /// needed another plan for that.
    Same,
    /// The statement failed on both sides, with the same error number or with numbers that may
    /// differ.
    Refused(u16),
    /// The outcomes differ; the text says how.
    Different(String),
}

/// Both engines: a connection to each.
#[derive(Debug)]
pub(super) struct Pair {
    sides: [Client; 2],
    /// Queries to which InnoDB gave two answers, of which the second was also FronDB's.
    pub(super) contradictions: u64,
}

impl Pair {
    /// Connects to both engines, each with an empty database.
    pub(super) fn fresh(server: &Server) -> Result<Self> {
        let sides = [side(server, SIDES[0])?, side(server, SIDES[1])?];
        Ok(Self { sides, contradictions: 0 })
    }

    /// Runs a statement on both sides at the same time.
    pub(super) fn run(&mut self, step: &Step) -> Result<Met> {
        let [ours, theirs] = &mut self.sides;
        ours.send(&step.sql)?;
        theirs.send(step.sql.replace(CLUSTERING, ""))?;
        let (ours, theirs) = (ours.receive(), theirs.receive());
        for (outcome, name) in [&ours, &theirs].into_iter().zip(SIDES) {
            if is_lost(outcome) {
                // A crash or a hang is a difference too.
                let why = outcome.as_ref().err().map(Error::to_string).unwrap_or_default();
                return Ok(Met::Different(format!("{name}: {why}")));
            }
        }
        let what = difference(step, &ours, &theirs);
        if what.is_some() && self.contradicts_itself(step, &ours, &theirs)? {
            self.contradictions += 1;
            return Ok(Met::Same);
        }
        if what.is_some()
            && is_duplicate_found_late(step, &ours, &theirs)
            && self.has_empty_part(&step.tables[0])?
        {
            return Ok(Met::Refused(DUPLICATE));
        }
        Ok(match (what, ours) {
            (Some(what), _) => Met::Different(what),
            (None, Ok(_)) => Met::Same,
            (None, Err(error)) => Met::Refused(error.code().unwrap_or(0)),
        })
    }

    /// The rows and entries that both sides have read since they connected.
    pub(super) fn rows_read(&mut self) -> Result<[u64; 2]> {
        const READ: &str = "SELECT SUM(variable_value) FROM information_schema.session_status \
                            WHERE variable_name LIKE 'Handler_read%'";
        let [ours, theirs] = &mut self.sides;
        Ok([ours.number(READ)?, theirs.number(READ)?])
    }

    /// Whether the table, or one of its partitions, is empty on FronDB's side.
    fn has_empty_part(&mut self, table: &str) -> Result<bool> {
        let [ours, _] = &mut self.sides;
        ours.send(format!(
            "SELECT partition_name FROM information_schema.partitions \
             WHERE table_schema = DATABASE() AND table_name = '{table}'"
        ))?;
        for row in ours.receive()?.rows {
            let partition = match row.first().and_then(Option::as_ref) {
                Some(name) => format!(" PARTITION ({})", String::from_utf8_lossy(name)),
                None => String::new(),
            };
            ours.send(format!("SELECT 1 FROM {table}{partition} LIMIT 1"))?;
            if ours.receive()?.rows.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether InnoDB, with another plan, gives FronDB's answer to the query. An answer must not
    /// depend on the plan, so InnoDB's first answer was wrong.
    fn contradicts_itself(
        &mut self,
        step: &Step,
        ours: &Result<Reply>,
        theirs: &Result<Reply>,
    ) -> Result<bool> {
        if ours.is_err() || !step.sql.starts_with("SELECT") {
            return Ok(false);
        }
        for plan in PLANS {
            let sql = format!("SET STATEMENT optimizer_switch='{plan}' FOR {}", step.sql);
            if self.innodb_agrees(step, &sql, ours)? {
                return Ok(true);
            }
        }
        if let Some(sql) = without_index(&step.sql)
            && self.innodb_agrees(step, &sql, ours)?
        {
            return Ok(true);
        }
        for table in &step.tables {
            for key in self.keys_of_innodb(table)? {
                let sql = with_index(&step.sql, table, &key);
                if sql != step.sql && self.innodb_agrees(step, &sql, ours)? {
                    return Ok(true);
                }
            }
        }
        // If rows are missing, repeat the query without its ORDER BY. Rows that are only in another
        // order are a difference.
        let any_order = step.clone().ordered(false);
        let Some(sql) = without_order(&step.sql) else { return Ok(false) };
        Ok(difference(&any_order, ours, theirs).is_some()
            && self.innodb_agrees(&any_order, &sql, ours)?)
    }

    /// The names of a table's keys.
    fn keys_of_innodb(&mut self, table: &str) -> Result<Vec<String>> {
        self.sides[1].send(format!("SHOW KEYS FROM {table}"))?;
        const NAME: usize = 2;
        let name = |row: Vec<Value>| row.into_iter().nth(NAME).flatten();
        let rows = self.sides[1].receive()?.rows;
        let mut names: Vec<String> = rows
            .into_iter()
            .filter_map(name)
            .map(|name| String::from_utf8_lossy(&name).into_owned())
            .collect();
        names.dedup();
        Ok(names)
    }

    /// Whether InnoDB's answer to `sql` equals FronDB's answer to the step.
    fn innodb_agrees(&mut self, step: &Step, sql: &str, ours: &Result<Reply>) -> Result<bool> {
        self.sides[1].send(sql)?;
        let theirs = self.sides[1].receive();
        Ok(difference(step, ours, &theirs).is_none())
    }
}

/// The query without an index. InnoDB reads rows of some partitioned tables out of order by an
/// index of a virtual column, so groups appear twice. And whether the ENUM error value equals `''`
/// depends on whether the server searches a key for it.
fn without_index(sql: &str) -> Option<String> {
    const NONE: &str = " USE INDEX ()";
    if let Some((before, after)) = sql.split_once(" FORCE INDEX (") {
        let (_, after) = after.split_once(')')?;
        return Some(format!("{before}{NONE}{after}"));
    }
    let (before, after) = sql.split_once(" FROM ")?;
    let (table, after) = after.split_once(' ')?;
    let is_name = table.chars().all(char::is_alphanumeric);
    let is_alone = ["WHERE ", "GROUP BY "].iter().any(|clause| after.starts_with(clause));
    (is_name && is_alone).then(|| format!("{before} FROM {table}{NONE} {after}"))
}

/// The query with an index that the optimizer has not chosen. With contractions of some collations,
/// the server's range for LIKE misses rows.
fn with_index(sql: &str, table: &str, key: &str) -> String {
    let from = format!(" FROM {table} WHERE ");
    sql.replace(&from, &format!(" FROM {table} FORCE INDEX (`{key}`) WHERE "))
}

/// The query without its ORDER BY, if the order does not select rows. When InnoDB sorts references
/// to rows, it afterwards fails to find some rows of some tables.
fn without_order(sql: &str) -> Option<String> {
    let (question, order) = sql.rsplit_once(" ORDER BY ")?;
    (!order.contains("LIMIT") && !order.contains(')')).then(|| question.to_owned())
}

fn side(server: &Server, engine: &str) -> Result<Client> {
    let mut client = server.connect()?;
    client.set_reply_timeout(TIMEOUT)?;
    let database = format!("differential_{engine}");
    client.run([
        // A connection that was just closed may still hold locks.
        "SET lock_wait_timeout = 10".to_owned(),
        format!("DROP DATABASE IF EXISTS {database}"),
        format!("CREATE DATABASE {database} CHARACTER SET utf8mb4"),
        format!("USE {database}"),
        format!("SET default_storage_engine = {engine}"),
        // A fixed current time, so that results do not depend on when the test runs.
        "SET timestamp = 1700000000, time_zone = '+00:00'".to_owned(),
    ])?;
    Ok(client)
}

#[cfg(test)]
mod tests {
    use super::{with_index, without_index, without_order};

    #[test]
    fn a_query_is_repeated_without_its_index_and_without_its_order() {
        let forced = "SELECT c1 FROM t FORCE INDEX (k1,k2) WHERE c1 IN (1) ORDER BY c1";
        let asked = without_index(forced).unwrap();
        assert_eq!(asked, "SELECT c1 FROM t USE INDEX () WHERE c1 IN (1) ORDER BY c1");
        assert_eq!(without_order(&asked).unwrap(), "SELECT c1 FROM t USE INDEX () WHERE c1 IN (1)");
        let free = "SELECT * FROM t7 WHERE c1 IN ('a','') LOCK IN SHARE MODE";
        let asked = without_index(free).unwrap();
        assert_eq!(asked, "SELECT * FROM t7 USE INDEX () WHERE c1 IN ('a','') LOCK IN SHARE MODE");
        let grouped = "SELECT count(*), min(c0) FROM t7 GROUP BY g3";
        let asked = without_index(grouped).unwrap();
        assert_eq!(asked, "SELECT count(*), min(c0) FROM t7 USE INDEX () GROUP BY g3");
        assert_eq!(without_index("SELECT 1 FROM t7 a JOIN t8 b WHERE a.c0 = b.c0"), None);
        assert_eq!(without_index("SELECT 1"), None);
        let nested = "SELECT * FROM t7 WHERE c0 IN (SELECT c0 FROM t7 WHERE c6 LIKE 'ch%')";
        let forced = "SELECT * FROM t7 FORCE INDEX (`k`) WHERE c0 IN \
                      (SELECT c0 FROM t7 FORCE INDEX (`k`) WHERE c6 LIKE 'ch%')";
        assert_eq!(with_index(nested, "t7", "k"), forced);
        // With LIMIT the order selects the rows.
        assert_eq!(without_order("SELECT c1 FROM t ORDER BY c1 LIMIT 3"), None);
    }
}
