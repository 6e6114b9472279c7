//! Progress of long commands on standard error: a bar if the total is known, a spinner else, and
//! nothing if standard error is no terminal or `--quiet` is given.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::Common;

/// A running display. Dropping it removes it.
pub(crate) struct Progress {
    bar: ProgressBar,
    entries: u64,
}

impl Progress {
    /// Over `total` bytes, if that is known.
    pub(crate) fn bytes(common: &Common, total: Option<u64>) -> Self {
        let template = match total {
            Some(_) => "{bar:30} {percent:>3}%  {bytes}/{total_bytes}  {msg}  {eta} left",
            None => "{spinner} {bytes}  {msg}  {elapsed}",
        };
        let bar = match total {
            Some(total) => ProgressBar::new(total),
            None => ProgressBar::no_length(),
        };
        if common.quiet {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar, entries: 0 }
    }

    /// Says how far it is: bytes so far, and entries so far.
    pub(crate) fn at(&mut self, bytes: u64, entries: u64) {
        self.bar.set_position(bytes);
        if entries != self.entries {
            self.entries = entries;
            self.bar.set_message(format!("{entries} entries"));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
