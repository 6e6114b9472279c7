//! Runs the same interleaved statements of two connections on FronDB and on InnoDB. Compares the
//! rows that each connection reads by every key, also after the connection has written rows that
//! the other one has changed since this connection's snapshot.
//!
//! No statement waits: instead of waiting for a lock, a statement fails. The engines differ in
//! which locks conflict. So if one engine refuses a statement because of a lock, the statement is
//! undone on the other engine, as if it had not run. Rows, counts and all other errors must be
//! equal.
//!
//! | module | |
//! |---|---|
//! | [`shape`] | the table: a primary key or none, and keys drawn for it |
//! | [`step`] | statements for it |
//! | [`side`] | one engine with both connections |

mod shape;
pub(super) mod side;
mod step;

use std::path::Path;
use std::time::{Duration, Instant};

use frondb_core::prng::Prng;

use self::shape::Shape;
use self::side::{Act, ENGINES, Side};
use self::step::Step;
use super::compare::{is_lost, outcome, shown};
use crate::error::{Error, Result, harness};
use crate::reply::{Reply, Value};
use crate::server::Server;

/// Steps on one table. Few, so that the history of a failure is short.
const ROUND: u64 = 120;
/// Longest time of the search for fewer steps.
const SHRINKING: Duration = Duration::from_secs(60);

/// Counts of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// Statements that succeeded on both engines.
    pub alike: u64,
    /// Statements that at least one engine refused because of a lock.
    pub refused: u64,
    /// Rows that reads have returned.
    pub rows: u64,
    /// Reads of one value of a unique key for which a read view has two rows, of which each engine
    /// found a different one.
    pub one_of_two: u64,
}

/// Runs at least this many steps from a seed. If the engines differ, the error names the file with
/// the steps.
pub fn run(server: &Server, seed: u64, steps: u64, replays: &Path) -> Result<Report> {
    let mut random = Prng::new(seed);
    let mut report = Report::default();
    for _ in 0..steps.div_ceil(ROUND) {
        let shape = Shape::draw(&mut random);
        let steps: Vec<Step> = step::round(&mut random, &shape, ROUND);
        let Some((at, what)) = play(server, &shape, &steps, &mut report)? else { continue };
        let kept = shrink(server, &shape, steps[..=at].to_vec());
        let file = replays.join(format!("duet-{seed}.sql"));
        std::fs::write(&file, text(&shape, &kept)).map_err(|e| harness(file.display(), e))?;
        let (last, file) = (&steps[at].sql, file.display());
        return Err(Error::Harness(format!("seed {seed}: {what}\nin: {last}\nsteps: {file}")));
    }
    Ok(report)
}

/// Runs steps on both engines, on a new table; returns the first difference and its step.
fn play(
    server: &Server,
    shape: &Shape,
    steps: &[Step],
    report: &mut Report,
) -> Result<Option<(usize, String)>> {
    let mut sides = [side_of(server, shape, 0)?, side_of(server, shape, 1)?];
    for (i, step) in steps.iter().enumerate() {
        if let Some(what) = both(&mut sides, step, report)? {
            return Ok(Some((i, what)));
        }
    }
    Ok(None)
}

fn side_of(server: &Server, shape: &Shape, engine: usize) -> Result<Side> {
    let name = ENGINES[engine];
    let mut side = Side::connect(server, &format!("duet_{name}"))?;
    side.actors[0].client.run([shape.create(name, engine == 0), shape.fill()])?;
    Ok(side)
}

