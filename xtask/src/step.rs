//! Runs commands, and passes their output through as it arrives, or keeps it.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::Result;
use crate::summary::Counts;
use crate::workspace::{root, target_folder};

/// A command with its arguments. It runs in the checkout's root unless [`Cmd::dir`] sets another
/// folder.
pub(crate) struct Cmd {
    command: Command,
    shown: String,
}

impl Cmd {
    /// Creates a command. `args` is split at spaces, so add an argument that contains a space with
    /// [`Cmd::arg`].
    pub(crate) fn new(program: &str, args: &str) -> Self {
        let mut command = Command::new(program);
        command.current_dir(root()).args(args.split_whitespace()).stdin(Stdio::null());
        Self { command, shown: format!("{program} {args}") }
    }

    /// Adds one argument that may contain spaces.
    pub(crate) fn arg(mut self, arg: &str) -> Self {
        self.command.arg(arg);
        self.shown = format!("{} {arg}", self.shown);
        self
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        // The search path is long and says nothing about the command, so it is not printed.
        if name != "PATH" {
            self.shown = format!("{name}='{value}' {}", self.shown);
        }
        self
    }

    /// Sets a separate folder below the build output, for a build with other compiler flags.
    pub(crate) fn target_folder(self, name: &str) -> Self {
        let folder = target_folder().join(name);
        self.env("CARGO_TARGET_DIR", &folder.to_string_lossy())
    }

    /// Sets the folder in which the command runs.
    pub(crate) fn dir(mut self, dir: PathBuf) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// Runs the command and passes its output through. Returns an error if the command cannot start
    /// or does not exit with zero.
    pub(crate) fn run(mut self) -> Result {
        eprintln!("$ {}", self.shown);
        let status =
            self.command.status().map_err(|e| format!("cannot start `{}`: {e}", self.shown))?;
        if status.success() { Ok(()) } else { Err(format!("`{}` failed: {status}", self.shown)) }
    }

    /// Returns whether the command runs and exits with zero. Prints nothing.
    pub(crate) fn succeeds(mut self) -> bool {
        self.command.stdout(Stdio::null()).stderr(Stdio::null());
        self.command.status().is_ok_and(|status| status.success())
    }

    /// Runs the command and returns its standard output, trimmed.
    pub(crate) fn output(mut self) -> Result<String> {
        let output = self.command.stderr(Stdio::inherit()).output();
        let output = output.map_err(|e| format!("cannot start `{}`: {e}", self.shown))?;
        if !output.status.success() {
            return Err(format!("`{}` failed: {}", self.shown, output.status));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Runs a `cargo test` command, passes its output through, and counts the tests that its
    /// harnesses report.
    pub(crate) fn run_tests(self) -> (Counts, Result) {
        let mut counts = Counts::default();
        let result = self.run_lines(|line| counts.add_line(line));
        (counts, result)
    }

    /// Runs the command, passes its output through, and gives each line to `each`.
    pub(crate) fn run_lines(mut self, mut each: impl FnMut(&str)) -> Result {
        eprintln!("$ {}", self.shown);
        let child = self.command.stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|e| format!("cannot start `{}`: {e}", self.shown))?;
        if let Some(stdout) = child.stdout.take() {
            let mut out = std::io::stdout().lock();
            for line in BufReader::new(stdout).split(b'\n').map_while(std::result::Result::ok) {
                each(&String::from_utf8_lossy(&line));
                // A write fails after the reader has closed the pipe; the exit status still counts.
                let _ = out.write_all(&line).and_then(|()| out.write_all(b"\n"));
            }
        }
        match child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("`{}` failed: {status}", self.shown)),
            Err(e) => Err(format!("cannot wait for `{}`: {e}", self.shown)),
        }
    }

    /// Runs the command. Returns its whole output, standard output and standard error together, and
    /// an error if it did not exit with zero. Passes nothing through.
    pub(crate) fn run_kept(mut self) -> (String, Result) {
        let mut output = Vec::new();
        let status = std::io::pipe().and_then(|(mut reader, writer)| {
            self.command.stdout(writer.try_clone()?).stderr(writer);
            let mut child = self.command.spawn()?;
            // The command still holds the writing end of the pipe, so without this drop the read
            // would never end.
            drop(self.command);
            let read = reader.read_to_end(&mut output);
            child.wait().and_then(|status| read.map(|_| status))
        });
        let result = match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("`{}` failed: {status}", self.shown)),
            Err(e) => Err(format!("cannot run `{}`: {e}", self.shown)),
        };
        (String::from_utf8_lossy(&output).into_owned(), result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_errors_are_kept_in_their_order() {
        let (output, result) = Cmd::new("sh", "-c").arg("echo a; echo b >&2; echo c").run_kept();
        assert_eq!((&*output, result), ("a\nb\nc\n", Ok(())));
        let (output, result) = Cmd::new("sh", "-c").arg("echo a; exit 3").run_kept();
        assert_eq!(output, "a\n");
        assert!(result.is_err_and(|message| message.contains("exit status: 3")));
        assert!(Cmd::new("no-such-program", "").run_kept().1.is_err());
    }
}
