//! Runs a random stream of statements on FronDB and on InnoDB, and compares after each statement.
//!
//! ```text
//!   Source --- statement ---> Pair --- FronDB ---\
//!     ^  tables as the test    |                  compare: rows, counts, errors
//!     |  knows them            '------ InnoDB ---/
//!     '------ what it changed, if it succeeded
//! ```
//!
//! The seed determines a run. After a failure the run reduces the statements that led to the
//! failure to a few, and writes them to a file.
//!
//! | module | |
//! |---|---|
//! | [`catalog`] | types and collations, drawn evenly |
//! | [`table`], [`values`] | random tables and literals for them, texts from [`pieces`] |
//! | [`kind`] | kinds of statements and their weights |
//! | [`source`] | the tables that exist |
//! | [`generate`] | the next [`statement`], by [`define`], [`change`], [`read`] or [`session`] |
//! | [`audit`] | reads whole tables |
//! | [`pair`], [`compare`] | both engines, and what must be equal |
//! | [`shrink`] | reduces the statements of a failure to a few |
//! | [`duet`] | the same with two connections, on tables of its own |
//! | [`foreign`] | foreign keys, with one connection and with two |

mod audit;
mod catalog;
mod change;
mod compare;
mod define;
pub mod duet;
pub mod foreign;
mod generate;
mod kind;
mod pair;
mod pieces;
mod read;
mod session;
mod shrink;
mod source;
mod statement;
mod table;
mod values;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::error::{Error, Result, harness};
use crate::server::Server;
use catalog::Catalog;
pub use catalog::LEAST;
use kind::Kind;
use pair::{Met, Pair};
use source::Source;
use statement::Step;

/// Number of statements after which all tables are read completely and compared.
const AUDIT_EVERY: u64 = 100;
/// Statements after which a run continues with an empty database, so that the history of a failure
/// is short.
const ROUND: u64 = 2500;

/// How often each kind, type and collation occurred in a statement that succeeded.
#[derive(Debug, Default)]
pub struct Counts {
    kinds: BTreeMap<&'static str, u64>,
    types: BTreeMap<String, u64>,
    collations: BTreeMap<String, u64>,
    /// Statements that failed on both sides, by error number.
    errors: BTreeMap<u16, u64>,
    /// Queries to which InnoDB and FronDB gave different answers, but the same answer when InnoDB
    /// used another plan.
    contradictions: u64,
    /// Rows and entries that the plans have read in FronDB and in InnoDB.
    rows_read: [u64; 2],
}

impl Counts {
    fn add(&mut self, source: &mut Source, step: &Step, met: &Met) {
        if let Met::Refused(code) = met {
            *self.errors.entry(*code).or_default() += 1;
            return;
        }
        *self.kinds.entry(step.kind.name()).or_default() += 1;
        for table in source.tables.iter().filter(|table| step.tables.contains(&table.name)) {
            for column in &table.columns {
                *self.types.entry(column.ty.name.clone()).or_default() += 1;
                if let Some(collation) = &column.ty.collation {
                    *self.collations.entry(collation.clone()).or_default() += 1;
                    source.catalog.meets(collation);
                }
            }
        }
    }

    /// Adds the counts of another run.
    pub fn merge(&mut self, other: &Self) {
        self.contradictions += other.contradictions;
        self.add_rows_read(other.rows_read);
        for (code, count) in &other.errors {
            *self.errors.entry(*code).or_default() += count;
        }
        for (name, count) in &other.kinds {
            *self.kinds.entry(name).or_default() += count;
        }
        for (all, others) in
            [(&mut self.types, &other.types), (&mut self.collations, &other.collations)]
        {
            for (name, count) in others {
                *all.entry(name.clone()).or_default() += count;
            }
        }
    }

    fn add_rows_read(&mut self, rows_read: [u64; 2]) {
        for (all, rows) in self.rows_read.iter_mut().zip(rows_read) {
            *all += rows;
        }
    }

    /// Rows and entries that FronDB's plans have read for each one that InnoDB's plans have read.
    pub fn reads_to_innodb(&self) -> f64 {
        let [ours, theirs] = self.rows_read;
        ours as f64 / theirs.max(1) as f64
    }

    /// The kinds, types and collations that occurred fewer than `least` times.
    pub fn rare(&self, least: u64) -> Vec<String> {
        let all = self.kinds.iter().map(|(name, count)| (*name, *count));
        let all = all.chain(self.types.iter().map(|(name, count)| (name.as_str(), *count)));
        let all = all.chain(self.collations.iter().map(|(name, count)| (name.as_str(), *count)));
        all.filter(|(_, count)| *count < least)
            .map(|(name, count)| format!("{name}: {count}"))
            .collect()
    }

