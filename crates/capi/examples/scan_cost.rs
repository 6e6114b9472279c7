//! Measures the cost of a row of a scan in Rust, for comparison with `scan_cost.c`. Scans a
//! database of a million rows, which it creates if the directory has none.
//!
//! `cargo run --release -p frondb-capi --example scan_cost DIRECTORY`

#![allow(clippy::print_stdout, reason = "a program that measures")]

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use frondb::{Batch, Db, Durability, Options, TreeOptions};

const ROWS: u32 = 1_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args().nth(1).ok_or("usage: scan_cost DIRECTORY")?;
    let db = Db::open(dir, Options::new().memory_bytes(512 << 20))?;
    let tree = match db.open_tree("rows") {
        Ok(tree) => tree,
        Err(_) => {
            let tree = db.create_tree("rows", TreeOptions::new())?;
            for first in (0..ROWS).step_by(1000) {
                let mut batch = Batch::new();
                for row in first..first + 1000 {
                    batch.put(&tree, &row.to_be_bytes(), format!("value of row {row}").as_bytes());
                }
                db.write(&batch, Durability::NoSync)?;
            }
            db.checkpoint()?;
            db.wait_settled()?;
            tree
        }
    };
    let mut best = f64::INFINITY;
    for _ in 0..7 {
        let start = Instant::now();
        let (mut cursor, mut rows, mut bytes) = (tree.cursor()?, 0, 0);
        while cursor.next()? {
            rows += 1;
            bytes += black_box(cursor.key()).len() + black_box(cursor.value()?).len();
        }
        assert_eq!(rows, ROWS);
        black_box(bytes);
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(ROWS));
    }
    println!("Rust, a step a row        {best:6.1} ns a row, the best of 7");
    Ok(db.close()?)
}
