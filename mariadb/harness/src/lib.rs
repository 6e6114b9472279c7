//! Private MariaDB servers with the plugin loaded, and clients for them, for the tests and
//! benchmarks of ENGINE=FronDB.
//!
//! ```text
//!   Server   a folder: data/ plugins/ socket pid error.log    start, kill -9, stop, restart
//!     |  socket
//!   Client   one connection: send a statement, receive its reply
//! ```
//!
//! This library reaches the plugin only over the socket and links neither the server nor the
//! engine, so its licence is the project's and not the server's. Every wait has a time limit, and
//! its error says what did not happen.
//!
//! `cargo test` ignores tests that need a server; `make test-mariadb` builds the plugin and runs
//! them.

pub mod applications;
mod client;
pub mod differential;
mod error;
mod innodb_log;
pub mod interleavings;
mod options;
mod packet;
mod place;
mod reply;
mod server;
mod variable;

pub use client::Client;
pub use error::{Error, Result};
pub use innodb_log::{StaleTail, stale_tail};
pub use options::{Engine, Options};
pub use reply::{Column, Reply, Value};
pub use server::{Server, free_port};
pub use variable::variable;
