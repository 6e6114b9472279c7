//! Devices that fail: a failed sync poisons the space, a failed growth or punch changes nothing,
//! and exactly the written files are synced.

use frondb_core::ErrorKind;
use frondb_core::mem::Buf;
use frondb_core::sync::Arc;
use frondb_core::wear::WriteCause;
use frondb_device::SharedDevice;
use frondb_space::{Class, Extent, Reclaim, Space, SpaceOptions};
use frondb_testkit::MemoryDevice;
use frondb_testkit::faults::{Faults, Script};
use frondb_testkit::trace::{Detail, Trace};

fn script(text: &str) -> Script {
    text.parse().unwrap()
}

fn open(device: SharedDevice) -> Arc<Space> {
    let options = SpaceOptions { reserve_bytes: 0, slack_bytes: 0, ..SpaceOptions::default() };
    Space::open(device, options, []).unwrap()
}

fn page() -> Buf {
    Buf::zeroed(4096)
}

#[test]
fn a_failed_sync_poisons_writing_for_ever_and_reading_goes_on() {
    let device = Arc::new(Faults::over(Arc::new(MemoryDevice::new()), &script("")));
    let space = open(device.clone());
    let extent = space.acquire(1, Class::Base).unwrap();
    space.write(WriteCause::Flush, extent, 0, &page()).unwrap();
    device.set_script(&script("fail sync data nth=1"));
    assert_eq!(space.sync().unwrap_err().kind(), ErrorKind::Poisoned);
    device.set_script(&script(""));
    // The device works again, but what it lost is unknown.
    assert_eq!(space.sync().unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(
        space.write(WriteCause::Flush, extent, 0, &page()).unwrap_err().kind(),
        ErrorKind::Poisoned
    );
    assert_eq!(space.acquire(1, Class::Base).unwrap_err().kind(), ErrorKind::Poisoned);
    space.read(extent, 0, &mut page()).unwrap();
}

#[test]
fn a_failed_growth_changes_nothing() {
    let device = Arc::new(Faults::over(Arc::new(MemoryDevice::new()), &script("")));
    let space = open(device.clone());
    space.acquire(200, Class::Base).unwrap();
    let (free, stats) = (space.free_extents(), space.stats());
    for (fault, kind) in [
        ("fail allocate data nth=1", ErrorKind::Io),
        ("fail allocate data nth=1 count=all error=ENOSPC", ErrorKind::NoSpace),
    ] {
        device.set_script(&script(fault));
        // On a full disk `acquire` returns the remaining 56 pages, which are released here.
        let got = space.acquire(300, Class::Merge).map(|extent| space.release(extent));
        assert!(got.err().is_none_or(|error| error.kind() == kind), "{fault}");
        assert_eq!((space.free_extents(), space.stats()), (free.clone(), stats), "{fault}");
    }
    device.set_script(&script(""));
    assert_eq!(space.acquire(300, Class::Merge).unwrap(), extent(200, 300));
}

#[test]
fn a_failed_punch_leaves_the_space_free() {
    let device = Arc::new(Faults::over(Arc::new(MemoryDevice::new()), &script("")));
    let space = open(device.clone());
    let low = space.acquire(100, Class::Base).unwrap();
    let high = space.acquire(156, Class::Base).unwrap();
    space.release(low);
    device.set_script(&script("fail punch data; fail set_len data"));
    assert_eq!(space.reclaim_step(Reclaim::Idle).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(space.free_extents(), [low]);
    assert!(space.reclaim_step(Reclaim::Idle).unwrap());
    assert_eq!(space.stats().allocated_bytes, high.bytes());
    space.release(high);
    assert_eq!(space.reclaim_step(Reclaim::Idle).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(space.free_extents(), [extent(0, 256)]);
    while space.reclaim_step(Reclaim::Idle).unwrap() {}
    assert_eq!(space.stats().file_bytes, 0);
}

fn extent(page: u32, pages: u32) -> Extent {
    Extent { file: 0, page, pages }
}

/// Durability depends on the order of these calls: first the name, then a sync of the files that
/// were written and of no others; without a write there is no sync.
#[test]
fn device_calls_are_in_the_order_of_durability() {
    let device = Arc::new(Trace::over(Arc::new(MemoryDevice::new()), Detail::Mutations));
    let options = SpaceOptions { file_bytes_max: 1 << 20, reserve_bytes: 0, ..Default::default() };
    let space = Space::open(device.clone(), options, []).unwrap();
    space.sync().unwrap();
    let first = space.acquire(200, Class::Base).unwrap();
    let second = space.acquire(200, Class::Base).unwrap();
    space.write(WriteCause::Flush, second, 4096, &page()).unwrap();
    space.sync().unwrap();
    space.sync().unwrap();
    space.write_vectored(WriteCause::Flush, first, 0, &[&page(), &page()]).unwrap();
    space.release(second);
    while space.reclaim_step(Reclaim::Idle).unwrap() {}
    space.sync().unwrap();
    let calls = device.take();
    assert_eq!(
        calls.lines().collect::<Vec<_>>(),
        [
            "open data-0000.fdb create direct",
            "sync_dir /",
            "allocate data-0000.fdb 0+1048576",
            "open data-0001.fdb create direct",
            "sync_dir /",
            "allocate data-0001.fdb 0+1048576",
            "write data-0001.fdb 4096+4096",
            "sync data-0001.fdb",
            "write data-0000.fdb 0+8192",
            "set_len data-0001.fdb 0",
            "set_len data-0000.fdb 819200",
            "sync data-0000.fdb",
            "sync data-0001.fdb",
        ],
        "{calls}"
    );
}
