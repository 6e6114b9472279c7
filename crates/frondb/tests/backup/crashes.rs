//! Power failures at every write and sync while a database is backed up to the same disk. The
//! database keeps every commit. A backup that was complete stays complete, and an incomplete backup
//! is refused as such. After recovery, the database can continue the older backup correctly.

use frondb::testing::TestDb;
use frondb::{BackupOptions, Batch, Db, Durability, ErrorKind, Result, TreeOptions};
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_device::{Device, SharedDevice};
use frondb_testkit::MemoryDevice;
use frondb_testkit::{Crash, CrashTest, for_each_crash_point};

use crate::support::{self, Rows};
use crate::{check_restored, restore};

/// The state of the history when the power fails.
#[derive(Default)]
struct Known {
    /// The rows of acknowledged commits. `next` has the rows that result if the commit in progress
    /// succeeds.
    rows: Rows,
    next: Option<Rows>,
    /// For each backup: its name, the rows at its moment, and whether it was complete.
    backups: Vec<(&'static str, Rows, bool)>,
}

/// Creates a directory durably.
fn dir(device: &MemoryDevice, name: &str) -> Result<SharedDevice> {
    let dir = device.subdevice(name)?;
    device.sync_dir("")?;
    Ok(dir)
}

/// Commits puts of 20 random rows, a few of them with values of 40,000 bytes.
fn change(db: &Db, known: &mut Known, prng: &mut Prng) -> Result<()> {
    let tree = match db.open_tree("t") {
        Ok(tree) => tree,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            db.create_tree("t", TreeOptions::new())?
        }
        Err(error) => return Err(error),
    };
    let (mut batch, mut rows) = (Batch::new(), known.rows.clone());
    for _ in 0..20 {
        let key = (prng.below(400) as u32).to_be_bytes();
        let length = if prng.chance(1, 40) { 40_000 } else { 50 + prng.below(200) as usize };
        let value = vec![prng.below(256) as u8; length];
        batch.put(&tree, &key, &value);
        rows.insert(key.to_vec(), value);
    }
    known.next = Some(rows);
    db.write(&batch, Durability::Sync)?;
    known.rows = known.next.take().unwrap_or_default();
    Ok(())
}

/// Makes a backup while rows change and runs are merged.
fn backup(
    db: &Db,
    device: &MemoryDevice,
    name: &'static str,
    since: Option<&str>,
    known: &mut Known,
    prng: &mut Prng,
) -> Result<()> {
    let (to, since) = (dir(device, name)?, since.map(|since| dir(device, since)).transpose()?);
    known.backups.push((name, known.rows.clone(), false));
    let mut result = Ok(());
    db.backup_to(&to, since.as_ref(), &BackupOptions::new(), &mut |_, _| {
        result = change(db, known, prng);
        if prng.chance(1, 3) {
            db.run_one(true);
        }
        result.is_ok()
    })?;
    known.backups.last_mut().unwrap().2 = true;
    result
}

fn history(device: &MemoryDevice, known: &mut Known) -> Result<()> {
    let mut prng = Prng::new(1);
    let options = frondb::Options::small();
    let db = TestDb::on(dir(device, "db")?).options(options).open()?;
    for _ in 0..6 {
        change(&db, known, &mut prng)?;
    }
    db.flush()?;
    while db.run_one(true) {}
    backup(&db, device, "full", None, known, &mut prng)?;
    db.flush()?;
    change(&db, known, &mut prng)?;
    backup(&db, device, "more", Some("full"), known, &mut prng)?;
    change(&db, known, &mut prng)?;
    db.close()
}

fn check(crash: &Crash, known: &Known) {
    let at = |name: &str| dir(&crash.device, name).unwrap();
    let in_db = |db: &Db| support::contents(db).remove("t").unwrap_or_default();
    // The power may have failed before the database existed.
    let db = support::open_small(at("db"));
    let rows = in_db(&db);
    assert!(
        rows == known.rows || Some(&rows) == known.next.as_ref(),
        "the database has {} rows, {} were committed, {:?} perhaps",
        rows.len(),
        known.rows.len(),
        known.next.as_ref().map(Rows::len)
    );

    let mut chain = Vec::new();
    for (name, model, is_complete) in &known.backups {
        chain.push(at(name));
        match restore(&chain) {
            Ok(copy) => assert!(in_db(&copy) == *model, "the rows of backup {name}"),
            Err(error) => {
                assert!(!is_complete, "backup {name} was complete: {error}");
                assert_eq!(error.kind(), ErrorKind::NotFound, "{name}: {error}");
                chain.pop();
                break;
            }
        }
    }
    if chain.is_empty() {
        return;
    }
    // New runs may get the ids of runs that were lost in the power failure.
    let mut after = Known { rows, ..Known::default() };
    let mut prng = Prng::new(crash.point);
    for _ in 0..4 {
        change(&db, &mut after, &mut prng).unwrap();
    }
    db.flush().unwrap();
    while db.run_one(true) {}
    let to: SharedDevice = Arc::new(MemoryDevice::new());
    let options = BackupOptions::new();
    // A backup makes its name durable in the database before it writes its list. So each backup
    // that can be restored can also be continued.
    db.backup_to(&to, chain.last(), &options, &mut |_, _| true).unwrap();
    chain.push(to);
    let model = [("t".to_owned(), after.rows)].into();
    check_restored(&chain, &model, "continued after the power failure");
}

#[test]
fn a_power_failure_during_a_backup_loses_nothing_and_leaves_no_wrong_backup() {
    let mut known = Known::default();
    history(&MemoryDevice::new(), &mut known).unwrap();
    assert!(known.backups.len() == 2 && known.backups.iter().all(|(.., is_complete)| *is_complete));
    let report = for_each_crash_point(
        CrashTest::new(120, 1),
        |device| {
            let mut known = Known::default();
            // The error comes from the device.
            let _ = history(&device, &mut known);
            known
        },
        |crash, known| check(&crash, known),
    );
    println!("{report}");
    assert!(report.points > 150, "{report}");
}
