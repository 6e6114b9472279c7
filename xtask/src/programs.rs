//! The test programs that cargo has built, to run them in our own order: `cargo test` runs one
//! program after the other, and at the end of each the processors idle.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Result;
use crate::step::Cmd;
use crate::workspace::{read, root, target_folder};

/// The variable that is set where there is no cargo, because everything was built before: in a root
/// with another release of Debian.
pub(crate) const BUILT: &str = "FRONDB_BUILT";

/// Returns whether everything was built before.
pub(crate) fn are_built() -> bool {
    std::env::var_os(BUILT).is_some()
}

#[derive(Debug, PartialEq)]
pub(crate) struct Program {
    /// The source file of the program's root module, relative to the checkout.
    pub(crate) source: String,
    pub(crate) folder: PathBuf,
    file: PathBuf,
}

impl Program {
    /// Returns the command that runs the program as cargo does, in the folder of its crate.
    pub(crate) fn command(&self, args: &str) -> Cmd {
        Cmd::new(&self.file.display().to_string(), args)
            .dir(self.folder.clone())
            .env("CARGO_MANIFEST_DIR", &self.folder.display().to_string())
    }
}

/// Builds the test programs that a `cargo test` command would run. `name` is the name under which
/// the list is kept for a call where everything was built before.
pub(crate) fn build(name: &str, command: Cmd) -> Result<Vec<Program>> {
    let kept = target_folder().join("programs").join(name);
    let messages = if are_built() {
        read(&kept)?
    } else {
        let command = command.arg("--no-run").arg("--message-format=json-render-diagnostics");
        let messages = command.output()?;
        let at = |e| format!("{}: {e}", kept.display());
        fs::create_dir_all(kept.parent().unwrap_or(&kept)).map_err(at)?;
        fs::write(&kept, &messages).map_err(at)?;
        messages
    };
    let programs: Vec<Program> =
        messages.lines().filter_map(|line| program(line, root())).collect();
    if programs.is_empty() {
        Err("cargo has built no test program".to_owned())
    } else {
        Ok(programs)
    }
}

/// Parses a message of cargo; `None` if it announces no test program.
fn program(message: &str, root: &Path) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    // Cargo also builds the libraries and programs that the tests use.
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let file = PathBuf::from(message["executable"].as_str()?);
    let source = Path::new(message["target"]["src_path"].as_str()?);
    let source = source.strip_prefix(root).unwrap_or(source).display().to_string();
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    Some(Program { source, folder, file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_found_among_what_cargo_built() {
        let message = |reason: &str, test: bool, executable: &str| {
            format!(
                r#"{{"reason":"{reason}","manifest_path":"/project/crates/wal/Cargo.toml",
                "target":{{"kind":["test"],"name":"races","src_path":"/project/crates/wal/tests/races.rs"}},
                "profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let at = |message: String| program(&message, Path::new("/project"));
        let found = Program {
            source: "crates/wal/tests/races.rs".to_owned(),
            folder: PathBuf::from("/project/crates/wal"),
            file: PathBuf::from("/built/races-1"),
        };
        assert_eq!(at(message("compiler-artifact", true, "\"/built/races-1\"")), Some(found));
        assert_eq!(at(message("compiler-artifact", false, "\"/built/wal\"")), None);
        assert_eq!(at(message("compiler-artifact", true, "null")), None);
        assert_eq!(at(message("build-finished", true, "\"/built/races-1\"")), None);
        assert_eq!(at("no JSON".to_owned()), None);
    }
}
