//! Progress while a workload runs: a bar for a load on a terminal, otherwise a line every five
//! seconds. Progress goes to standard error; standard output is for results.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::error::{Error, Result};
use crate::measure::{Observer, Sample};
use crate::report::{bytes, count};

/// Ticks of the sampler (250 ms) between two lines of progress.
const TICKS_PER_LINE: u32 = 20;

/// The progress display of a child.
#[derive(Clone)]
pub struct Progress {
    label: String,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Silent,
    Lines,
    Bar,
}

impl Progress {
    /// Returns a display that shows nothing.
    #[must_use]
    pub fn silent() -> Self {
        Self { label: String::new(), kind: Kind::Silent }
    }

    /// Returns a display on standard error. Each line begins with `label`.
    #[must_use]
    pub fn visible(label: String) -> Self {
        let kind = if std::io::stderr().is_terminal() { Kind::Bar } else { Kind::Lines };
        Self { label, kind }
    }

    /// Shows which part of the workload begins.
    pub fn say(&self, part: &str) {
        if !matches!(self.kind, Kind::Silent) {
            note(&format!("{}: {part}", self.label));
        }
    }

    /// Returns the observer of a load of `rows` rows.
    #[must_use]
    pub fn load(&self, rows: u64) -> Observer {
        match self.kind {
            Kind::Silent => Box::new(|_, _| ()),
            Kind::Lines => self.lines("load"),
            Kind::Bar => self.bar(rows),
        }
    }

    /// Returns the observer of a writer without a known number of rows.
    #[must_use]
    pub fn stream(&self, part: &str) -> Observer {
        match self.kind {
            Kind::Silent => Box::new(|_, _| ()),
            Kind::Lines | Kind::Bar => self.lines(part),
        }
    }

    fn lines(&self, part: &str) -> Observer {
        let label = format!("{}: {part}", self.label);
        let (mut ticks, mut last) = (0, (0.0, 0));
        Box::new(move |sample, _| {
            ticks += 1;
            if ticks % TICKS_PER_LINE == 0 {
                let (t, rows) = last;
                let rate = (sample.rows - rows) as f64 / (sample.t_s - t).max(1e-9);
                last = (sample.t_s, sample.rows);
                note(&format!("{label}: {:.0} s, {}", sample.t_s, state(sample, rate)));
            }
        })
    }

    fn bar(&self, rows: u64) -> Observer {
        let target = ProgressDrawTarget::stderr_with_hz(4);
        let bar = ProgressBar::with_draw_target(Some(rows), target);
        // The template is a constant that parses. Without it the bar would have the default style.
        if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:30}] {elapsed} {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(self.label.clone());
        bar.enable_steady_tick(Duration::from_millis(250));
        let bar = FinishedBar(bar);
        let mut smooth: Option<f64> = None;
        Box::new(move |sample, rate| {
            let rate = smooth.map_or(rate, |old| 0.7 * old + 0.3 * rate);
            smooth = Some(rate);
            bar.0.set_position(sample.rows);
            let settling = if sample.rows >= rows { ", settling" } else { "" };
            bar.0.set_message(format!("{}{settling}", state(sample, rate)));
        })
    }
}

/// A bar that stays on the screen as it is when its observer is dropped.
struct FinishedBar(ProgressBar);

impl Drop for FinishedBar {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

fn state(sample: &Sample, rate: f64) -> String {
    format!(
        "{} rows, {} rows/s, {} written, {} memory",
        count(sample.rows as f64),
        count(rate),
        bytes(sample.written_bytes as f64),
        bytes(sample.resident_bytes as f64)
    )
}

/// Writes a line to standard error. A closed standard error is no reason to stop measuring.
pub fn note(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Writes results to standard output.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::io("print"))
}
