//! The state from which statements are generated: the existing tables, and the transaction.

use frondb_core::prng::Prng;

use super::catalog::{Catalog, LEAST};
use super::session::Transaction;
use super::statement::{Effect, Step};
use super::table::Table;

/// Most tables that exist at a time.
const TABLES_MAX: usize = 6;

/// The state of the generator. `generate.rs` draws its statements.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) random: Prng,
    pub(super) catalog: Catalog,
    pub(super) tables: Vec<Table>,
    names: u32,
    /// A statement that must run before the next random one.
    pub(super) pending: Option<Step>,
    /// The last value to which AUTO_INCREMENT was set.
    pub(super) counter: u64,
    pub(super) transaction: Transaction,
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

    /// Whether the table has a collation that has not yet been used often enough.
    pub(super) fn is_wanted(&self, table: &Table) -> bool {
        self.catalog.least_met(table.collations()) < LEAST
    }

    pub(super) fn is_full(&self) -> bool {
        self.tables.len() >= TABLES_MAX
    }

    /// Begins a new round, in an empty database.
    pub(super) fn forget(&mut self) {
        self.tables.clear();
        self.pending = None;
        self.transaction = Transaction::default();
    }

    /// Records the effect of a statement that succeeded.
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
