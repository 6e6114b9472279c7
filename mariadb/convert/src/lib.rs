//! The command `frondb-convert`: converts the tables of databases to another engine, InnoDB or
//! FronDB, including tables with foreign keys and with system versioning, for which ALTER TABLE
//! alone fails.
//!
//! | module | role |
//! |---|---|
//! | `run` | a run of the command, from its arguments (`args`) to its exit code |
//! | `client`, `session` | a session through `mariadb`; with `--dry-run` it only shows changes |
//! | `catalog` | tables and foreign keys, from the information schema |
//! | `plan` | families of tables that foreign keys connect (pure) |
//! | `family`, `copy` | converts a family; its system-versioned tables are copied |
//! | `journal` | the work that is left if the program stops |
//!
//! The command connects to the server like any client. It knows nothing of the engine.

mod args;
mod catalog;
mod client;
mod copy;
mod error;
mod family;
mod journal;
mod plan;
mod progress;
mod run;
mod session;

pub use run::{command, run};
