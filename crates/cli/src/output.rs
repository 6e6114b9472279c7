//! Standard output, as text for people or as JSON for programs.

use std::io::{self, BufWriter, Stdout, Write};

use serde::Serialize;

use crate::args::Common;
use crate::failure::Failure;

/// Standard output; the messages of its errors begin with `standard output`.
pub(crate) struct StandardOutput(Stdout);

impl StandardOutput {
    pub(crate) fn new() -> Self {
        Self(io::stdout())
    }
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(named)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(named)
    }
}

/// Puts `standard output` before the message. Keeps the kind, because `write_all` repeats a write
/// that fails with `Interrupted`.
fn named(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("standard output: {error}"))
}

/// Standard output of a command.
pub(crate) struct Output {
    out: BufWriter<StandardOutput>,
    json: bool,
    quiet: bool,
}

impl Output {
    /// Makes the output for these options.
    pub(crate) fn new(common: &Common) -> Self {
        let out = BufWriter::with_capacity(1 << 16, StandardOutput::new());
        Self { out, json: common.json, quiet: common.quiet }
    }

    /// Prints one line: `text`, or `value` as JSON.
    pub(crate) fn line<V: Serialize>(
        &mut self,
        value: &V,
        text: impl FnOnce(&V) -> String,
    ) -> Result<(), Failure> {
        if self.json {
            serde_json::to_writer(&mut self.out, value)?;
        } else {
            self.out.write_all(text(value).as_bytes())?;
        }
        Ok(self.out.write_all(b"\n")?)
    }

    /// Prints a confirmation as [`line`](Self::line), but no text with `--quiet`.
    pub(crate) fn done<V: Serialize>(
        &mut self,
        value: &V,
        text: impl FnOnce(&V) -> String,
    ) -> Result<(), Failure> {
        if self.quiet { self.result(value) } else { self.line(value, text) }
    }

    /// Prints a result as JSON with `--json`, and nothing otherwise: for a success that needs no
    /// message to people.
    pub(crate) fn result<V: Serialize>(&mut self, value: &V) -> Result<(), Failure> {
        if self.json { self.line(value, |_| String::new()) } else { Ok(()) }
    }

    /// Writes bytes unchanged.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.out.write_all(bytes)?)
    }

    /// Flushes the output. Every command that prints ends with this call, so that a write error is
    /// reported, such as a full disk under a redirected standard output.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }
}
