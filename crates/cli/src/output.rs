//! Standard output, as text for people or as JSON for programs.

use std::io::{BufWriter, Stdout, Write};

use serde::Serialize;

use crate::args::Common;
use crate::failure::Failure;

/// Standard output of a command.
pub(crate) struct Output {
    out: BufWriter<Stdout>,
    json: bool,
    quiet: bool,
}

impl Output {
    /// The output for these options.
    pub(crate) fn new(common: &Common) -> Self {
        let out = BufWriter::with_capacity(1 << 16, std::io::stdout());
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

    /// Prints a confirmation: as [`line`](Self::line), but no text with `--quiet`.
    pub(crate) fn done<V: Serialize>(
        &mut self,
        value: &V,
        text: impl FnOnce(&V) -> String,
    ) -> Result<(), Failure> {
        if self.quiet { self.result(value) } else { self.line(value, text) }
    }

    /// Prints a result that people expect anyway: as JSON only.
    pub(crate) fn result<V: Serialize>(&mut self, value: &V) -> Result<(), Failure> {
        if self.json { self.line(value, |_| String::new()) } else { Ok(()) }
    }

    /// Writes bytes unchanged.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.out.write_all(bytes)?)
    }

    /// Flushes the output. Every command that prints ends with this, so that a full disk under a
    /// redirected standard output is noticed.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }
}
