//! The command `frondb-convert`: converts the tables of databases to another engine, InnoDB or
//! FronDB, including tables with foreign keys and with system versioning, for which ALTER TABLE
//! alone fails.
//!
//! ```text
//!   client   one session, through the server's program mariadb      session   and what --dry-run shows
//!   catalog  tables and foreign keys, of the information schema
//!   plan     families of tables that foreign keys connect (pure)
//!   family   converts one     copy  system-versioned tables     journal  what is left to do after a stop
//! ```
//! It connects to the server like any client, and knows nothing of the engine.

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

pub use run::run;
