//! The `metrics` table: a primary index (ts, device_id, metric_id) and two secondary ones,
//! (metric_id, ts) and (device_id, ts), filled in batches and queried by prefix and range.
//!
//! `cargo run --release -p frondb --example metrics`
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a program")]

use frondb::tuple::{Tuple, prefix_end};
use frondb::{Batch, CursorOptions, Db, Durability, Options, Result, Tree, TreeOptions};

struct Metrics {
    db: Db,
    primary: Tree,
    by_metric: Tree,
    by_device: Tree,
}

impl Metrics {
    fn create(db: Db) -> Result<Self> {
        let primary = db.create_tree("metrics", TreeOptions::new())?;
        let by_metric = db.create_tree("metrics.metric_ts", TreeOptions::secondary())?;
        let by_device = db.create_tree("metrics.device_ts", TreeOptions::secondary())?;
        Ok(Self { db, primary, by_metric, by_device })
    }

    fn insert(&self, batch: &mut Batch, ts: u64, device: u32, metric: u32, value: f64) {
        let key = Tuple::new().with(ts).with(device).with(metric).into_bytes();
        batch.put(&self.primary, &key, &value.to_le_bytes());
        // Index entries are blind writes: making them reads nothing. The primary key at their end
        // makes them unique.
        let by_metric = Tuple::new().with(metric).with(ts).with(device).into_bytes();
        batch.put(&self.by_metric, &by_metric, &value.to_le_bytes());
        let by_device = Tuple::new().with(device).with(ts).with(metric).into_bytes();
        batch.put(&self.by_device, &by_device, &value.to_le_bytes());
    }

    /// Returns the average of a metric over `[from, to)`.
    fn average(&self, metric: u32, from: u64, to: u64) -> Result<Option<f64>> {
        let lo = Tuple::new().with(metric).with(from).into_bytes();
        let hi = Tuple::new().with(metric).with(to).into_bytes();
        let range = CursorOptions::new().range(lo.as_slice()..hi.as_slice());
        let mut cursor = self.by_metric.cursor_with(range)?;
        let (mut sum, mut count) = (0.0, 0u32);
        while cursor.next()? {
            let value: [u8; 8] = cursor.value()?.try_into().unwrap_or_default();
            sum += f64::from_le_bytes(value);
            count += 1;
        }
        Ok((count > 0).then(|| sum / f64::from(count)))
    }

    /// Returns the newest value of a device: the value of its last entry.
    fn newest(&self, device: u32) -> Result<Option<f64>> {
        let prefix = Tuple::new().with(device).into_bytes();
        let mut cursor = self.by_device.cursor_with(CursorOptions::new().prefix(&prefix))?;
        if !cursor.last()? {
            return Ok(None);
        }
        let value: [u8; 8] = cursor.value()?.try_into().unwrap_or_default();
        Ok(Some(f64::from_le_bytes(value)))
    }

    /// Deletes everything before `ts` in the primary index with one message, however many rows it
    /// is.
    fn expire(&self, ts: u64) -> Result<()> {
        let hi = Tuple::new().with(ts).into_bytes();
        let mut batch = Batch::new();
        batch.delete_range(&self.primary, b"", Some(&hi));
        self.db.write(&batch, Durability::Sync)
    }
}

fn main() -> Result<()> {
    let dir = std::env::temp_dir().join(format!("frondb-metrics-{}", std::process::id()));
    let db = Db::open(&dir, Options::default().create_new(true))?;
    let metrics = Metrics::create(db.clone())?;
    let mut batch = Batch::new();
    for ts in 0..10_000u64 {
        for device in 0..10u32 {
            let value = f64::from(device) + (ts as f64 / 100.0).sin();
            metrics.insert(&mut batch, ts, device, device % 3, value);
        }
        if batch.len() >= 3_000 {
            db.write(&batch, Durability::NoSync)?;
            batch.clear();
        }
    }
    db.write(&batch, Durability::Sync)?;
    let (average, newest) = (metrics.average(1, 2_000, 3_000)?, metrics.newest(7)?);
    println!("average of metric 1: {average:?}");
    println!("newest of device 7:  {newest:?}");
    // Metric 1 is of the devices 1, 4 and 7; a sine is between -1 and 1.
    assert!(average.is_some_and(|average| (3.0..5.0).contains(&average)));
    assert_eq!(newest, Some(7.0 + 99.99_f64.sin()));
    metrics.expire(9_000)?;
    assert_eq!(metrics.primary.range(..)?.count(), 10_000);
    let all = metrics.primary.estimate(b"", prefix_end(b"").as_deref())?;
    println!("rows left, about:    {}", all.entries);
    db.close()?;
    std::fs::remove_dir_all(&dir).expect("the folder can be removed");
    Ok(())
}

/// `make test` runs the program.
#[test]
fn runs() -> Result<()> {
    main()
}
