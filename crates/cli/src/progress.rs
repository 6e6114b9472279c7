//! Progress of long commands on standard error: a bar if the total is known, a spinner else, and
//! nothing if standard error is no terminal or `--quiet` is given.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::Common;

/// A bar over bytes.
const BYTES: &str = "{prefix}{bar:30} {percent:>3}%  {bytes}/{total_bytes}  {msg}  {eta} left";
/// A bar over entries, whose number is an estimate.
const ENTRIES: &str = "{prefix}{bar:30} {percent:>3}%  {msg}  {eta} left";
/// No end in sight.
const ENDLESS: &str = "{prefix}{spinner} {bytes}  {msg}  {elapsed}";

/// A running display. Dropping it removes it.
pub(crate) struct Progress {
    bar: ProgressBar,
    entries: u64,
}

impl Progress {
    /// Over `total` bytes, if that is known.
    pub(crate) fn bytes(common: &Common, total: Option<u64>) -> Self {
        Self::new(common, if total.is_some() { BYTES } else { ENDLESS }, total)
    }

    /// Over about `total` entries.
    pub(crate) fn entries(common: &Common, total: u64) -> Self {
        Self::new(common, ENTRIES, Some(total))
    }

    /// Over bytes of the thing of this name; the total comes with the first step.
    pub(crate) fn named(common: &Common, name: &str) -> Self {
        let progress = Self::new(common, BYTES, Some(0));
        progress.bar.set_prefix(format!("{name}  "));
        progress
    }

    fn new(common: &Common, template: &str, total: Option<u64>) -> Self {
        let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
        if common.quiet {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar, entries: 0 }
    }

    /// Says how far it is, and how many entries that is.
    pub(crate) fn at(&mut self, position: u64, entries: u64) {
        // Formatting costs more than an entry does, and nobody reads a thousand a second.
        if entries - self.entries >= 1000 {
            self.entries = entries;
            self.bar.set_position(position);
            self.bar.set_message(format!("{entries} entries"));
        }
    }

    /// Says what is being done.
    pub(crate) fn say(&mut self, what: &'static str) {
        self.bar.set_message(what);
    }

    /// Removes the display before the work is over: another one follows.
    pub(crate) fn end(&mut self) {
        self.bar.finish_and_clear();
    }

    /// Says how far it is of how much.
    pub(crate) fn of(&mut self, done: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
