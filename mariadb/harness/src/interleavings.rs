//! Runs two transactions step by step on FronDB and on InnoDB, and compares the outcome of each
//! step: rows, an error or a wait.
//!
//! ```text
//!   scripts.txt ---> Script, at four levels ---> Stage of FronDB, of InnoDB ---> outcomes
//!                                                                                   |  compared
//!   differences.md: intended differences, explained in mariadb/docs/interleavings.md <'
//! ```
//!
//! | module | |
//! |---|---|
//! | [`script`] | the scripts, read from their text |
//! | [`stage`] | a script on one engine: two connections, and one that watches for waits |
//! | [`differences`] | the table of intended differences |

mod differences;
mod script;
mod stage;

use std::path::Path;

use crate::error::{Error, Result, harness};
use crate::server::Server;
use differences::{Difference, Table};
use script::Level;
use stage::Stage;

const LEVELS: [Level; 5] = [
    Level { short: "RU", name: "READ UNCOMMITTED", snapshot_isolation: false },
    Level { short: "RC", name: "READ COMMITTED", snapshot_isolation: false },
    Level { short: "RR", name: "REPEATABLE READ", snapshot_isolation: false },
    Level { short: "SI", name: "REPEATABLE READ", snapshot_isolation: true },
    Level { short: "SER", name: "SERIALIZABLE", snapshot_isolation: false },
];

/// The reason of differences that only MariaDB 10.11 has: InnoDB of 11.8 grants upgrades of locks
/// before waiting requests, too.
const OF_OLD_SERVERS: &str = "upgrades";

/// Runs all scripts at all levels on both engines, and compares the differences with the table in
/// the file `known`; the file `page` explains the reasons. With `rewrite`, also replaces the rows
/// of the table. Returns the number of interleavings.
///
/// # Errors
/// A difference that is not in the table or not explained, a row of the table whose difference did
/// not occur, or a failure of the server.
pub fn run(server: &Server, known: &Path, page: &Path, rewrite: bool) -> Result<usize> {
    let scripts = script::all()?;
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|e| harness(path.display(), e));
    let text = read(known)?;
    let mut table = Table::parse(&text, &read(page)?)?;
    let version = server.connect()?.value("SELECT version()")?;
    // The differences of both servers are in one table; they are written with MariaDB 10.11.
    if !version.starts_with("10.") {
        table.remove(OF_OLD_SERVERS);
    }
    let mut found = Vec::new();
    for script in &scripts {
        for level in LEVELS {
            let play = |engine| Stage::new(server, engine, level)?.play(script);
            let (ours, theirs) = std::thread::scope(|threads| {
                let ours = threads.spawn(|| play("FronDB"));
                let theirs = play("InnoDB");
                let broken =
                    |_| Err(Error::Harness("the thread of FronDB's stage panicked".into()));
                (ours.join().unwrap_or_else(broken), theirs)
            });
            for (i, (ours, theirs)) in ours?.into_iter().zip(theirs?).enumerate() {
                if ours != theirs {
                    found.push(Difference::new(script, level.short, i, ours, theirs));
                }
            }
        }
    }
    if rewrite {
        let text = table.rewritten(&text, &found);
        std::fs::write(known, text).map_err(|e| harness(known.display(), e))?;
    }
    let complaints = table.complaints(&found);
    if complaints.is_empty() {
        return Ok(scripts.len() * LEVELS.len());
    }
    let file = known.display();
    Err(Error::Harness(format!("{file} and the engines disagree:\n{}", complaints.join("\n"))))
}
