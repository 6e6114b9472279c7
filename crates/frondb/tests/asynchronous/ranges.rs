//! Ranges: the same entries as `Tree::range`, also for a task that stops waiting in between.

use frondb::{AsyncRange, CursorOptions, ErrorKind, Result, Tree};
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_device::SharedDevice;
use frondb_testkit::Faults;
use frondb_testkit::faults::Script;
use futures::FutureExt;
use futures::executor::block_on;

use crate::support::{KEYS, key, open_rows, opening, rows_on_device, value};

type Entry = (Vec<u8>, Vec<u8>);

fn all(mut entries: AsyncRange) -> Result<Vec<Entry>> {
    block_on(async {
        let mut all = Vec::new();
        while let Some(entry) = entries.next().await {
            all.push(entry?);
        }
        Ok(all)
    })
}

fn expected(tree: &Tree, options: CursorOptions) -> Vec<Entry> {
    let (mut cursor, mut all) = (tree.cursor_with(options).unwrap(), Vec::new());
    while cursor.next().unwrap() {
        all.push((cursor.key().to_vec(), cursor.value().unwrap().to_vec()));
    }
    all
}

#[test]
fn entries_are_those_of_a_range_from_either_end() {
    let device = Arc::new(rows_on_device()) as SharedDevice;
    let (db, tree) = open_rows(opening(&device));
    tree.put(key(3), vec![1; 200_000]).unwrap();
    let snapshot = db.snapshot().unwrap();
    tree.delete_range(key(10), Some(&key(20))).unwrap();
    let seed = 21;
    println!("seed {seed}");
    let mut prng = Prng::new(seed);
    for _ in 0..10 {
        let (lo, hi) = (prng.below(KEYS.into()) as u32, prng.below(KEYS.into()) as u32);
        let range = CursorOptions::new().range(key(lo)..key(hi));
        let prefix = CursorOptions::new().prefix(&key(lo)[..3]);
        for options in [range, prefix, CursorOptions::new().at(&snapshot)] {
            let mut entries = expected(&tree, options.clone());
            assert!(all(tree.range_async(options.clone()).unwrap()).unwrap() == entries);
            entries.reverse();
            assert!(all(tree.range_async_rev(options).unwrap()).unwrap() == entries);
        }
    }
    db.close().unwrap();
}

/// The entries are as of the call, and a dropped `next` loses none of them.
#[test]
fn a_task_may_stop_waiting_in_between() {
    let device = Arc::new(rows_on_device()) as SharedDevice;
    let (db, tree) = open_rows(opening(&device));
    let mut entries = tree.range_async(CursorOptions::new()).unwrap();
    for n in 0..KEYS {
        let entry = match entries.next().now_or_never() {
            Some(entry) => entry,
            None => block_on(entries.next()),
        };
        assert_eq!(entry.unwrap().unwrap(), (key(n).to_vec(), value(n)));
        tree.delete(key(n)).unwrap();
        tree.put(key(n + KEYS), "new").unwrap();
    }
    assert!(block_on(entries.next()).is_none());
    assert!(block_on(entries.next()).is_none());
    db.close().unwrap();
}

#[test]
fn a_failed_read_ends_the_range() {
    let memory = Arc::new(rows_on_device()) as SharedDevice;
    let faults = Arc::new(Faults::over(memory, &Script::default()));
    let (db, tree) = open_rows(opening(&(Arc::clone(&faults) as SharedDevice)));
    faults.set_script(&"fail read data nth=2 count=all".parse().unwrap());
    let mut entries = tree.range_async(CursorOptions::new()).unwrap();
    let error = block_on(async {
        loop {
            if let Err(error) = entries.next().await.expect("the range ends without an error") {
                return error;
            }
        }
    });
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert!(block_on(entries.next()).is_none());
    faults.set_script(&Script::default());
    assert_eq!(all(tree.range_async(CursorOptions::new()).unwrap()).unwrap().len() as u32, KEYS);
    db.close().unwrap();
}
