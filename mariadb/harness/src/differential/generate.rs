//! Generates statements for the tables that the test knows. Kinds are drawn by weight.

use super::kind::Kind;
use super::source::Source;
use super::statement::Step;
use super::table::Table;
use super::{change, define, read, session};

/// Fewest tables that exist at a time.
const TABLES_MIN: usize = 2;
/// Number of tables up to which `turn_over` creates another table; from this number on, it drops
/// one.
const TABLES_IN_TURN: usize = 4;

impl Source {
    /// Draws the next statement.
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
            // Skip most definitions in a transaction, so that transactions are long enough to have
            // changes to undo.
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
            // A kind that does not fit the tables gives no statement; then draw another kind.
            if let Some(step) = step {
                return step;
            }
        }
    }

    /// When the collations of all tables have been used often enough, creates a table with the next
    /// collations, or drops a table to make room: by chance alone, some collations would never be
    /// used. Returns none otherwise, and when all collations have been used often enough.
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

    /// Picks a random table, or the table whose collations were used least so far.
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

    /// Records that a statement ran, whether it succeeded or failed.
    pub(super) fn ran(&mut self, step: &Step) {
        let mut touched = self.tables.iter().filter(|table| step.tables.contains(&table.name));
        if touched.any(|table| table.temporary) {
            self.transaction.touches_temporary(step);
        }
        self.align_counters(step);
    }

    /// Aligns the AUTO_INCREMENT counters: after a statement that may make them differ, the next
    /// step sets both to the same value. The engines lose different numbers of values when a
    /// statement fails, skips rows or gives some rows explicit values. InnoDB also loses a value
    /// when it rebuilds a table after an UPDATE of the column.
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
            // The server stores a default of bytes as escaped text. If that text is too long for a
            // TINYTEXT, the server refuses every ALTER of the table, with any engine, so the
            // counters would stay different.
            define::step(self, Kind::DropTable, &table)
        } else {
            self.counter += 1000;
            let sql = format!("ALTER TABLE {} AUTO_INCREMENT={}", table.name, self.counter);
            Some(Step::new(SetAutoIncrement, &[&table], sql))
        };
        self.pending = pending.map(|step| Step { follows: true, ..step });
    }
}
