//! The command `frondb`: creates, fills, reads and checks databases without writing a program.
//!
//! The command uses only the public API of `frondb`, so it is also an example of that API. It
//! parses its arguments, opens the database, does one thing, and closes the database; it keeps no
//! state for the next command.
//!
//! | module | role |
//! |---|---|
//! | `args` | the command line as types, with all help texts |
//! | `commands` | the commands, one file for each group |
//! | `run` | from arguments to exit code |
//! | `encoding` | keys and values as text and back |
//! | `records` | files of entries: CSV, TSV, JSON lines, the checked binary form |
//! | `output`, `progress` | standard output as text or JSON; the bar on standard error |
//! | `fields` | the JSON fields of each command, for its help and the manual |
//! | `failure` | errors: message, hint and exit code |
//! | `permission` | the hint for a denied permission |
//! | `manual` | docs/operating/command-line.md, from `args`, `fields` and `failure` |

mod args;
mod commands;
mod encoding;
mod failure;
mod fields;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod fuzz;
#[cfg(test)]
mod manual;
mod output;
mod permission;
mod progress;
mod records;
mod run;

pub use run::{command, run};
