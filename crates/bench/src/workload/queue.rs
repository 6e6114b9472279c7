//! Queues: reads the first or the last row with a new cursor and deletes it, again and again. The
//! cost of a pop must not depend on the number of earlier pops.
//!
//! ```text
//!  in one transaction, from the first row on | from the last row on
//!  in transactions of 100 rows
//!  a commit for each row, not synced         | beside an older snapshot | with a push at the end
//! ```
//!
//! Each case has a database of its own, which is flushed before the pops. A figure is the rate of
//! all pops. The cases in one transaction also have the rate of the last tenth of the pops divided
//! by the rate of the first tenth.

use std::time::Instant;

use frondb::{Durability, Isolation, Transaction, TransactionOptions};

use super::Spec;
use super::txn::Store;
use crate::driver::Progress;
use crate::engines::frondb::FRONDB;
use crate::error::{Error, Result};
use crate::report::{Figure, Measurement};

/// Rows if their number is not given.
pub(crate) const ROWS: u64 = 400_000;

const VALUE: [u8; 100] = [b'q'; 100];

/// The end of the tree from which rows are popped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    First,
    Last,
}

struct Case {
    name: &'static str,
    end: End,
    /// Pops in a transaction.
    commit_rows: u64,
    /// Whether a snapshot from before the pops is open.
    has_snapshot: bool,
    /// Whether each pop also writes a row at the other end.
    pushes: bool,
    /// Floor and goal, pops a second.
    limits: (f64, f64),
}

const IN_ONE: (f64, f64) = (200_000.0, 1_000_000.0);
const COMMIT_EACH: (f64, f64) = (20_000.0, 100_000.0);

const CASES: [Case; 7] = [
    Case::new("pops in one transaction", u64::MAX, IN_ONE),
    Case { end: End::Last, ..Case::new("pops in one transaction, from the end", u64::MAX, IN_ONE) },
    Case::new("pops, 100 a transaction", 100, COMMIT_EACH),
    Case::new("pops, a commit each", 1, COMMIT_EACH),
    Case { end: End::Last, ..Case::new("pops, a commit each, from the end", 1, COMMIT_EACH) },
    Case { has_snapshot: true, ..Case::new("pops, a commit each, old snapshot", 1, COMMIT_EACH) },
    Case { pushes: true, ..Case::new("pops and pushes, a commit each", 1, COMMIT_EACH) },
];

impl Case {
    const fn new(name: &'static str, commit_rows: u64, limits: (f64, f64)) -> Self {
        Self { name, end: End::First, commit_rows, has_snapshot: false, pushes: false, limits }
    }
}

pub(super) fn run(spec: &Spec, progress: &Progress) -> Result<Measurement> {
    let mut figures = Vec::new();
    for case in &CASES {
        progress.say(case.name);
        let (rate, growth) = measure(spec, case)?;
        figures.push(Figure::plain(case.name, rate, "1/s").at_least(case.limits.0, case.limits.1));
        if case.commit_rows == u64::MAX {
            let name = format!("{}, last tenth to first", case.name);
            figures.push(Figure::plain(&name, growth, "x").at_least(0.5, 0.9));
        }
    }
    Ok(Measurement {
        engine: FRONDB.name.to_owned(),
        workload: spec.workload.name().to_owned(),
        settings: (FRONDB.describe)(&spec.engine_options()),
        rows: Some(spec.rows),
        figures,
        ..Measurement::default()
    })
}

/// Returns the pops a second, and the rate of the last tenth divided by the rate of the first
/// tenth.
fn measure(spec: &Spec, case: &Case) -> Result<(f64, f64)> {
    let store = Store::create(spec, "queue")?;
    store.load_ascending(spec.rows, &VALUE)?;
    store.db.flush().map_err(Error::engine)?;
    let snapshot = case.has_snapshot.then(|| store.db.snapshot()).transpose();
    let snapshot = snapshot.map_err(Error::engine)?;
    // Half of the rows are popped, so that the pops do not come near the other end of the tree.
    let pops = (spec.rows / 2).max(10);
    let mut popper = Popper { store: &store, case, open: None, popped: 0, pushed: spec.rows };
    let start = Instant::now();
    let mut tenths = Vec::new();
    for tenth in 1..=10 {
        let begun = Instant::now();
        let upto = pops * tenth / 10;
        let count = upto - popper.popped;
        while popper.popped < upto {
            popper.pop(spec.rows)?;
        }
        tenths.push(count as f64 / begun.elapsed().as_secs_f64().max(1e-9));
    }
    popper.commit()?;
    let rate = pops as f64 / start.elapsed().as_secs_f64().max(1e-9);
    drop(snapshot);
    store.remove()?;
    Ok((rate, tenths[9] / tenths[0]))
}

struct Popper<'a> {
    store: &'a Store,
    case: &'a Case,
    /// The transaction, and how many rows it has popped.
    open: Option<(Transaction, u64)>,
    popped: u64,
    pushed: u64,
}

impl Popper<'_> {
    fn pop(&mut self, rows: u64) -> Result<()> {
        if self.open.is_none() {
            let options = TransactionOptions::new()
                .isolation(Isolation::RepeatableRead)
                .durability(Durability::NoSync);
            self.open = Some((self.store.db.begin(options).map_err(Error::engine)?, 0));
        }
        let Some((transaction, count)) = &mut self.open else { return Ok(()) };
        let tree = &self.store.tree;
        let mut cursor = transaction.cursor(tree).map_err(Error::engine)?;
        let (found, expected) = match self.case.end {
            End::First => (cursor.first(), self.popped),
            End::Last => (cursor.last(), rows - 1 - self.popped),
        };
        if !found.map_err(Error::engine)? || *cursor.key() != expected.to_be_bytes() {
            let key = cursor.key();
            return Err(Error::Wrong(format!("popped {key:02x?} in place of row {expected}")));
        }
        drop(cursor);
        transaction.delete(tree, &expected.to_be_bytes()).map_err(Error::engine)?;
        if self.case.pushes {
            let put = transaction.put(tree, &self.pushed.to_be_bytes(), &VALUE);
            put.map_err(Error::engine)?;
            self.pushed += 1;
        }
        self.popped += 1;
        *count += 1;
        if *count >= self.case.commit_rows { self.commit() } else { Ok(()) }
    }

    fn commit(&mut self) -> Result<()> {
        let commit = |(transaction, _): (Transaction, u64)| transaction.commit();
        self.open.take().map_or(Ok(()), commit).map_err(Error::engine)
    }
}
