//! A statement, and what the test's picture of the tables becomes by it.

use super::kind::Kind;
use super::table::Table;

/// What the test's picture of the tables becomes if the statement succeeds.
#[derive(Debug, Clone)]
pub(super) enum Effect {
    None,
    Add(Table),
    Remove(String),
    Replace(String, Table),
}

/// One statement.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) kind: Kind,
    pub(super) sql: String,
    /// Tables whose types and collations it uses.
    pub(super) tables: Vec<String>,
    pub(super) effect: Effect,
    /// Whether the order of its rows is given by the statement.
    pub(super) ordered: bool,
    /// Whether it brings in line what the one before it left different, and so goes where that one goes.
    pub(super) follows: bool,
    /// Whether it failed, on both sides.
    pub(super) refused: bool,
}

impl Step {
    pub(super) fn new(kind: Kind, tables: &[&Table], sql: String) -> Self {
        let tables = tables.iter().map(|table| table.name.clone()).collect();
        Self {
            kind,
            sql,
            tables,
            effect: Effect::None,
            ordered: false,
            follows: false,
            refused: false,
        }
    }

    pub(super) fn with(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    pub(super) fn ordered(mut self, ordered: bool) -> Self {
        self.ordered = ordered;
        self
    }
}
