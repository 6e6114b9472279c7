//! Dumps both databases with mariadb-dump. The dumps must be equal apart from the engine's name,
//! and FronDB's dump is loaded into a third database.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use crate::error::{Result, harness};
use crate::options::Engine;
use crate::server::Server;

/// Bytes that a message shows, from the first difference on.
const SHOWN: usize = 200;

/// Dumps a database into a file.
pub(super) fn write(server: &Server, database: &str, file: &Path) -> Result {
    let mut dump = client(server, "mariadb-dump");
    dump.args(["--routines", "--hex-blob", "--default-character-set=utf8mb4"]);
    // Comments name the database, and the order of rows is undefined without the second option.
    dump.args(["--skip-comments", "--order-by-primary"]);
    run(dump.arg(format!("--result-file={}", file.display())).arg(database))
}

/// Loads a dump into a database.
pub(super) fn load(server: &Server, file: &Path, database: &str) -> Result {
    let script = File::open(file).map_err(|error| harness(file.display(), error))?;
    // Without --comments the client removes comments, also those in the bodies of routines.
    run(client(server, "mariadb").args(["--comments", database]).stdin(script))
}

/// Returns the first difference between a dump of FronDB and one of InnoDB, with its line number.
pub(super) fn difference(ours: &Path, theirs: &Path) -> Result<Option<String>> {
    let [ours, theirs] = [ours, theirs].map(fs::read);
    let (ours, theirs) =
        (ours.map_err(|e| harness("dump", e))?, theirs.map_err(|e| harness("dump", e))?);
    Ok(first_difference(&ours, &theirs))
}

fn first_difference(ours: &[u8], theirs: &[u8]) -> Option<String> {
    let [frondb, innodb] =
        [Engine::FronDb, Engine::InnoDb].map(|engine| format!(") ENGINE={}", engine.name()));
    let mut their_lines = theirs.split(|&byte| byte == b'\n');
    let mut our_lines = ours.split(|&byte| byte == b'\n');
    for number in 1.. {
        let (our, their) = match (our_lines.next(), their_lines.next()) {
            (None, None) => break,
            (our, their) => (our.unwrap_or_default(), their.unwrap_or_default()),
        };
        let renamed = their.strip_prefix(innodb.as_bytes());
        let renamed = renamed.map(|rest| [frondb.as_bytes(), rest].concat());
        let their = renamed.as_deref().unwrap_or(their);
        if our != their {
            let at = our.iter().zip(their).take_while(|(one, other)| one == other).count();
            let shown = |line: &[u8]| {
                let end = line.len().min(at + SHOWN);
                String::from_utf8_lossy(&line[at.min(end)..end]).into_owned()
            };
            return Some(format!(
                "line {number}, byte {at}\n  FronDB: {}\n  InnoDB: {}",
                shown(our),
                shown(their)
            ));
        }
    }
    None
}

fn client(server: &Server, program: &str) -> Command {
    let mut command = Command::new(program);
    command.args(["--no-defaults", "--user=root"]);
    command.arg(format!("--socket={}", server.socket().display()));
    command
}

fn run(command: &mut Command) -> Result {
    let program = command.get_program().display().to_string();
    let done = command.output().map_err(|error| harness(&program, error))?;
    if done.status.success() {
        return Ok(());
    }
    Err(harness(program, String::from_utf8_lossy(&done.stderr)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumps_differ_only_beyond_the_name_of_the_engine() {
        let of = |ours: &str, theirs: &str| first_difference(ours.as_bytes(), theirs.as_bytes());
        assert_eq!(of("a\n) ENGINE=FronDB;\n", "a\n) ENGINE=InnoDB;\n"), None);
        let difference = of("(1),(2)\n", "(1),(3)\n").unwrap();
        assert_eq!(difference, "line 1, byte 5\n  FronDB: 2)\n  InnoDB: 3)");
        let difference = of("a", "a\nb").unwrap();
        assert_eq!(difference, "line 2, byte 0\n  FronDB: \n  InnoDB: b");
    }
}
