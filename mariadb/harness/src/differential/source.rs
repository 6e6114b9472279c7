//! Where statements come from: kinds drawn by their weights, for tables as the test knows them.

use frondb_core::prng::Prng;

use super::catalog::{Catalog, LEAST};
use super::kind::Kind;
use super::session::{self, Transaction};
use super::statement::{Effect, Step};
use super::table::Table;
use super::{change, define, read};

/// Tables that there are at a time.
const TABLES_MIN: usize = 2;
const TABLES_MAX: usize = 6;
/// As many are there for their collations; the others are left to chance.
const TABLES_IN_TURN: usize = 4;

/// Where statements come from.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) random: Prng,
    pub(super) catalog: Catalog,
    pub(super) tables: Vec<Table>,
    names: u32,
    /// Comes before the next drawn one.
    pending: Option<Step>,
    /// What AUTO_INCREMENT was set to last.
    counter: u64,
    transaction: Transaction,
}

impl Source {
    pub(super) fn new(seed: u64, catalog: Catalog) -> Self {
        let random = Prng::new(seed);
        Self {
            random,
            catalog,
            tables: Vec::new(),
            names: 0,
            pending: None,
            counter: 0,
            transaction: Transaction::default(),
        }
    }

    pub(super) fn next_table(&mut self) -> String {
        self.names += 1;
        format!("t{}", self.names)
    }

    /// The next statement.
    pub(super) fn next(&mut self) -> Step {
        if let Some(step) = self.pending.take() {
            return step;
        }
        if self.tables.len() < TABLES_MIN {
            return define::create(self);
        }
        if let Some(step) = self.turn_over() {
            return step;
        }
        loop {
            let kind = Kind::draw(&mut self.random);
            // So that transactions are long enough to have something to undo.
            if self.transaction.is_open() && kind.defines() && self.random.chance(2, 3) {
                continue;
            }
            let table = self.pick_table();
            if kind == Kind::DropTable && self.is_wanted(&table) && self.random.chance(9, 10) {
                continue;
            }
            let other = self.tables[self.random.index(self.tables.len())].clone();
            let step = define::step(self, kind, &table)
                .or_else(|| change::step(&mut self.random, kind, &table, &other))
                .or_else(|| read::step(&mut self.random, kind, &table, &other))
                .or_else(|| session::step(&mut self.random, kind, &self.transaction));
            // A kind that does not fit the tables that there are is drawn again.
            if let Some(step) = step {
                return step;
            }
        }
    }

    /// Makes room for, or makes, a table with the next collations, once those of the tables that there are came often
    /// enough: left to chance, some collations never get their turn. None when all came often enough.
    fn turn_over(&mut self) -> Option<Step> {
        if !self.catalog.wants_more() || self.tables.iter().any(|table| self.is_wanted(table)) {
            return None;
        }
        if self.tables.len() < TABLES_IN_TURN {
            return Some(define::create(self));
        }
        let old = self.random.index(self.tables.len());
        let old = self.tables[old].clone();
        define::step(self, Kind::DropTable, &old)
    }

    /// Any table, or the one whose collations were met least so far.
    fn pick_table(&mut self) -> Table {
        let any = self.random.index(self.tables.len());
        let uses = |table: &Table| self.catalog.least_met(table.collations());
        let table = if self.random.chance(3, 4) {
            self.tables.iter().min_by_key(|table| uses(table)).unwrap_or(&self.tables[any])
        } else {
            &self.tables[any]
        };
        table.clone()
    }

    /// Whether it has a collation that was not met often enough.
    fn is_wanted(&self, table: &Table) -> bool {
        self.catalog.least_met(table.collations()) < LEAST
    }

    pub(super) fn is_full(&self) -> bool {
        self.tables.len() >= TABLES_MAX
    }

    /// Takes in that a statement was run, whether it succeeded or not.
    pub(super) fn ran(&mut self, step: &Step) {
        let mut touched = self.tables.iter().filter(|table| step.tables.contains(&table.name));
        if touched.any(|table| table.temporary) {
            self.transaction.touches_temporary(step);
        }
        self.align_counters(step);
    }

    /// How many values of AUTO_INCREMENT are lost when a statement fails, passes over rows or brings some of
    /// them along is each engine's business: after such a statement both counters are set to the same value.
    fn align_counters(&mut self, step: &Step) {
        use Kind::{
            Insert, InsertIgnore, InsertReturning, InsertUpdate, Replace, SetAutoIncrement,
        };
        let loses = match step.kind {
            Insert | InsertReturning => step.refused || step.sql.contains("(c0,"),
            InsertIgnore | InsertUpdate | Replace => true,
            SetAutoIncrement => step.refused,
            _ => false,
        };
        let auto =
            self.tables.iter().find(|table| table.is_auto() && step.tables.contains(&table.name));
        let (true, Some(table)) = (loses, auto) else { return };
        let table = table.clone();
        let pending = if step.kind == SetAutoIncrement {
            // The server keeps a default of bytes as a text that shows them. That may be too long for a TINYTEXT, and
            // then it takes no ALTER of the table, of any engine: the counters would stay apart.
            define::step(self, Kind::DropTable, &table)
        } else {
            self.counter += 1000;
            let sql = format!("ALTER TABLE {} AUTO_INCREMENT={}", table.name, self.counter);
            Some(Step::new(SetAutoIncrement, &[&table], sql))
        };
        self.pending = pending.map(|step| Step { follows: true, ..step });
    }

    /// A new round: no table is left.
    pub(super) fn forget(&mut self) {
        self.tables.clear();
        self.pending = None;
        self.transaction = Transaction::default();
    }

    /// Takes in what a statement that succeeded has done.
    pub(super) fn apply(&mut self, step: &Step) {
        self.transaction.apply(step);
        match step.effect.clone() {
            Effect::None => {}
            Effect::Add(table) => self.tables.push(table),
            Effect::Remove(name) => self.tables.retain(|table| table.name != name),
            Effect::Replace(name, new) => {
                if let Some(table) = self.tables.iter_mut().find(|table| table.name == name) {
                    *table = new;
                }
            }
        }
    }
}
