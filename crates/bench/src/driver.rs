//! The command line, and the parent process that runs a child for each engine and round.

mod args;
mod bench;
mod child;
mod cli;
mod compression;
mod order;
mod plan;
mod progress;
mod rounds;
mod run;
pub mod size;
mod variant;

pub use args::CommonArgs;
pub use child::remove;
pub use cli::main;
pub(crate) use order::run_child;
pub use progress::{Progress, note, print};
pub use rounds::{Rounds, check_answers, first_error, write_json};

use crate::engine::EngineKind;
use crate::error::{Error, Result};

/// What a binary of the benchmark can measure.
#[derive(Clone, Copy)]
pub struct Registry {
    /// The engines, in the order in which `all` names them.
    pub engines: &'static [EngineKind],
    /// The engines to measure if none is named.
    pub default_engines: &'static str,
    /// The engine that the others are compared with. If it does not take part, the last named
    /// engine is the baseline.
    pub baseline: &'static str,
}

impl Registry {
    /// Returns the engine of this name.
    pub fn find(&self, name: &str) -> Result<&'static EngineKind> {
        self.engines.iter().find(|kind| kind.name == name).ok_or_else(|| {
            let names: Vec<_> = self.engines.iter().map(|kind| kind.name).collect();
            Error::Usage(format!(
                "there is no engine {name} in this binary; it has {}",
                names.join(", ")
            ))
        })
    }

    /// Returns the engines of a comma-separated list, each once. `all` means all but the model.
    pub fn select(&self, list: &str) -> Result<Vec<&'static EngineKind>> {
        if list == "all" {
            return Ok(self.engines.iter().filter(|kind| kind.name != "model").collect());
        }
        let mut kinds: Vec<&'static EngineKind> = Vec::new();
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let kind = self.find(name)?;
            if kinds.iter().all(|known| known.name != kind.name) {
                kinds.push(kind);
            }
        }
        if kinds.is_empty() {
            return Err(Error::Usage("no engine is named".to_owned()));
        }
        Ok(kinds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::model::MODEL;

    const REGISTRY: Registry = Registry {
        engines: &[EngineKind { name: "real", ..MODEL }, MODEL],
        default_engines: "model",
        baseline: "model",
    };

    #[test]
    fn engines_are_selected_by_name_once_each() {
        let names = |list: &str| {
            let kinds = REGISTRY.select(list)?;
            Ok::<Vec<_>, Error>(kinds.iter().map(|kind| kind.name).collect())
        };
        assert_eq!(names("model, real,model").unwrap(), ["model", "real"]);
        assert_eq!(names("all").unwrap(), ["real"]);
        let error = names("nosuch").unwrap_err().to_string();
        assert!(error.contains("nosuch") && error.contains("real, model"), "{error}");
        assert!(names(",").is_err());
    }
}
