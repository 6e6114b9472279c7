//! The statistics as a page in Prometheus' text format, version 0.0.4.
//!
//! ```text
//!   name                 metric                                  type
//!   gets                 frondb_gets_total                       counter
//!   memory_used          frondb_memory_used_bytes                gauge
//!   write_stall_nanos    frondb_write_stall_seconds_total        counter, in seconds
//!   a latency            frondb_latency_seconds{kind="commit"}   histogram
//! ```

use std::fmt::Write;

use frondb_core::latency::{BUCKETS, LatencyStats, bound_nanos};

use super::{EngineStats, Kind, Latencies};

const NANOS: f64 = 1e9;

pub(crate) fn page(stats: &EngineStats, latencies: &Latencies) -> String {
    let mut page = String::new();
    let rows = stats.named_values().into_iter().zip(EngineStats::kinds_and_meanings());
    for ((name, value), (kind, meaning)) in rows {
        let metric = Metric::of(name, kind);
        // Metrics of times are in seconds: remove the units of the statistics from the text.
        let help = meaning.replace("Nanoseconds that", "Time that").replace(", milliseconds", "");
        let help = help.trim().trim_end_matches('.');
        let (name, kind) = (&metric.name, metric.kind);
        let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
        let _ = match metric.per_unit {
            None => writeln!(page, "{name} {value}"),
            Some(per_unit) => writeln!(page, "{name} {}", value as f64 / per_unit),
        };
    }
    let name = "frondb_latency_seconds";
    let _ = writeln!(page, "# HELP {name} How long calls and background work take");
    let _ = writeln!(page, "# TYPE {name} histogram");
    for (kind, stats) in latencies.named() {
        add_histogram(&mut page, name, kind, stats);
    }
    page
}

fn add_histogram(page: &mut String, name: &str, kind: &str, stats: &LatencyStats) {
    let mut below = 0;
    for index in 0..BUCKETS {
        below += stats.counts[index];
        let bound = bound_nanos(index)
            .map_or_else(|| "+Inf".to_owned(), |nanos| (nanos as f64 / NANOS).to_string());
        let _ = writeln!(page, "{name}_bucket{{kind=\"{kind}\",le=\"{bound}\"}} {below}");
    }
    let _ = writeln!(page, "{name}_sum{{kind=\"{kind}\"}} {}", stats.nanos as f64 / NANOS);
    let _ = writeln!(page, "{name}_count{{kind=\"{kind}\"}} {below}");
}

/// A statistic as a metric of Prometheus.
struct Metric {
    name: String,
    kind: &'static str,
    /// The number of the statistic's units in one unit of the metric; `None` if they are the same.
    per_unit: Option<f64>,
}

impl Metric {
    fn of(statistic: &str, kind: Kind) -> Self {
        let (base, unit, per_unit) = match statistic {
            name if name.starts_with("memory_") => (name, "_bytes", None),
            name => match (name.strip_suffix("_nanos"), name.strip_suffix("_ms")) {
                (Some(base), _) => (base, "_seconds", Some(NANOS)),
                (_, Some(base)) => (base, "_seconds", Some(1e3)),
                _ => (name, "", None),
            },
        };
        let (kind, end) = match kind {
            Kind::gauge => ("gauge", ""),
            Kind::counter => ("counter", "_total"),
        };
        Self { name: format!("frondb_{base}{unit}{end}"), kind, per_unit }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn statistics_have_the_names_and_units_of_metrics() {
        for (statistic, metric, kind) in [
            ("gets", "frondb_gets_total", "counter"),
            ("memory_used", "frondb_memory_used_bytes", "gauge"),
            ("wal_bytes", "frondb_wal_bytes", "gauge"),
            ("flush_bytes", "frondb_flush_bytes_total", "counter"),
            ("write_stall_nanos", "frondb_write_stall_seconds_total", "counter"),
            ("oldest_snapshot_ms", "frondb_oldest_snapshot_seconds", "gauge"),
        ] {
            let names = EngineStats::default().named_values();
            let at = names.iter().position(|(name, _)| *name == statistic).unwrap();
            let found = Metric::of(statistic, EngineStats::kinds_and_meanings()[at].0);
            assert_eq!((found.name.as_str(), found.kind), (metric, kind));
        }
    }

    #[test]
    fn a_page_has_each_metric_once_and_buckets_that_grow() {
        let stats = EngineStats { gets: 5, write_stall_nanos: 1_500_000_000, ..Default::default() };
        let mut latencies = Latencies::default();
        latencies.commit.counts[0] = 2;
        latencies.commit.counts[3] = 1;
        latencies.commit.nanos = 10_000;
        let page = page(&stats, &latencies);
        for line in [
            "# HELP frondb_gets_total Point reads",
            "# TYPE frondb_gets_total counter",
            "frondb_gets_total 5",
            "frondb_write_stall_seconds_total 1.5",
            "# TYPE frondb_latency_seconds histogram",
            "frondb_latency_seconds_bucket{kind=\"commit\",le=\"0.000001024\"} 2",
            "frondb_latency_seconds_bucket{kind=\"commit\",le=\"0.000008192\"} 3",
            "frondb_latency_seconds_bucket{kind=\"commit\",le=\"+Inf\"} 3",
            "frondb_latency_seconds_sum{kind=\"commit\"} 0.00001",
            "frondb_latency_seconds_count{kind=\"commit\"} 3",
        ] {
            assert_eq!(page.lines().filter(|found| *found == line).count(), 1, "{line}\n{page}");
        }
        assert!(!page.contains("anosecond") && !page.contains("millisecond"), "{page}");
        let types = page.lines().filter(|line| line.starts_with("# TYPE ")).count();
        assert_eq!(types, stats.named_values().len() + 1);
    }
}