    /// All counts as text. For collations only their number and the smallest count.
    pub fn report(&self) -> String {
        let mut text = String::new();
        let mut list = |title: &str, counts: Vec<(String, u64)>| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{title}:");
            for (name, count) in counts {
                let _ = writeln!(text, "{count:>8} {name}");
            }
        };
        list("statements", self.kinds.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect());
        list("types", self.types.iter().map(|(name, n)| (name.clone(), *n)).collect());
        list("errors", self.errors.iter().map(|(code, n)| (code.to_string(), *n)).collect());
        let least = self.collations.values().min().copied().unwrap_or(0);
        let _ = writeln!(
            text,
            "{} collations, each in {least} statements or more",
            self.collations.len()
        );
        let _ = writeln!(text, "{} answers of InnoDB that depend on its plan", self.contradictions);
        let [ours, theirs] = self.rows_read;
        let _ = writeln!(text, "{ours} rows and entries read, InnoDB {theirs}");
        text
    }
}

/// Runs this many statements from a seed. If the engines differ, the error names the file with the
/// statements that lead to the difference.
pub fn run(server: &mut Server, seed: u64, statements: u64, replays: &Path) -> Result<Counts> {
    let mut counts = Counts::default();
    let catalog = Catalog::read(&mut server.connect()?)?;
    for ty in catalog.types() {
        counts.types.insert(ty.to_owned(), 0);
    }
    for collation in catalog.collations() {
        counts.collations.insert(collation.to_owned(), 0);
    }
    for kind in Kind::ALL.iter().filter(|kind| **kind != Kind::Audit) {
        counts.kinds.insert(kind.name(), 0);
    }
    let mut source = Source::new(seed, catalog);
    let mut left = statements;
    while left > 0 {
        let round = left.min(ROUND);
        left -= round;
        let mut pair = Pair::fresh(server)?;
        let mut log = Vec::new();
        source.forget();
        let met = round_of(&mut pair, &mut source, &mut counts, &mut log, round)?;
        counts.contradictions += pair.contradictions;
        if met.is_none() {
            counts.add_rows_read(pair.rows_read()?);
        }
        // Open transactions of this pair would block the replays.
        drop(pair);
        if let Some(what) = met {
            return Err(failed(server, seed, &what, log, replays));
        }
    }
    Ok(counts)
}

/// Runs statements on a fresh pair. Returns the first difference, if any; the last statement of the
/// log is its cause.
fn round_of(
    pair: &mut Pair,
    source: &mut Source,
    counts: &mut Counts,
    log: &mut Vec<Step>,
    statements: u64,
) -> Result<Option<String>> {
    for number in 1..=statements {
        let mut step = source.next();
        log.push(step.clone());
        let met = pair.run(&step)?;
        step.refused = matches!(met, Met::Refused(_));
        if let Some(last) = log.last_mut() {
            last.refused = step.refused;
        }
        match &met {
            Met::Different(what) => return Ok(Some(what.clone())),
            Met::Same => source.apply(&step),
            Met::Refused(_) => {}
        }
        source.ran(&step);
        counts.add(source, &step, &met);
        if number % AUDIT_EVERY == 0 || number == statements {
            for look in source.tables.iter().flat_map(audit::steps) {
                if let Met::Different(what) = pair.run(&look)? {
                    log.push(look);
                    return Ok(Some(what));
                }
            }
        }
    }
    Ok(None)
}

fn failed(server: &mut Server, seed: u64, what: &str, log: Vec<Step>, replays: &Path) -> Error {
    let before = log.len();
    let steps = shrink::shrink(server, log);
    let last = steps.last().map(|step| step.sql.clone()).unwrap_or_default();
    let file = replays.join(format!("differential-{seed}.sql"));
    let mut text = format!(
        "-- Seed {seed}; {} of {before} statements. Run it with default_storage_engine FronDB and InnoDB;\n\
         -- the last one differs.\nSET timestamp = 1700000000, time_zone = '+00:00';\n",
        steps.len()
    );
    for step in &steps {
        text.push_str(&step.sql);
        text.push_str(";\n");
    }
    if let Err(error) = fs::create_dir_all(replays).and_then(|()| fs::write(&file, text)) {
        return harness(file.display(), error);
    }
    let file = file.display();
    Error::Harness(format!("seed {seed}: {what}\nin: {last}\nstatements that lead there: {file}"))
}
