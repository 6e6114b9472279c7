//! Power is lost at every call while a database with its own log directory is created, written and
//! reopened. Then the database opens with that directory and has all commits, or it was not created
//! and can be created again.

use frondb::testing::TestDb;
use frondb::{Db, Options, TreeOptions};
use frondb_core::Result;
use frondb_device::Device;
use frondb_testkit::MemoryDevice;
use frondb_testkit::{Crash, CrashTest, for_each_crash_point};

fn open(memory: &MemoryDevice) -> Result<Db> {
    let (device, log) = (memory.subdevice("db")?, memory.subdevice("log")?);
    memory.sync_dir("")?;
    TestDb::on(device).log_device(log).options(Options::small().memory_bytes(8 << 20)).open()
}

/// Commits two keys, each after a new open; returns the number of acknowledged commits.
fn history(memory: &MemoryDevice) -> u8 {
    let mut committed = 0;
    let mut run = || -> Result<()> {
        for key in 0..2 {
            let db = open(memory)?;
            let tree = match db.open_tree("t") {
                Ok(tree) => tree,
                Err(_) => db.create_tree("t", TreeOptions::new())?,
            };
            tree.put(&[key], b"value")?;
            committed = key + 1;
        }
        Ok(())
    };
    let _ = run();
    committed
}

#[test]
fn the_log_is_known_again_after_a_crash() {
    let check = |crash: Crash, committed: &u8| {
        let db = open(&crash.device).unwrap();
        if *committed > 0 {
            let tree = db.open_tree("t").unwrap();
            assert!((0..*committed).all(|key| tree.exists(&[key]).unwrap()));
        }
        drop(db);
        assert!(crash.device.exists("log/LOG").unwrap());
        assert!(!crash.device.exists("log/LOG.new").unwrap());
    };
    for_each_crash_point(CrashTest::new(1000, 1), |memory| history(&memory), check);
}
