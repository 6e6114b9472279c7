//! A statement, and its effect on the test's model of the tables.

use super::kind::Kind;
use super::table::Table;

/// The effect on the test's model if the statement succeeds.
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
    /// Tables that the statement uses; their types and collations are counted.
    pub(super) tables: Vec<String>,
    pub(super) effect: Effect,
    /// Whether the statement determines the order of its rows.
    pub(super) ordered: bool,
    /// Whether the statement removes a difference that the previous statement left. Shrinking keeps
    /// both statements or removes both.
    pub(super) follows: bool,
    /// Whether the statement failed on both sides.
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
