//! Generates statements: kinds drawn by their weights, for the tables that the test knows.

use super::kind::Kind;
use super::source::Source;
use super::statement::Step;
use super::table::Table;
use super::{change, define, read, session};

/// Fewest tables that exist at a time.
const TABLES_MIN: usize = 2;
/// Tables up to which `turn_over` creates another one; if there are as many, it drops one instead.
const TABLES_IN_TURN: usize = 4;

impl Source {
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
            // Transactions should be long enough to have something to undo.
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
            // If a kind does not fit the tables, another one is drawn.
            if let Some(step) = step {
                return step;
            }
        }
    }

    /// Creates a table with the next collations, or drops one to make room, once the collations of
    /// all tables have been used often enough: by chance alone, some collations would never be
    /// used. None when all have been used often enough.
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

    /// A random table, or the one whose collations were used least so far.
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

    /// Records that a statement was run, whether it succeeded or not.
    pub(super) fn ran(&mut self, step: &Step) {
        let mut touched = self.tables.iter().filter(|table| step.tables.contains(&table.name));
        if touched.any(|table| table.temporary) {
            self.transaction.touches_temporary(step);
        }
        self.align_counters(step);
    }

    /// The engines differ in how many values of AUTO_INCREMENT are lost when a statement fails,
    /// skips rows or gives some rows values itself; and InnoDB loses one when it rebuilds a table
    /// after an UPDATE of the column. After such a statement both counters are set to the same
    /// value.
    fn align_counters(&mut self, step: &Step) {
        use Kind::{
            Insert, InsertIgnore, InsertReturning, InsertUpdate, Replace, SetAutoIncrement,
            UpdateIgnore, UpdateOrdered,
        };
        let loses = match step.kind {
            Insert | InsertReturning => step.refused || step.sql.contains("(c0,"),
            InsertIgnore | InsertUpdate | Replace => true,
            UpdateIgnore | UpdateOrdered => step.sql.contains("c0 = "),
            SetAutoIncrement => step.refused,
            _ => false,
        };
        let auto =
            self.tables.iter().find(|table| table.is_auto() && step.tables.contains(&table.name));
        let (true, Some(table)) = (loses, auto) else { return };
        let table = table.clone();
        let pending = if step.kind == SetAutoIncrement {
            // The server stores a default of bytes as a text that shows them. That text may be too
            // long for a TINYTEXT, and then the server accepts no ALTER of the table, for any
            // engine: the counters would stay different.
            define::step(self, Kind::DropTable, &table)
        } else {
            self.counter += 1000;
            let sql = format!("ALTER TABLE {} AUTO_INCREMENT={}", table.name, self.counter);
            Some(Step::new(SetAutoIncrement, &[&table], sql))
        };
        self.pending = pending.map(|step| Step { follows: true, ..step });
    }
}
