//! Progress messages while tables are converted.

use crate::catalog::Table;
use crate::plan::Engine;
use crate::session::say;

/// Numbers of tables begun and of all tables to convert, for the messages.
#[derive(Debug)]
pub(crate) struct Progress {
    done: usize,
    all: usize,
}

impl Progress {
    pub(crate) fn new(all: usize) -> Self {
        Self { done: 0, all }
    }

    /// Announces that the conversion of a table begins.
    pub(crate) fn begin(&mut self, table: &Table, goal: Engine) {
        self.done += 1;
        let Table { name, rows, bytes, .. } = table;
        let megabytes = *bytes as f64 / 1e6;
        let (done, all, goal) = (self.done, self.all, goal.name());
        say(&format!("-- {done} of {all}: {name} to {goal}, about {rows} rows, {megabytes:.1} MB"));
    }
}
