//! Time series: values of many sensors by time, averages over a period, and old data that expires
//! with one message for each sensor.
//!
//! `cargo run --release -p frondb --example time_series`
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a program")]

use frondb::tuple::{Tuple, decode_as};
use frondb::{Batch, Db, Durability, Error, Options, Result, Tree, TreeOptions};

const SENSORS: u32 = 20;
const MINUTES: u64 = 5_000;

/// The tree `values`: (sensor, minute) -> value. One sensor's values lie together.
struct Series {
    db: Db,
    values: Tree,
}

fn key(sensor: u32, minute: u64) -> Vec<u8> {
    Tuple::new().with(sensor).with(minute).into_bytes()
}

impl Series {
    /// Adds the values of all sensors at one minute to a batch.
    fn add(&self, batch: &mut Batch, minute: u64, value: impl Fn(u32) -> f64) {
        for sensor in 0..SENSORS {
            batch.put(&self.values, key(sensor, minute), value(sensor).to_le_bytes());
        }
    }

    /// Returns the values of a sensor from `begin` to before `end`, with their minutes.
    fn values(&self, sensor: u32, begin: u64, end: u64) -> Result<Vec<(u64, f64)>> {
        let entries = self.values.range(key(sensor, begin)..key(sensor, end))?;
        let values = entries.map(|entry| {
            let (key, value) = entry?;
            let (_sensor, minute): (u32, u64) = decode_as(&key)?;
            let value = value.try_into().map_or(f64::NAN, f64::from_le_bytes);
            Ok::<_, Error>((minute, value))
        });
        values.collect()
    }

    fn average(&self, sensor: u32, begin: u64, end: u64) -> Result<Option<f64>> {
        let values = self.values(sensor, begin, end)?;
        let sum: f64 = values.iter().map(|(_, value)| value).sum();
        Ok((!values.is_empty()).then(|| sum / values.len() as f64))
    }

    /// Deletes everything before `minute`: one message for each sensor, however many values it
    /// has. Blocks that lie completely in a deleted range are freed without being read.
    fn expire(&self, minute: u64) -> Result<()> {
        let mut batch = Batch::new();
        for sensor in 0..SENSORS {
            batch.delete_range(&self.values, key(sensor, 0), Some(&key(sensor, minute)));
        }
        self.db.write(&batch, Durability::Sync)
    }
}

fn main() -> Result<()> {
    let path = std::env::temp_dir().join(format!("frondb-time-series-{}", std::process::id()));
    let db = Db::open(&path, Options::default().create_new(true))?;
    let values = db.create_tree("values", TreeOptions::new())?;
    let series = Series { db, values };

    let mut batch = Batch::new();
    for minute in 0..MINUTES {
        series.add(&mut batch, minute, |sensor| f64::from(sensor) + (minute % 10) as f64);
        if minute % 100 == 99 {
            // A power failure may lose what was not synced, but no part of a batch.
            series.db.write(&batch, Durability::NoSync)?;
            batch.clear();
        }
    }
    series.db.sync()?;

    let average = series.average(7, 1_000, 2_000)?;
    assert_eq!(average, Some(7.0 + 4.5));
    assert_eq!(series.values(7, 1_234, 1_235)?, [(1_234, 7.0 + 4.0)]);

    series.expire(4_000)?;
    assert_eq!(series.average(7, 1_000, 2_000)?, None);
    let left = series.values.range(..)?.count() as u64;
    assert_eq!(left, u64::from(SENSORS) * (MINUTES - 4_000));
    println!("average {average:?}; {left} values left");
    series.db.close()?;
    std::fs::remove_dir_all(&path).expect("the folder can be removed");
    Ok(())
}

/// `make test` runs the program.
#[test]
fn runs() -> Result<()> {
    main()
}
