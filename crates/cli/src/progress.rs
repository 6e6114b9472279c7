//! Progress of long commands on standard error: a bar if the total is known, otherwise a spinner.
//! There is no display if standard error is not a terminal, or with `--quiet`.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::Common;
use crate::encoding::shown_name;

/// A bar over bytes.
const BYTES: &str = "{prefix}{bar:30} {percent:>3}%  {bytes}/{total_bytes}  {msg}  {eta} left";
/// A bar over an estimated number of entries.
const ENTRIES: &str = "{prefix}{bar:30} {percent:>3}%  {msg}  {eta} left";
/// A bar over leaves.
const LEAVES: &str = "{prefix}{bar:30} {percent:>3}%  {pos} of {len} leaves  {eta} left";
/// A bar over time.
const TIME: &str = "{bar:30} {percent:>3}%  {msg}  {eta} left";
/// A spinner, for an unknown total.
const ENDLESS: &str = "{prefix}{spinner} {bytes}  {msg}  {elapsed}";

/// A running progress display, removed when dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
    entries: u64,
}

impl Progress {
    /// Shows progress over `total` bytes; a spinner if the total is unknown.
    pub(crate) fn bytes(common: &Common, total: Option<u64>) -> Self {
        Self::new(common, if total.is_some() { BYTES } else { ENDLESS }, total)
    }

    /// Shows progress over about `total` entries.
    pub(crate) fn entries(common: &Common, total: u64) -> Self {
        Self::new(common, ENTRIES, Some(total))
    }

    /// Shows progress over the bytes of the named object; the first step sets the total.
    pub(crate) fn named(common: &Common, name: &str) -> Self {
        let progress = Self::new(common, BYTES, Some(0));
        progress.bar.set_prefix(format!("{}  ", shown_name(name)));
        progress
    }

    /// Shows progress over the leaves of the named tree; the first step sets the total.
    pub(crate) fn leaves(common: &Common, name: &str) -> Self {
        let progress = Self::new(common, LEAVES, Some(0));
        progress.bar.set_prefix(format!("{}  ", shown_name(name)));
        progress
    }

    /// Shows progress over a time; the first step sets the total.
    pub(crate) fn time(common: &Common) -> Self {
        Self::new(common, TIME, Some(0))
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

    /// Sets the position and the number of entries.
    pub(crate) fn at(&mut self, position: u64, entries: u64) {
        // Update only every thousand entries: formatting costs more than loading an entry.
        if entries - self.entries >= 1000 {
            self.entries = entries;
            self.bar.set_position(position);
            self.bar.set_message(format!("{entries} entries"));
        }
    }

    /// Sets the text beside the bar.
    pub(crate) fn say(&mut self, what: &'static str) {
        self.bar.set_message(what);
    }

    /// Removes the display before another one follows.
    pub(crate) fn end(&mut self) {
        self.bar.finish_and_clear();
    }

    /// Sets the position and the total.
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
