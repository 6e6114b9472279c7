//! The command line.

use clap::{ArgGroup, Parser, ValueEnum};

use crate::plan::Engine;

/// The engine to which tables are converted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum To {
    #[value(name = "FronDB", alias = "frondb")]
    FronDb,
    #[value(name = "InnoDB", alias = "innodb")]
    InnoDb,
}

impl To {
    pub(crate) fn engine(self) -> Engine {
        match self {
            Self::FronDb => Engine::FronDb,
            Self::InnoDb => Engine::InnoDb,
        }
    }
}

#[derive(Parser, Debug)]
#[command(
    name = "frondb-convert",
    version,
    about = "Give all tables of databases the engine FronDB, or InnoDB again",
    after_help = "Tables that foreign keys connect are locked while they are converted, and get their foreign keys back. \
                  If the command is stopped, run it again: it goes on. What cannot be converted is listed.\n\n\
                  The server is reached by the program mariadb, with its option files; give it other options behind --:\n  \
                  frondb-convert shop -- --host=db1 --user=admin --password\n\n\
                  Exit codes: 0 everything is converted, 1 something is left, 2 the command has stopped early.",
    group = ArgGroup::new("what").required(true).multiple(false)
)]
pub(crate) struct Args {
    /// Databases to convert; name all databases that foreign keys connect
    #[arg(group = "what", value_name = "DATABASE")]
    pub(crate) databases: Vec<String>,
    /// All databases except the server's own
    #[arg(long, group = "what")]
    pub(crate) all_databases: bool,
    /// Engine to which the tables of the other engine, InnoDB or FronDB, are converted
    #[arg(long, value_name = "ENGINE", default_value = "FronDB")]
    pub(crate) to: To,
    /// Show the statements, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Seconds to wait for other statements and transactions that use a table
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) lock_wait_timeout: u32,
    /// Options for the program mariadb
    #[arg(last = true, value_name = "OPTIONS")]
    pub(crate) client: Vec<String>,
}
