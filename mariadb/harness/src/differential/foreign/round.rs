//! Draws the steps of a round: a new family of tables, and statements of one connection or of two.

use frondb_core::prng::Prng;

use super::change::{Changes, Drawn};
use super::define;
use super::domain::Domain;
use super::family::Family;
use crate::differential::duet::side::Act;

/// The purpose of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aim {
    /// Runs a statement. If the round has only one connection, all tables are read afterwards.
    Run,
    /// Runs a statement that defines tables. All definitions and tables are read afterwards.
    Define,
    /// Reads all tables.
    Look,
    /// Checks that no row lacks its parent, on both engines.
    Orphans,
    /// Runs CHECK TABLE on FronDB's tables.
    Check,
}

/// A step of one of the two connections.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) actor: usize,
    pub(super) act: Act,
    pub(super) aim: Aim,
    pub(super) kind: &'static str,
    pub(super) sql: String,
    /// The isolation level, if the step begins a transaction.
    pub(super) level: &'static str,
    /// Whether the comparison ignores trailing spaces of values; see [`Domain::is_mixed`].
    ///
    /// [`Domain::is_mixed`]: super::domain::Domain::is_mixed
    pub(super) trims: bool,
    /// Whether rows may lack their parents, because foreign_key_checks is off at times.
    pub(super) has_orphans: bool,
    /// Whether only one connection runs statements.
    pub(super) is_alone: bool,
    /// Whether an ALTER may have rebuilt indexes of InnoDB, which then come after the others.
    pub(super) is_altered: bool,
}

/// Without READ UNCOMMITTED, at which InnoDB shows data that FronDB never shows.
const LEVELS: [&str; 4] = ["REPEATABLE READ", "REPEATABLE READ", "READ COMMITTED", "SERIALIZABLE"];

/// Kinds of statements that may remove a key, or remove or change a column, that foreign keys need.
const NEEDED: [&str; 3] = ["DROP KEY", "DROP COLUMN", "MODIFY"];

/// The steps of a round while they are collected.
struct Round {
    steps: Vec<Step>,
    /// Whether only one connection runs statements.
    is_alone: bool,
    trims: bool,
    has_orphans: bool,
    is_altered: bool,
}

impl Round {
    fn add(&mut self, actor: usize, act: Act, aim: Aim, (kind, sql): Drawn, level: &'static str) {
        self.is_altered |= sql.starts_with("ALTER TABLE");
        self.steps.push(Step {
            actor,
            act,
            aim,
            kind,
            sql,
            level,
            trims: self.trims,
            has_orphans: self.has_orphans,
            is_alone: self.is_alone,
            is_altered: self.is_altered,
        });
    }

    fn alone(&mut self, aim: Aim, drawn: Drawn) {
        self.add(0, Act::Alone, aim, drawn, "");
    }

    fn finish(&mut self, aim: Aim) {
        self.alone(aim, ("", String::new()));
    }

    fn change(&mut self, actor: usize, drawn: Drawn, random: &mut Prng) {
        // Set the next AUTO_INCREMENT value, because failed statements leave the engines with
        // different counters.
        if drawn.1.contains("(NULL") {
            let sql = format!("SET insert_id = {}", 20 + random.below(20));
            self.add(actor, Act::Read, Aim::Run, ("", sql), "");
        }
        // Such a statement may have to be undone: see `differs_rightly`.
        let may_differ = self.has_orphans || drawn.1.starts_with("UPDATE IGNORE");
        let act = if self.is_alone && !may_differ { Act::Alone } else { Act::Write };
        self.add(actor, act, Aim::Run, drawn, "");
    }
}