/// Runs a step on both engines; returns their difference, if any.
fn both(sides: &mut [Side; 2], step: &Step, report: &mut Report) -> Result<Option<String>> {
    let [ours, theirs] = sides;
    let run = |side: &mut Side| side.run(step.actor, step.act, &step.sql, step.level);
    let (a, b) = (run(ours)?, run(theirs)?);
    for (reply, engine) in [&a, &b].into_iter().zip(ENGINES) {
        if is_lost(reply) {
            return Ok(Some(format!("{engine}: {}", outcome(reply))));
        }
    }
    let codes = [&a, &b].map(|reply| reply.as_ref().err().and_then(Error::code));
    if side::refused_for_a_lock(sides, step.actor, step.act, codes)? {
        report.refused += 1;
        return Ok(None);
    }
    let (a, b) = match (a, b) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(_), Err(_)) if codes[0] == codes[1] => return Ok(None),
        (a, b) => return Ok(Some(format!("FronDB: {}\nInnoDB: {}", outcome(&a), outcome(&b)))),
    };
    let what = replies(&a, &b);
    if what.is_some() && is_one_of_two(sides, step, [&a, &b])? {
        report.one_of_two += 1;
        return Ok(None);
    }
    report.alike += 1;
    report.rows += a.rows.len() as u64;
    Ok(what)
}

/// Whether each engine found a different one of two rows with the same value of a unique key. If
/// one row has given up the value and another has taken it, a read view can contain both rows, and
/// a range of the key must then show both on both engines. See "one-of-two" in
/// `mariadb/docs/interleavings.md`.
fn is_one_of_two(sides: &mut [Side; 2], step: &Step, found: [&Reply; 2]) -> Result<bool> {
    let (Act::Read, Some((question, value))) = (step.act, step.sql.split_once("WHERE u = ")) else {
        return Ok(false);
    };
    let Ok(value) = value.trim().parse::<i64>() else { return Ok(false) };
    let range = format!("{question}WHERE u > {} AND u < {}", value - 1, value + 1);
    let mut all = Vec::new();
    for (side, reply) in sides.iter_mut().zip(found) {
        let [row] = reply.rows.as_slice() else { return Ok(false) };
        let mut rows = side.actors[step.actor].client.query(&range)?.rows;
        rows.sort();
        if rows.len() < 2 || !rows.contains(row) {
            return Ok(false);
        }
        all.push(rows);
    }
    Ok(all[0] == all[1])
}

fn replies(ours: &Reply, theirs: &Reply) -> Option<String> {
    // The first column of CHECK TABLE names the database.
    let is_check = ours.columns.iter().any(|column| column.name == "Msg_text");
    let sorted = |reply: &Reply| {
        let mut rows = reply.rows.clone();
        rows.iter_mut().filter(|_| is_check).for_each(|row| drop(row.remove(0)));
        rows.sort();
        rows
    };
    let (a, b) = (sorted(ours), sorted(theirs));
    if a == b && ours.affected == theirs.affected {
        return None;
    }
    let only = |all: &[Vec<Value>], of: &[Vec<Value>]| {
        // It is a difference too if a row occurs twice on one side and once on the other.
        let times = |rows: &[Vec<Value>], row: &Vec<Value>| {
            rows.iter().filter(|&other| other == row).count()
        };
        let rows = all.iter().filter(|row| times(all, row) > times(of, row));
        rows.map(|row| shown(Some(row))).collect::<Vec<_>>().join("; ")
    };
    Some(format!(
        "FronDB: {} affected, alone: {}\nInnoDB: {} affected, alone: {}",
        ours.affected,
        only(&a, &b),
        theirs.affected,
        only(&b, &a)
    ))
}

/// Removes steps as long as the last step still shows a difference.
fn shrink(server: &Server, shape: &Shape, mut kept: Vec<Step>) -> Vec<Step> {
    let begin = Instant::now();
    let mut at = kept.len().saturating_sub(1);
    while at > 0 && begin.elapsed() < SHRINKING {
        at -= 1;
        let mut fewer = kept.clone();
        fewer.remove(at);
        let met = play(server, shape, &fewer, &mut Report::default());
        if matches!(met, Ok(Some((last, _))) if last + 1 == fewer.len()) {
            kept = fewer;
        }
    }
    kept
}

/// The steps as text, for readers and for repeating them by hand.
fn text(shape: &Shape, steps: &[Step]) -> String {
    let mut text = format!("{};\n{};\n", shape.create(ENGINES[0], true), shape.fill());
    for step in steps {
        let actor = ["a", "b"][step.actor];
        let level = if step.act == Act::Begin { step.level } else { "" };
        text.push_str(&format!("{};  -- {actor} {level}\n", step.sql));
    }
    text
}
