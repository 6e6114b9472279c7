//! Options of a measurement.

use std::time::Duration;

use frondb_core::{Error, Result};

/// Largest number of threads that make requests. Each needs a buffer of 4 MiB.
const THREADS_MAX: usize = 256;
/// Shortest measurement.
const BUDGET_MIN: Duration = Duration::from_millis(100);
/// Longest measurement.
const BUDGET_MAX: Duration = Duration::from_secs(24 * 3600);
/// Smallest file: four requests of the largest size.
pub(crate) const FILE_BYTES_MIN: u64 = 16 << 20;

/// Options of a measurement. The default is 30 seconds of reads by 1, 4 and 16 threads.
///
/// ```
/// use std::time::Duration;
///
/// let longer = frondb_device_model::MeasureOptions::new().budget(Duration::from_secs(120)).writes(true);
/// # let _ = longer;
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MeasureOptions {
    pub(crate) budget: Duration,
    pub(crate) threads: Vec<usize>,
    pub(crate) writes: bool,
    pub(crate) file_bytes: Option<u64>,
}

impl Default for MeasureOptions {
    fn default() -> Self {
        let threads = vec![1, 4, 16];
        Self { budget: Duration::from_secs(30), threads, writes: false, file_bytes: None }
    }
}

impl MeasureOptions {
    /// Returns the defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the approximate duration of the measurement: 0.1 s to a day. Default 30 s. A thirtieth
    /// at most is for synced writes, and a quarter for writing the file, unless
    /// [`file_bytes`](Self::file_bytes) sets its size; the rest is divided equally among the
    /// points. If writing the file or the largest requests take longer than that, the whole
    /// measurement takes longer.
    #[must_use]
    pub fn budget(mut self, budget: Duration) -> Self {
        self.budget = budget;
        self
    }

    /// Sets the numbers of threads to measure with, 1 to 256 each. Default 1, 4 and 16. The number
    /// of requests that a device serves at once is determined only up to the largest of these
    /// numbers.
    #[must_use]
    pub fn threads(mut self, threads: &[usize]) -> Self {
        self.threads = threads.to_vec();
        self.threads.sort_unstable();
        self.threads.dedup();
        self
    }

    /// Sets whether random writes are measured, too. Default false, because they wear the device.
    #[must_use]
    pub fn writes(mut self, writes: bool) -> Self {
        self.writes = writes;
        self
    }

    /// Sets the size of the file, at least 16 MiB. By default the file has 4 GiB (without direct
    /// I/O twice the memory, if that is more), but at most half of the free space, and only as much
    /// as a quarter of the time allows to write, at least 64 MiB.
    #[must_use]
    pub fn file_bytes(mut self, bytes: u64) -> Self {
        self.file_bytes = Some(bytes);
        self
    }

    pub(crate) fn validate(&self) -> Result<()> {
        if !(BUDGET_MIN..=BUDGET_MAX).contains(&self.budget) {
            let seconds = self.budget.as_secs_f64();
            let message = format!("a measurement of {seconds} s: give 0.1 to 86400 s");
            return Err(Error::invalid(message));
        }
        let wrong = self.threads.iter().find(|threads| !(1..=THREADS_MAX).contains(*threads));
        if let Some(threads) = wrong {
            return Err(Error::invalid(format!("{threads} threads: give 1 to {THREADS_MAX}")));
        }
        if self.threads.is_empty() {
            return Err(Error::invalid("no number of threads: give at least one"));
        }
        match self.file_bytes {
            Some(bytes) if bytes < FILE_BYTES_MIN => Err(Error::invalid(format!(
                "a file of {bytes} bytes: give at least {FILE_BYTES_MIN}"
            ))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_options_are_refused() {
        let options = MeasureOptions::new;
        assert!(options().validate().is_ok());
        for (wrong, part) in [
            (options().budget(Duration::ZERO), "0.1"),
            (options().budget(Duration::MAX), "86400"),
            (options().threads(&[]), "at least one"),
            (options().threads(&[1, 0]), "0 threads"),
            (options().threads(&[257]), "256"),
            (options().file_bytes(4096), "16777216"),
        ] {
            let error = wrong.validate().err().map(|error| error.message().to_owned());
            assert!(error.as_ref().is_some_and(|text| text.contains(part)), "{error:?} {part}");
        }
    }

    #[test]
    fn threads_are_sorted_and_each_counts_once() {
        assert_eq!(MeasureOptions::new().threads(&[8, 1, 8]).threads, [1, 8]);
    }
}
