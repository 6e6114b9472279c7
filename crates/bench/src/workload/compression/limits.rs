//! The floors and goals of FronDB's compression: against RocksDB, against TokuDB's lzma, and alone.
//! Sizes leave out the space that an engine reserves, because it does not depend on the amount of
//! data.

use crate::engine::Codec;
use crate::engines::frondb::FRONDB;
use crate::report::{Figure, Measurement};
use crate::rows::DataKind;
use crate::workload::TOKUDB;

/// The engine with which FronDB is compared.
const ROCKSDB: &str = "rocksdb";

/// Measurements of one kind of data.
struct Measured<'a> {
    kind: &'a str,
    all: &'a [Measurement],
}

/// Returns the figures of `kind`, whose measurements are `all`. Leaves out a comparison if one side
/// was not measured, or if the two sides have different numbers of rows.
pub(crate) fn limits(kind: DataKind, all: &[Measurement]) -> Vec<Figure> {
    let measured = Measured { kind: kind.name(), all };
    let mut figures = Vec::new();
    if kind == DataKind::Logs {
        for other in [Codec::Default, Codec::Standard] {
            let size = measured.size(Codec::Standard, ROCKSDB, other);
            figures.extend(size.map(|figure| figure.at_most(1.0, Some(0.9))));
        }
    }
    figures.extend(measured.aggressive());
    if kind == DataKind::Logs {
        let ratio = measured.own(Codec::Aggressive).and_then(Measurement::data_compression);
        figures.extend(
            ratio.map(|ratio| measured.figure("raw / disk", ratio, "x").at_least(8.0, 15.0)),
        );
    }
    figures
}

impl Measured<'_> {
    fn of(&self, engine: &str, codec: Codec) -> Option<&Measurement> {
        let codec = Some(codec.to_string());
        self.all.iter().find(|m| m.engine == engine && m.codec == codec && m.error.is_none())
    }

    fn own(&self, codec: Codec) -> Option<&Measurement> {
        self.of(FRONDB.name, codec)
    }

    /// Creates a figure of the codec `aggressive`.
    fn figure(&self, what: &str, value: f64, unit: &str) -> Figure {
        Figure::plain(format!("{}: aggressive, {what}", self.kind), value, unit)
    }

    /// Returns FronDB's size with `codec` divided by the size of another engine with `other_codec`.
    fn size(&self, codec: Codec, engine: &str, other_codec: Codec) -> Option<Figure> {
        let size = |m: &Measurement| m.data_bytes().map(|bytes| bytes as f64);
        let ratio = self.ratio(codec, engine, other_codec, size)?;
        let title = format!("{}: {codec}, size to {engine} {other_codec}", self.kind);
        Some(Figure::plain(title, ratio, "x"))
    }

    fn ratio(
        &self,
        codec: Codec,
        engine: &str,
        other_codec: Codec,
        value: impl Fn(&Measurement) -> Option<f64>,
    ) -> Option<f64> {
        let (own, other) = (self.own(codec)?, self.of(engine, other_codec)?);
        if own.rows != other.rows {
            return None;
        }
        let other = value(other).filter(|value| *value > 0.0)?;
        Some(value(own)? / other)
    }

    fn aggressive(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        let size = self.size(Codec::Aggressive, TOKUDB.name, Codec::TokuLzma);
        figures.extend(size.map(|figure| figure.at_most(1.1, Some(1.0))));
        // RocksDB's blocks of 16 KiB, then of 128 KiB.
        for other in [Codec::ZstdDictionary(19), Codec::Aggressive] {
            let ratio = self.ratio(Codec::Aggressive, ROCKSDB, other, |m| m.point_ops_s);
            let title = format!("points to {ROCKSDB} {other}");
            figures.extend(ratio.map(|ratio| self.figure(&title, ratio, "x").at_least(1.0, 2.0)));
        }
        let Some(own) = self.own(Codec::Aggressive) else { return figures };
        let rate = own.rows_per_s.map(|rate| self.figure("load", rate, "rows/s"));
        figures.extend(rate.map(|figure| figure.at_least(150_000.0, 400_000.0)));
        let slowest = own.min_interval_ratio;
        let slowest = slowest.map(|ratio| self.figure("slowest / median second", ratio, "x"));
        figures.extend(slowest.map(|figure| figure.at_least(0.3, 0.6)));
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Met;

    fn measured(engine: &str, codec: Codec, disk_bytes: u64, point_ops_s: f64) -> Measurement {
        Measurement {
            engine: engine.to_owned(),
            workload: "compression".to_owned(),
            codec: Some(codec.to_string()),
            rows: Some(10),
            raw_bytes: Some(1_000),
            disk_bytes: Some(disk_bytes),
            point_ops_s: Some(point_ops_s),
            rows_per_s: Some(200_000.0),
            min_interval_ratio: Some(0.7),
            ..Measurement::default()
        }
    }

    #[test]
    fn figures_name_both_sides_and_which_limit_is_met() {
        let all = [
            measured("frondb", Codec::Standard, 95, 1.0),
            measured("frondb", Codec::Aggressive, 100, 300.0),
            measured("rocksdb", Codec::Default, 100, 1.0),
            measured("rocksdb", Codec::ZstdDictionary(19), 90, 400.0),
            measured("rocksdb", Codec::Aggressive, 80, 100.0),
            measured("tokudb", Codec::TokuLzma, 80, 0.0),
        ];
        let figures = limits(DataKind::Logs, &all);
        let found: Vec<_> = figures.iter().map(|f| (f.name.as_str(), f.value, f.met)).collect();
        let expected = [
            ("logs: standard, size to rocksdb default", 0.95, Some(Met::Floor)),
            ("logs: aggressive, size to tokudb toku-lzma", 1.25, Some(Met::Neither)),
            ("logs: aggressive, points to rocksdb zstd-dictionary:19", 0.75, Some(Met::Neither)),
            ("logs: aggressive, points to rocksdb aggressive", 3.0, Some(Met::Goal)),
            ("logs: aggressive, load", 200_000.0, Some(Met::Floor)),
            ("logs: aggressive, slowest / median second", 0.7, Some(Met::Goal)),
            ("logs: aggressive, raw / disk", 10.0, Some(Met::Floor)),
        ];
        assert_eq!(found, expected);
        assert_eq!(limits(DataKind::Json, &all).len(), 5);
        assert!(limits(DataKind::Json, &[]).is_empty());
    }

    #[test]
    fn other_rows_and_errors_are_not_compared() {
        let own = measured("frondb", Codec::Aggressive, 100, 300.0);
        let fewer = Measurement { rows: Some(9), ..measured("tokudb", Codec::TokuLzma, 80, 0.0) };
        let failed = Measurement {
            error: Some("killed".to_owned()),
            ..measured("rocksdb", Codec::Aggressive, 80, 100.0)
        };
        assert_eq!(limits(DataKind::Json, &[own, fewer, failed]).len(), 2);
    }
}
