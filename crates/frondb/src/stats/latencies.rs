//! [`Latencies`]: how long the calls and the background work of a database take.

use frondb_core::latency::LatencyStats;

macro_rules! latencies {
    ($($(#[doc = $doc:literal])* $name:ident),* $(,)?) => {
        /// Histograms of the times of calls and background work since the database was opened.
        /// Reading them costs next to nothing.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        #[non_exhaustive]
        pub struct Latencies {
            $($(#[doc = $doc])* pub $name: LatencyStats,)*
        }

        impl Latencies {
            /// Returns the histogram of each kind with its name, in the order of the declaration.
            #[must_use]
            pub fn named(&self) -> Vec<(&'static str, &LatencyStats)> {
                vec![$((stringify!($name), &self.$name),)*]
            }

            /// Returns the values of each kind, named like statistics: the number of calls, the sum
            /// of their times, the times that 50, 99 and 99.9 % of the calls do not exceed, and the
            /// longest time. All times are in nanoseconds.
            #[must_use]
            pub fn named_values(&self) -> Vec<(&'static str, u64)> {
                vec![$(
                    (concat!("latency_", stringify!($name), "_count"), self.$name.count()),
                    (concat!("latency_", stringify!($name), "_nanos"), self.$name.nanos),
                    (
                        concat!("latency_", stringify!($name), "_p50_nanos"),
                        self.$name.quantile_nanos(500_000),
                    ),
                    (
                        concat!("latency_", stringify!($name), "_p99_nanos"),
                        self.$name.quantile_nanos(990_000),
                    ),
                    (
                        concat!("latency_", stringify!($name), "_p999_nanos"),
                        self.$name.quantile_nanos(999_000),
                    ),
                    (concat!("latency_", stringify!($name), "_max_nanos"), self.$name.max_nanos),
                )*]
            }
        }
    };
}

latencies! {
    /// Point reads of one key; one read in sixteen is timed.
    get,
    /// Seeks of cursors; one seek in sixteen is timed.
    seek,
    /// Commits, including waits for background work and, for batches, for locks, excluding the wait
    /// for the disk. The prepare of a transaction does not count.
    commit,
    /// Prepares of transactions, including waits for background work, excluding the wait for the
    /// disk.
    prepare,
    /// Waits of commits and prepares for the disk.
    commit_sync,
    /// Syncs of the log; one can serve many commits.
    log_sync,
    /// Waits of commits for background work.
    stall,
    /// Flushes of memtables, from their beginning to their end.
    flush,
    /// Merges of all kinds, from their beginning to their end.
    merge,
}

impl std::fmt::Display for Latencies {
    /// Prints one kind per line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (name, stats) in self.named() {
            let time = |nanos: u64| std::time::Duration::from_nanos(nanos);
            writeln!(
                f,
                "{:<24} {} calls, 50 % within {:.1?}, 99 % {:.1?}, 99.9 % {:.1?}, all {:.1?}",
                format!("latency_{name}"),
                stats.count(),
                time(stats.quantile_nanos(500_000)),
                time(stats.quantile_nanos(990_000)),
                time(stats.quantile_nanos(999_000)),
                time(stats.max_nanos),
            )?;
        }
        Ok(())
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_figures() {
        let values = Latencies::default().named_values();
        assert_eq!(values.len(), Latencies::default().named().len() * 6);
        assert!(values.contains(&("latency_log_sync_p999_nanos", 0)));
    }
}
