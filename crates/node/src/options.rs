//! Options of databases and trees, which `lib/options.js` passes as names and texts.
//!
//! The engine sets every option by its name and a text, so an option that is new in the engine
//! needs no code here.

use frondb::{Error, Options, Result, TreeOptions};

use crate::counter::Counter;

/// Names and values, alternating.
pub(crate) type Settings = Vec<String>;

/// Returns the options for opening a database.
pub(crate) fn of_database(settings: &Settings) -> Result<Options> {
    each(Options::new().update_fn(Counter), settings, Options::set)
}

/// Returns the options of a new tree.
pub(crate) fn of_new_tree(
    preset: Option<&str>,
    counters: bool,
    settings: &Settings,
) -> Result<TreeOptions> {
    let mut options = match preset {
        None => TreeOptions::new(),
        Some("secondary") => TreeOptions::secondary(),
        Some("aggressive") => TreeOptions::aggressive(),
        Some(other) => {
            return Err(Error::invalid(format!(
                "preset is {other:?}; it must be secondary or aggressive"
            )));
        }
    };
    if counters {
        options = options.update_fn(Counter::NAME, 1);
    }
    of_tree(options, settings)
}

/// Returns the options of a tree with some of them changed.
pub(crate) fn of_tree(options: TreeOptions, settings: &Settings) -> Result<TreeOptions> {
    each(options, settings, TreeOptions::set)
}

fn each<T>(options: T, settings: &Settings, set: impl Fn(T, &str, &str) -> Result<T>) -> Result<T> {
    settings.chunks_exact(2).try_fold(options, |options, pair| set(options, &pair[0], &pair[1]))
}
