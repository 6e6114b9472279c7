//! Reads with one thread for a fixed time. Checks an answer only where the check takes no
//! measurable time.

use std::time::{Duration, Instant};

use frondb_core::prng::Prng;

use super::{Bench, ReadSeconds};
use crate::driver::Progress;
use crate::engine::{Digest, Reader};
use crate::error::{Error, Result};
use crate::measure::Histogram;
use crate::report::Measurement;
use crate::rows::{PRIMARY, SECONDARY_CUSTOMER, SECONDARY_REGISTER, probes};

/// The result of reading for a fixed time.
pub struct Timed {
    /// Operations a second.
    pub per_s: f64,
    /// Latencies of the operations.
    pub latency: Histogram,
}

impl Timed {
    /// Returns the operations a second; none if nothing was measured.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        (self.per_s > 0.0).then_some(self.per_s)
    }

    /// Returns the 99th percentile of the latencies, milliseconds.
    #[must_use]
    pub fn p99_ms(&self) -> Option<f64> {
        self.latency.quantile_ms(0.99)
    }
}

/// Repeats `operation` for `seconds`.
pub fn timed(seconds: f64, mut operation: impl FnMut() -> Result<()>) -> Result<Timed> {
    let mut latency = Histogram::default();
    let length = Duration::from_secs_f64(seconds.max(0.0));
    let (start, mut operations) = (Instant::now(), 0_u64);
    let mut now = start;
    while now - start < length {
        operation()?;
        let after = Instant::now();
        latency.record(after - now);
        (now, operations) = (after, operations + 1);
    }
    let elapsed = (now - start).as_secs_f64();
    Ok(Timed { per_s: if elapsed > 0.0 { operations as f64 / elapsed } else { 0.0 }, latency })
}

/// Reads a random row of the primary tree by its key. A missing row is an error, because all `rows`
/// rows were acknowledged: an engine that loses rows is not fast.
pub(super) fn point(reader: &mut dyn Reader, prng: &mut Prng, rows: u64) -> Result<()> {
    let key = probes::primary(prng, rows);
    if reader.get(PRIMARY, &key, &mut Digest::default())? {
        return Ok(());
    }
    Err(Error::Wrong(format!("row {} was acknowledged and is not found", u64::from_be_bytes(key))))
}

/// Scans 10 entries of the first secondary tree from a random (price, customer).
pub(super) fn scan10(reader: &mut dyn Reader, prng: &mut Prng) -> Result<()> {
    let from = probes::price_customer(prng);
    reader.scan(SECONDARY_CUSTOMER, &from, 10, &mut Digest::default()).map(drop)
}

/// Scans 1,000 entries of the second secondary tree from a random (cash register, price).
pub(super) fn scan1000(reader: &mut dyn Reader, prng: &mut Prng) -> Result<()> {
    let from = probes::register_price(prng);
    reader.scan(SECONDARY_REGISTER, &from, 1_000, &mut Digest::default()).map(drop)
}

/// The reads of iiBench's table, through an engine or through SQL. Each call is one operation at a
/// random key.
pub trait TableReads {
    /// Reads one of `rows` rows by its primary key.
    fn point(&mut self, prng: &mut Prng, rows: u64) -> Result<()>;

    /// Reads ten entries of the first secondary index from a random (price, customer).
    fn scan10(&mut self, prng: &mut Prng) -> Result<()>;

    /// Reads 1,000 entries of the second secondary index from a random (cash register, price).
    fn scan1000(&mut self, prng: &mut Prng) -> Result<()>;
}

impl TableReads for Box<dyn Reader + '_> {
    fn point(&mut self, prng: &mut Prng, rows: u64) -> Result<()> {
        point(self.as_mut(), prng, rows)
    }

    fn scan10(&mut self, prng: &mut Prng) -> Result<()> {
        scan10(self.as_mut(), prng)
    }

    fn scan1000(&mut self, prng: &mut Prng) -> Result<()> {
        scan1000(self.as_mut(), prng)
    }
}

/// Measures the reads of iiBench except the full scan, after a load of `rows` rows.
pub fn table_reads(
    reads: &mut dyn TableReads,
    seed: u64,
    rows: u64,
    seconds: ReadSeconds,
    progress: &Progress,
    m: &mut Measurement,
) -> Result<()> {
    let mut prng = Prng::new(seed ^ 0x5EED_0F4E_AD5A_0001);
    progress.say("reading: warm-up");
    timed(seconds.warmup, || reads.point(&mut prng, rows))?;
    progress.say("reading: points by primary key");
    let by_key = timed(seconds.points, || reads.point(&mut prng, rows))?;
    progress.say("reading: 10-entry scans of a secondary index");
    let by_ten = timed(seconds.scan10, || reads.scan10(&mut prng))?;
    progress.say("reading: 1,000-entry scans of a secondary index");
    let by_thousand = timed(seconds.scan1000, || reads.scan1000(&mut prng))?;
    (m.point_ops_s, m.point_ms_p99) = (by_key.rate(), by_key.p99_ms());
    (m.scan10_ops_s, m.scan10_ms_p99) = (by_ten.rate(), by_ten.p99_ms());
    (m.scan1000_ops_s, m.scan1000_ms_p99) = (by_thousand.rate(), by_thousand.p99_ms());
    Ok(())
}

impl Bench<'_> {
    /// Measures all reads of iiBench after a load of `rows` rows.
    pub(super) fn table_reads(&mut self, rows: u64) -> Result<()> {
        let (spec, mut reader) = (self.spec, self.engine.reader()?);
        let m = &mut self.measurement;
        table_reads(&mut reader, spec.seed, rows, spec.reads, &self.progress, m)?;
        drop(reader);
        self.full_scan(SECONDARY_CUSTOMER, rows)
    }

    /// Scans a whole tree once and checks that it holds `expected` entries.
    pub(super) fn full_scan(&mut self, tree: usize, expected: u64) -> Result<()> {
        self.progress.say("reading: a full scan");
        let mut reader = self.engine.reader()?;
        let mut digest = Digest::default();
        let start = Instant::now();
        let items = reader.scan(tree, &[], u64::MAX, &mut digest)?;
        let elapsed = start.elapsed().as_secs_f64();
        if items != expected {
            return Err(Error::Wrong(format!(
                "a full scan found {items} entries of tree {tree} and not {expected}"
            )));
        }
        self.measurement.fullscan_items_s = Some(items as f64 / elapsed.max(1e-9));
        self.measurement.fullscan_digest = Some(format!("{:016x}", digest.value()));
        Ok(())
    }
}
