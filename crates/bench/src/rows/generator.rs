//! Generators of rows for one tree, one for each kind of data, in the order of the keys.
//!
//! A row depends on the rows before it (a visitor's next request, the time of the next event), so a
//! generator makes rows one after the other. To go back, it starts again at the first row.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::events::Events;
use super::source::Source;
use super::weblog::WebLog;
use crate::engine::TreeSpec;

/// The tree of the rows.
pub const DATA_TREES: [TreeSpec; 1] = [TreeSpec { name: "data", unique: true }];

/// A kind of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataKind {
    /// Lines of a web server's log
    Logs,
    /// Events of an application
    Json,
}

impl DataKind {
    /// All kinds, in the order in which they are measured.
    pub const ALL: [Self; 2] = [Self::Logs, Self::Json];

    /// Returns the name of the kind on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Logs => "logs",
            Self::Json => "json",
        }
    }
}

/// Generates the rows of a kind.
pub struct Generator {
    source: Box<dyn Source>,
    value: Vec<u8>,
    /// The row that the source makes next.
    next: u64,
}

impl Generator {
    /// Creates a generator of `kind`. The same `seed` gives the same rows.
    #[must_use]
    pub fn new(kind: DataKind, seed: u64) -> Self {
        let source: Box<dyn Source> = match kind {
            DataKind::Logs => Box::new(WebLog::new(seed)),
            DataKind::Json => Box::new(Events::new(seed)),
        };
        Self { source, value: Vec::new(), next: 0 }
    }

    /// Returns the key of row `id`: the number itself, as in a table with AUTO_INCREMENT.
    #[must_use]
    pub fn key(id: u64) -> [u8; 8] {
        id.to_be_bytes()
    }

    /// Returns the value of row `id`. This is fast if `id` follows the row of the previous call.
    /// For a smaller `id` the generator makes all rows before `id` again.
    pub fn value(&mut self, id: u64) -> &[u8] {
        if id < self.next {
            self.source.restart();
            self.next = 0;
        }
        while self.next <= id {
            self.value.clear();
            self.source.next(&mut self.value);
            self.next += 1;
        }
        &self.value
    }

    /// Returns the mean number of bytes of key and value over the first 1,000 rows.
    pub fn row_bytes(&mut self) -> f64 {
        const ROWS: u64 = 1_000;
        let bytes: usize = (0..ROWS).map(|id| Self::key(id).len() + self.value(id).len()).sum();
        bytes as f64 / ROWS as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_depend_on_the_seed_and_are_the_same_in_any_order() {
        for kind in DataKind::ALL {
            let mut one = Generator::new(kind, 7);
            let values: Vec<Vec<u8>> = (0..50).map(|id| one.value(id).to_vec()).collect();
            for id in [49, 3, 20, 0, 0] {
                assert_eq!(one.value(id), values[id as usize], "{kind:?} {id}");
            }
            let mut other = Generator::new(kind, 8);
            assert_ne!(other.value(30), values[30], "{kind:?}");
        }
    }

    #[test]
    fn rows_have_the_lengths_of_real_ones() {
        let bytes = DataKind::ALL.map(|kind| Generator::new(kind, 1).row_bytes() as u64);
        for (bytes, range) in bytes.into_iter().zip([190..260, 200..300]) {
            assert!(range.contains(&bytes), "{bytes} is not in {range:?}");
        }
    }
}
