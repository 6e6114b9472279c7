//! What the generator of statements knows: the tables that exist, and the transaction.

use frondb_core::prng::Prng;

use super::catalog::{Catalog, LEAST};
use super::session::Transaction;
use super::statement::{Effect, Step};
use super::table::Table;

/// Most tables that exist at a time.
const TABLES_MAX: usize = 6;

/// The state of the generator, whose statements `generate.rs` draws.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) random: Prng,
    pub(super) catalog: Catalog,
    pub(super) tables: Vec<Table>,
    names: u32,
    /// A statement to run before the next random one.
    pub(super) pending: Option<Step>,
    /// The last value that AUTO_INCREMENT was set to.
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

    /// Whether a collation of the table was not used often enough yet.
    pub(super) fn is_wanted(&self, table: &Table) -> bool {
        self.catalog.least_met(table.collations()) < LEAST
    }

    pub(super) fn is_full(&self) -> bool {
        self.tables.len() >= TABLES_MAX
    }

    /// Begins a new round without tables.
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
