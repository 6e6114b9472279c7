//! Running the program.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The result of a run.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl Ran {
    /// Returns standard output as text.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.out).unwrap()
    }

    /// Returns standard output as JSON, one value for each line.
    pub(crate) fn json(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the error of a run with `--json`.
    pub(crate) fn error(&self) -> Value {
        let line = self.err.lines().last().unwrap_or_default();
        let mut object: Value = serde_json::from_str(line).unwrap();
        object["error"].take()
    }

    /// Panics unless the run succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{}", self.err);
        self
    }

    /// Panics unless the run failed with this exit code and this part of a message.
    #[track_caller]
    pub(crate) fn fails(self, code: i32, part: &str) -> Self {
        assert_eq!(self.code, code, "{}", self.err);
        assert!(self.err.contains(part), "`{part}` is not in: {}", self.err);
        self
    }
}

/// Runs `frondb COMMAND DIR ARGUMENTS...`.
pub(crate) fn frondb(command: &str, dir: &Path, args: &[&str]) -> Ran {
    frondb_with(command, dir, args, b"")
}

/// Like [`frondb`], with the given standard input.
pub(crate) fn frondb_with(command: &str, dir: &Path, args: &[&str], input: &[u8]) -> Ran {
    // Little memory, so that little data is enough to reach the disk.
    let head = ["--memory", "16MiB", command].map(OsStr::new);
    let args = args.iter().map(OsStr::new);
    run(head.into_iter().chain([dir.as_os_str()]).chain(args), input)
}

/// Runs the program with any arguments.
pub(crate) fn run<'a>(args: impl IntoIterator<Item = &'a OsStr>, input: &[u8]) -> Ran {
    finished(Command::new(env!("CARGO_BIN_EXE_frondb")).args(args), input)
}

/// Returns whether the tests run as root, who may do everything.
pub(crate) fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}

/// Runs a copy of the program in `dir` as a user without permissions. Lets all users enter `dir`
/// for that. Only root can do this.
pub(crate) fn run_as_nobody(dir: &Path, args: &[&OsStr]) -> Ran {
    std::fs::set_permissions(dir, Permissions::from_mode(0o755)).unwrap();
    let program = dir.join("frondb-of-all");
    if !program.exists() {
        std::fs::copy(env!("CARGO_BIN_EXE_frondb"), &program).unwrap();
    }
    finished(Command::new(&program).args(args).uid(65534).gid(65534), b"")
}

fn finished(command: &mut Command, input: &[u8]) -> Ran {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = loop {
        match command.spawn() {
            // The copy that `run_as_nobody` makes cannot run while a process has it open for
            // writing, as a child that another thread has just forked does until its exec.
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {}
            other => break other.unwrap(),
        }
    };
    // Ignored: a program that rejects its arguments does not read its input.
    let _ = child.stdin.take().unwrap().write_all(input);
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    Ran { code: status.code().unwrap(), out: stdout, err: String::from_utf8(stderr).unwrap() }
}
