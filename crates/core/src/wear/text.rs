//! Shows wear to people and programs: a page with a table, and named numbers.

use std::fmt;
use std::time::Duration;

use super::counters::{WriteCause, Writes};
use super::report::{Wear, Written};

/// Bytes of a terabyte, the unit in which vendors state the endurance of drives.
const TERABYTE: f64 = 1e12;

/// Assumed bytes that a drive writes inside for each byte that it receives. Drives do not report
/// the number; 1 to 4 is usual.
const DEVICE_AMPLIFICATIONS: [f64; 4] = [1.0, 2.0, 3.0, 4.0];

/// A page about wear, for printing with `Display`. [`Wear::page`] creates it.
#[derive(Clone, Copy, Debug)]
pub struct WearPage<'a> {
    wear: &'a Wear,
    tbw: f64,
}

/// Lifetimes of a new drive at the rate of a period, each with the assumed amplification inside the
/// drive. `None` means unlimited.
pub type Lifetimes = [(f64, Option<Duration>); DEVICE_AMPLIFICATIONS.len()];

impl Wear {
    /// Returns a readable page: the writes by cause, the amplification, and the lifetime of a new
    /// drive with an endurance of `tbw` terabytes. With 0, the page has no lifetime.
    #[must_use]
    pub fn page(&self, tbw: f64) -> WearPage<'_> {
        WearPage { wear: self, tbw }
    }
}

impl Written {
    /// Returns the lifetimes of a new drive with an endurance of `tbw` terabytes that writes 1, 2,
    /// 3 or 4 bytes inside for each byte that it receives.
    #[must_use]
    pub fn lifetimes(&self, tbw: f64) -> Lifetimes {
        DEVICE_AMPLIFICATIONS.map(|inside| (inside, self.lifetime(tbw * TERABYTE, inside)))
    }
}

/// The names of the numbers of a period, in the order of [`numbers`].
macro_rules! names {
    ($period:literal) => {
        [
            concat!($period, "_seconds"),
            concat!($period, "_user_bytes"),
            concat!($period, "_bytes"),
            concat!($period, "_requests"),
            concat!($period, "_log_bytes"),
            concat!($period, "_log_requests"),
            concat!($period, "_flush_bytes"),
            concat!($period, "_flush_requests"),
            concat!($period, "_merge_bytes"),
            concat!($period, "_merge_requests"),
            concat!($period, "_relocation_bytes"),
            concat!($period, "_relocation_requests"),
            concat!($period, "_manifest_bytes"),
            concat!($period, "_manifest_requests"),
            concat!($period, "_private_runs_bytes"),
            concat!($period, "_private_runs_requests"),
            concat!($period, "_large_values_bytes"),
            concat!($period, "_large_values_requests"),
        ]
    };
}

const TOTAL_NAMES: [&str; 4 + 2 * WriteCause::ALL.len()] = names!("total");
const LAST_HOUR_NAMES: [&str; TOTAL_NAMES.len()] = names!("last_hour");

fn numbers(written: &Written) -> impl Iterator<Item = u64> + '_ {
    let Writes { bytes, requests } = written.sums.total();
    let by_cause = WriteCause::ALL.into_iter().flat_map(|cause| {
        let Writes { bytes, requests } = written.sums.of(cause);
        [bytes, requests]
    });
    [written.seconds, written.sums.user_bytes(), bytes, requests].into_iter().chain(by_cause)
}

impl Wear {
    /// Returns every number with its name: `since` and `until`, the numbers of the totals, and the
    /// numbers of the last hour.
    #[must_use]
    pub fn named_values(&self) -> Vec<(&'static str, u64)> {
        let mut values = vec![("since", self.since), ("until", self.until)];
        values.extend(TOTAL_NAMES.into_iter().zip(numbers(&self.total)));
        values.extend(LAST_HOUR_NAMES.into_iter().zip(numbers(&self.last_hour)));
        values
    }
}

impl fmt::Display for WearPage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wear { since, until, total, last_hour } = *self.wear;
        let (begin, end) = (utc(since), utc(until));
        writeln!(f, "written to the files from {begin} to {end}\n")?;
        let hour = match last_hour.seconds {
            3600 => "last hour".to_owned(),
            seconds => format!("last {seconds} s"),
        };
        writeln!(f, "{:<14}{hour:>30}{:>32}", "", "since the start")?;
        let heads = ["cause", "bytes", "requests", "bytes", "requests"];
        let [cause, bytes, requests, ..] = heads;
        writeln!(f, "{cause:<14}{bytes:>18}{requests:>12}{bytes:>20}{requests:>12}")?;
        let mut row = |name: &str, hour: Writes, all: Writes| {
            let (a, b, c, d) = (hour.bytes, hour.requests, all.bytes, all.requests);
            writeln!(f, "{name:<14}{a:>18}{b:>12}{c:>20}{d:>12}")
        };
        for cause in WriteCause::ALL {
            let name = cause.name().replace('_', " ");
            row(&name, last_hour.sums.of(cause), total.sums.of(cause))?;
        }
        row("all", last_hour.sums.total(), total.sums.total())?;
        let (hour, all) = (&last_hour, &total);
        let (a, b) = (hour.sums.user_bytes(), all.sums.user_bytes());
        writeln!(f, "{:<14}{a:>18}{b:>32}", "user")?;
        let (a, b) = (rounded(hour.sums.amplification()), rounded(all.sums.amplification()));
        writeln!(f, "{:<14}{a:>18}{b:>32}", "amplification")?;
        let (a, b) = (rounded(hour.bytes_per_second()), rounded(all.bytes_per_second()));
        writeln!(f, "{:<14}{a:>18}{b:>32}", "bytes/s")?;
        if self.tbw > 0.0 { self.lifetimes(f) } else { Ok(()) }
    }
}

