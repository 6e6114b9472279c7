//! Upserts without reads: update messages add to counters, and are combined on their way down the
//! tree.
//!
//! `cargo run --release -p frondb --example counters`
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a program")]

use frondb::{Batch, Db, Durability, Options, Result, TreeOptions, UpdateFn};

/// Adds a signed 64-bit operand to a counter; an absent one counts as 0.
struct Add;

fn number(bytes: &[u8]) -> Option<i64> {
    Some(i64::from_le_bytes(bytes.try_into().ok()?))
}

impl UpdateFn for Add {
    fn name(&self) -> &str {
        "add-i64"
    }

    fn apply(&self, _: &[u8], existing: Option<&[u8]>, operand: &[u8]) -> Result<Vec<u8>, String> {
        let old = existing.map_or(Some(0), number).ok_or("the value is no counter")?;
        let more = number(operand).ok_or("the operand is no number")?;
        Ok(old.wrapping_add(more).to_le_bytes().to_vec())
    }

    fn combine(&self, _: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some(number(older)?.wrapping_add(number(newer)?).to_le_bytes().to_vec())
    }
}

fn main() -> Result<()> {
    let dir = std::env::temp_dir().join(format!("frondb-counters-{}", std::process::id()));
    let db = Db::open(&dir, Options::default().create_new(true).update_fn(Add))?;
    let hits = db.create_tree("hits", TreeOptions::new().update_fn("add-i64", 1))?;
    let mut batch = Batch::new();
    for i in 0..100_000u64 {
        let page = format!("/page/{}", i * i % 1_000);
        batch.update(&hits, page.as_bytes(), &1i64.to_le_bytes());
    }
    db.write(&batch, Durability::Sync)?;
    let count = hits.get(b"/page/0")?.as_deref().and_then(number);
    let pages = (0..100_000u64).filter(|i| i * i % 1_000 == 0).count();
    assert_eq!(count, i64::try_from(pages).ok());
    println!("hits of /page/0: {count:?}");
    db.close()?;
    std::fs::remove_dir_all(&dir).expect("the folder can be removed");
    Ok(())
}

/// `make test` runs the program.
#[test]
fn runs() -> Result<()> {
    main()
}
