//! Executes an application's scripts on both engines, statement by statement.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::list::App;
use super::pair::{Pair, beginning};
use super::script;
use crate::error::{Error, Result, harness};
use crate::reply::Reply;
use crate::server::Server;

/// The number of FronDB's error for a FULLTEXT index, and the advice in the error's message.
const NO_FULLTEXT: u16 = 1214;
const ADVICE: &str = "keep the text in a second table with ENGINE=InnoDB";

/// The result of executing the scripts.
#[derive(Default)]
pub(super) struct Loaded {
    pub(super) statements: u64,
    /// Tables that FronDB refused because they have a FULLTEXT index.
    pub(super) refused: Vec<String>,
    /// Statements whose outcomes differed, and statements that InnoDB refused.
    pub(super) findings: Vec<String>,
}

/// Executes all scripts of an application; `root` is the folder of the unpacked package. At the
/// end, drops the tables that FronDB refuses from both databases.
pub(super) fn load(server: &Server, app: &App, root: &Path) -> Result<Loaded> {
    let mut loaded = Loaded::default();
    for name in app.scripts {
        // Each script has its own connection, since its settings must not affect the next script.
        let mut pair = Pair::connect(server, app)?;
        for statement in script::statements(&read(&root.join(name))?) {
            loaded.execute(&mut pair, statement)?;
        }
    }
    let refused: Vec<&str> = loaded.refused.iter().map(String::as_str).collect();
    if refused != app.refused {
        let expected = app.refused;
        loaded.findings.push(format!("FronDB has refused {refused:?} and not {expected:?}"));
    }
    let mut pair = Pair::connect(server, app)?;
    for table in &loaded.refused {
        for side in [&mut pair.ours, &mut pair.theirs] {
            side.client.query(format!("DROP TABLE {table}"))?;
        }
    }
    Ok(loaded)
}

impl Loaded {
    fn execute(&mut self, pair: &mut Pair, statement: &str) -> Result {
        self.statements += 1;
        let met = pair.execute(|engine| script::sent(statement, engine));
        if let Err(error) = &met.theirs {
            self.findings.push(format!("InnoDB: {error}: {}", beginning(statement)));
        }
        if refuses_fulltext(&met.ours) && met.theirs.is_ok() {
            let ours = pair.ours.tables(None)?;
            let missing =
                pair.theirs.tables(None)?.into_iter().filter(|table| !ours.contains(table));
            self.refused.extend(missing);
            // Create the table with the engine that the script names, because later statements use
            // the table.
            pair.ours.client.query(statement)?;
            return Ok(());
        }
        self.findings.extend(met.difference(statement));
        Ok(())
    }
}

/// Whether the outcome is FronDB's error for FULLTEXT indexes, with its advice.
fn refuses_fulltext(outcome: &Result<Reply>) -> bool {
    match outcome {
        Err(Error::Server { code, message, .. }) => {
            *code == NO_FULLTEXT && message.contains(ADVICE)
        }
        _ => false,
    }
}

fn read(path: &Path) -> Result<String> {
    if path.extension().is_some_and(|extension| extension == "gz") {
        let mut gzip = Command::new("gzip");
        gzip.args(["--decompress", "--stdout"]).arg(path);
        let done = gzip.output().map_err(|error| harness("gzip", error))?;
        if !done.status.success() {
            return Err(harness(path.display(), String::from_utf8_lossy(&done.stderr)));
        }
        return String::from_utf8(done.stdout).map_err(|error| harness(path.display(), error));
    }
    fs::read_to_string(path).map_err(|error| harness(path.display(), error))
}
