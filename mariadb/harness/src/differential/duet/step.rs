//! Statements of two connections. The effect of a statement on several rows does not depend on the
//! order of the rows.

use frondb_core::prng::Prng;

use super::shape::{Shape, TEXTS};
use super::side::Act;

/// A step of one of the two connections.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) actor: usize,
    pub(super) act: Act,
    pub(super) sql: String,
    /// The isolation level, if the step begins a transaction.
    pub(super) level: &'static str,
}

/// Without READ UNCOMMITTED, at which InnoDB shows data that FronDB never shows.
const LEVELS: [&str; 4] = ["REPEATABLE READ", "REPEATABLE READ", "READ COMMITTED", "SERIALIZABLE"];

/// Draws the steps of a round. At its end both connections commit; then one reads the table and the
/// other checks it.
pub(super) fn round(random: &mut Prng, shape: &Shape, steps: u64) -> Vec<Step> {
    let mut all = Vec::new();
    while (all.len() as u64) < steps {
        let actor = random.index(2);
        let mut add = |act, sql: String, level| all.push(Step { actor, act, sql, level });
        match random.below(24) {
            0 | 1 => {
                let level = LEVELS[random.index(LEVELS.len())];
                let now = random.chance(1, 3) && level == "REPEATABLE READ";
                let begin =
                    if now { "START TRANSACTION WITH CONSISTENT SNAPSHOT" } else { "BEGIN" };
                add(Act::Begin, begin.into(), level);
                if random.chance(2, 3) && level != "SERIALIZABLE" {
                    add(Act::Read, shape.look(), "");
                }
            }
            2 => add(Act::End, one(random, &["COMMIT", "ROLLBACK"]).into(), ""),
            3 => add(Act::Savepoint, format!("SAVEPOINT s{}", random.below(2)), ""),
            4 => add(Act::Savepoint, format!("ROLLBACK TO s{}", random.below(2)), ""),
            5..9 => add(Act::Read, shape.look(), ""),
            9..14 => add(Act::Read, read(random, shape), ""),
            _ => {
                add(Act::Write, write(random, shape), "");
                if random.chance(1, 2) {
                    add(Act::Read, shape.look(), "");
                }
            }
        }
    }
    for actor in 0..2 {
        all.push(Step { actor, act: Act::End, sql: "COMMIT".into(), level: "" });
    }
    all.push(Step { actor: 0, act: Act::Read, sql: shape.look(), level: "" });
    all.push(Step { actor: 1, act: Act::Read, sql: "CHECK TABLE t EXTENDED".into(), level: "" });
    all
}

fn one<'a>(random: &mut Prng, of: &[&'a str]) -> &'a str {
    of[random.index(of.len())]
}

fn read(random: &mut Prng, shape: &Shape) -> String {
    let force = match random.pick(&shape.keys) {
        Some(key) if random.chance(3, 4) => format!("FORCE INDEX ({})", key.name),
        _ => String::new(),
    };
    let lock = one(random, &["", "", "", "FOR UPDATE", "LOCK IN SHARE MODE"]);
    let which = condition(random);
    match random.below(8) {
        0 => format!("SELECT count(*) FROM t {force} {lock}"),
        1 => format!("SELECT min(g), max(u), sum(v) FROM t {force} WHERE {which}"),
        2 => format!("SELECT g, v FROM t {force} WHERE g >= {} {lock}", random.below(4)),
        _ => format!("SELECT * FROM t {force} WHERE {which} {lock}"),
    }
}

fn write(random: &mut Prng, shape: &Shape) -> String {
    let which = condition(random);
    let (u, id) = (random.below(14), random.below(14));
    match random.below(16) {
        0..3 => format!("INSERT INTO t VALUES {}", row(random)),
        3 => format!("INSERT INTO t VALUES {}, {}", row(random), row(random)),
        4 => format!("INSERT IGNORE INTO t VALUES {}, {}", row(random), row(random)),
        5 => {
            let sets = one(random, &["v = t.v + 1", "g = 3", "u = NULL", "s = 'b'"]);
            let sets = sets.replace("t.v", "v");
            format!("INSERT INTO t VALUES {} ON DUPLICATE KEY UPDATE {sets}", row(random))
        }
        6 => format!("REPLACE INTO t VALUES {}", row(random)),
        7 => format!("UPDATE t SET u = {u} WHERE id = {id}"),
        8 if shape.has_order() => {
            format!("UPDATE IGNORE t SET u = {u} WHERE {which} ORDER BY id, s")
        }
        9 => format!("UPDATE t SET id = {u} WHERE id = {id}"),
        10..13 => format!("DELETE FROM t WHERE {which}"),
        _ => {
            let sets = ["v = v + 1", "g = g + 1", "g = 2", "s = 'ab'", "g = NULL", "v = 7, g = 0"];
            let set = one(random, &sets);
            // A unique key contains `v`, so the UPDATE must raise the highest value first.
            let order =
                if set == "v = v + 1" && shape.is_unique("v") { " ORDER BY v DESC" } else { "" };
            format!("UPDATE t SET {set} WHERE {which}{order}")
        }
    }
}

fn row(random: &mut Prng) -> String {
    let mut number = |below: u64| match random.below(below + 1) {
        0 => "NULL".to_owned(),
        n => n.to_string(),
    };
    let (g, u, v) = (number(5), number(14), number(3));
    format!("({}, '{}', {g}, {u}, {v})", random.below(14), one(random, &TEXTS))
}

/// Draws a condition that mostly selects few rows.
fn condition(random: &mut Prng) -> String {
    let (n, m) = (random.below(6), random.below(14));
    match random.below(9) {
        0 | 1 => format!("id = {m}"),
        2 => format!("id BETWEEN {n} AND {}", n + 2),
        3 => format!("g = {n}"),
        4 => format!("g BETWEEN {n} AND {}", n + 1),
        5 | 6 => format!("u = {m}"),
        7 => format!("s = '{}'", one(random, &TEXTS)),
        _ => format!("v > {n}"),
    }
}