/// Draws a round of `count` steps or a few more.
pub(super) fn draw(random: &mut Prng, is_alone: bool, count: u64) -> Vec<Step> {
    // A round in which foreign_key_checks is always on must end without orphans.
    let has_orphans = is_alone && random.chance(1, 2);
    let mut family = Family::draw(random, has_orphans);
    let trims = family.domains.iter().any(Domain::is_mixed);
    let mut round = Round { steps: Vec::new(), is_alone, trims, has_orphans, is_altered: false };
    create(random, &mut round, &family);
    let mut later: Vec<Drawn> = Vec::new();
    while (round.steps.len() as u64) < count {
        let actor = if is_alone { 0 } else { random.index(2) };
        match random.below(20) {
            0 => {
                let level = LEVELS[random.index(LEVELS.len())];
                round.add(actor, Act::Begin, Aim::Run, ("BEGIN", "BEGIN".into()), level);
                if !is_alone && level != "SERIALIZABLE" && random.chance(2, 3) {
                    round.add(actor, Act::Read, Aim::Look, ("", String::new()), "");
                }
            }
            1 => {
                let end = ["COMMIT", "ROLLBACK"][random.index(2)];
                round.add(actor, Act::End, Aim::Run, (end, end.into()), "");
            }
            2 => {
                let sql = format!("SAVEPOINT s{}", random.below(2));
                round.add(actor, Act::Savepoint, Aim::Run, ("SAVEPOINT", sql), "");
            }
            3 => {
                let sql = format!("ROLLBACK TO s{}", random.below(2));
                round.add(actor, Act::Savepoint, Aim::Run, ("ROLLBACK TO SAVEPOINT", sql), "");
            }
            4 if !is_alone => round.add(actor, Act::Read, Aim::Look, ("", String::new()), ""),
            4 | 5 if is_alone && !later.is_empty() => {
                let drawn = later.remove(0);
                round.alone(Aim::Define, drawn);
            }
            6 if is_alone => {
                // The first statement of a group runs now, the others after some other steps.
                let mut all = define::draw(random, &mut family);
                // While foreign_key_checks is off, FronDB lets a table lose what its foreign keys
                // need until an ALTER restores it; InnoDB refuses the change or forgets the foreign
                // keys.
                let is_off = later.iter().any(|(_, sql)| sql == "SET foreign_key_checks = 1");
                all.retain(|(kind, _)| !is_off || !NEEDED.contains(kind));
                // While a table has another name, the model does not know to which table that name
                // belongs.
                let is_renamed = later.iter().any(|(kind, _)| *kind == "RENAME TABLE");
                all.retain(|(_, sql)| !is_renamed || !sql.contains("FOREIGN KEY"));
                all.retain(|(_, sql)| has_orphans || !sql.contains("foreign_key_checks"));
                if !all.is_empty() {
                    round.alone(Aim::Define, all.remove(0));
                    later.extend(all);
                }
            }
            _ => {
                let drawn = Changes { random, family: &family }.draw();
                round.change(actor, drawn, random);
            }
        }
    }
    for actor in 0..if is_alone { 1 } else { 2 } {
        round.add(actor, Act::End, Aim::Run, ("COMMIT", "COMMIT".into()), "");
    }
    round.finish(Aim::Look);
    if !has_orphans {
        round.finish(Aim::Orphans);
    }
    round.finish(Aim::Check);
    round.steps
}

fn create(random: &mut Prng, round: &mut Round, family: &Family) {
    let mut all: Vec<Drawn> =
        family.tables.iter().map(|table| ("CREATE TABLE", table.create())).collect();
    // While foreign_key_checks is off, create the tables in any order, as dumps do.
    if round.has_orphans && random.chance(1, 2) {
        random.shuffle(&mut all);
        all.insert(0, ("SET foreign_key_checks", "SET foreign_key_checks = 0".to_owned()));
        all.push(("SET foreign_key_checks", "SET foreign_key_checks = 1".to_owned()));
    }
    for drawn in all {
        round.alone(Aim::Define, drawn);
    }
    for table in &family.tables {
        for drawn in (Changes { random, family }).fill(table) {
            round.alone(Aim::Run, drawn);
        }
    }
}
