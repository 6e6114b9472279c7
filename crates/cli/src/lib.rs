//! The command `frondb`: create, fill, read and check a database without writing a program.
//!
//! It stands on the public API of `frondb` alone, so it is also an example of it. A command parses
//! its arguments, opens the database, does one thing, and closes it; nothing is kept in between.
//!
//! | module | role |
//! |---|---|
//! | `args` | the command line as types, with every help text |
//! | `commands` | what each command does, one file a group |
//! | `run` | from arguments to exit code |
//! | `encoding` | bytes as text and back |
//! | `records` | files of entries: CSV, TSV, the checked binary form |
//! | `output`, `progress` | standard output as text or JSON; the bar on standard error |
//! | `failure` | errors as sentences, JSON and exit codes |
//! | `manual` | docs/operating/command-line.md, written from `args` and `failure` |

mod args;
mod commands;
mod encoding;
mod failure;
#[doc(hidden)]
pub mod fuzz;
#[cfg(test)]
mod manual;
mod output;
mod progress;
mod records;
mod run;

pub use run::run;