impl WearPage<'_> {
    fn lifetimes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\ndays that a new drive with {} TBW lasts at this rate", self.tbw)?;
        write!(f, "{:<32}", "written inside for each byte")?;
        DEVICE_AMPLIFICATIONS.iter().try_for_each(|inside| write!(f, "{inside:>11}"))?;
        writeln!(f)?;
        for (name, written) in
            [("last hour", &self.wear.last_hour), ("since the start", &self.wear.total)]
        {
            write!(f, "{name:<32}")?;
            for (_, lifetime) in written.lifetimes(self.tbw) {
                let days = lifetime.map(|long| long.as_secs_f64() / (24.0 * 3600.0));
                write!(f, "{:>11}", days.map_or("-".to_owned(), |days| format!("{days:.0}")))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn rounded(number: Option<f64>) -> String {
    number.map_or("-".to_owned(), |number| format!("{number:.2}"))
}

/// Formats a moment, for example 2026-11-27 22:39:09 UTC.
fn utc(unix_seconds: u64) -> String {
    let (days, second) = (unix_seconds / 86_400, unix_seconds % 86_400);
    // Count years from March, so that a leap day is the last day of its year. 400 years have
    // 146,097 days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = 400 * era + year + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::wear::{History, Sample, WriteSums};

    fn wear() -> Wear {
        let writes = |bytes| Writes { bytes, requests: bytes / 1000 };
        let causes = [5, 4, 3, 2, 1, 0, 6].map(|n| writes(n * 1_000_000_000));
        let mut history = History::new(1_700_000_000);
        let sums = WriteSums::new(7_000_000_000, causes);
        history.add(Sample { at: 1_700_003_600, sums: WriteSums::default() });
        history.wear(1_700_003_600 + 7200, &sums)
    }

    #[test]
    fn a_page_shows_causes_and_lifetimes() {
        let page = wear().page(600.0).to_string();
        let expected = "\
written to the files from 2023-11-14 22:13:20 UTC to 2023-11-15 01:13:20 UTC

                                   last hour                 since the start
cause                      bytes    requests               bytes    requests
log                   2500000000     2500000          5000000000     5000000
flush                 2000000000     2000000          4000000000     4000000
merge                 1500000000     1500000          3000000000     3000000
relocation            1000000000     1000000          2000000000     2000000
manifest               500000000      500000          1000000000     1000000
private runs                   0           0                   0           0
large values          3000000000     3000000          6000000000     6000000
all                  10500000000    10500000         21000000000    21000000
user                  3500000000                      7000000000
amplification               3.00                            3.00
bytes/s               2916666.67                      1944444.44

days that a new drive with 600 TBW lasts at this rate
written inside for each byte              1          2          3          4
last hour                              2381       1190        794        595
since the start                        3571       1786       1190        893
";
        assert_eq!(page, expected);
        let without = wear().page(0.0).to_string();
        assert!(expected.starts_with(&without) && without.ends_with("1944444.44\n"));
    }

    #[test]
    fn a_database_that_has_written_nothing_has_a_page() {
        let wear = History::new(100).wear(100, &WriteSums::default());
        let page = wear.page(1.0).to_string();
        assert!(page.contains("last 0 s") && page.contains("amplification                  -"));
    }

    #[test]
    fn the_names_are_those_of_the_causes() {
        let values = wear().named_values();
        assert_eq!(
            values[..3],
            [("since", 1_700_000_000), ("until", 1_700_010_800), ("total_seconds", 10_800)]
        );
        for cause in WriteCause::ALL {
            for (period, written) in [("total", wear().total), ("last_hour", wear().last_hour)] {
                let Writes { bytes, requests } = written.sums.of(cause);
                for (what, value) in [("bytes", bytes), ("requests", requests)] {
                    let name = format!("{period}_{}_{what}", cause.name());
                    assert!(values.contains(&(name.as_str(), value)), "{name}");
                }
            }
        }
    }

    #[test]
    fn moments_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (951_868_800, "2000-03-01 00:00:00 UTC"),
            (1_798_761_599, "2026-12-31 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(utc(seconds), text);
        }
    }
}
