//! FronDB's own latencies since the server's start, as figures of a workload. The other engines
//! have no such counters.

use std::collections::BTreeMap;

use frondb_bench::report::Figure;
use frondb_bench::{Error, Result};
use frondb_mariadb_harness::Client;

const PREFIX: &str = "frondb_latency_";
/// Kinds of work for which statements wait, with their names in reports. Flushes and merges are
/// left out: they may take long without harm.
const KINDS: [(&str, &str); 6] = [
    ("commit", "commit"),
    ("prepare", "prepare"),
    ("commit_sync", "wait for the disk"),
    ("stall", "wait for background work"),
    ("get", "point read"),
    ("seek", "seek"),
];

/// The 99.9th percentile and the maximum of each kind of work that has occurred, milliseconds.
pub(crate) fn figures(client: &mut Client) -> Result<Vec<Figure>> {
    let reply =
        client.query(format!("SHOW GLOBAL STATUS LIKE '{PREFIX}%'")).map_err(Error::engine)?;
    let text = |field: &Option<Vec<u8>>| {
        field.as_deref().map(|bytes| String::from_utf8_lossy(bytes).to_lowercase())
    };
    let values: BTreeMap<String, u64> = reply
        .rows
        .iter()
        .filter_map(|row| Some((text(row.first()?)?, text(row.get(1)?)?.parse().ok()?)))
        .collect();
    Ok(of(&values))
}

fn of(values: &BTreeMap<String, u64>) -> Vec<Figure> {
    let value = |kind: &str, what: &str| values.get(&format!("{PREFIX}{kind}_{what}")).copied();
    let mut figures = Vec::new();
    for (kind, name) in KINDS {
        if value(kind, "count").is_none_or(|count| count == 0) {
            continue;
        }
        for (what, title) in [("p999_nanos", "99.9 of 100"), ("max_nanos", "longest")] {
            if let Some(nanos) = value(kind, what) {
                let title = format!("engine: {name}: {title}");
                figures.push(Figure::plain(title, nanos as f64 / 1e6, "ms"));
            }
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_that_have_happened_have_two_figures() {
        let values = [
            ("commit_count", 2),
            ("commit_p999_nanos", 5_000_000),
            ("commit_max_nanos", 6_000_000),
            ("get_count", 0),
        ];
        let values = values.map(|(name, value)| (format!("{PREFIX}{name}"), value)).into();
        let figures = of(&values);
        let found: Vec<_> = figures.iter().map(|f| (f.name.as_str(), f.value)).collect();
        assert_eq!(found, [("engine: commit: 99.9 of 100", 5.0), ("engine: commit: longest", 6.0)]);
        assert!(of(&BTreeMap::new()).is_empty());
    }
}
