//! Rule 7: extents that a backup reads keep their bytes although they are released, and give way to
//! writers on a full disk.

use frondb_core::ErrorKind;
use frondb_core::mem::Buf;
use frondb_core::sync::Arc;
use frondb_core::wear::WriteCause;
use frondb_space::{Class, Extent, Space, SpaceOptions};
use frondb_testkit::MemoryDevice;

fn open(device: &MemoryDevice) -> Arc<Space> {
    let options = SpaceOptions { reserve_bytes: 0, slack_bytes: 0, ..SpaceOptions::default() };
    Space::open(Arc::new(device.clone()), options, []).unwrap()
}

/// An extent of a page full of this byte.
fn page(space: &Space, byte: u8) -> Extent {
    let extent = space.acquire(1, Class::Base).unwrap();
    let mut buf = Buf::zeroed(4096);
    buf.fill(byte);
    space.write(WriteCause::Flush, extent, 0, &buf).unwrap();
    extent
}

fn read(space: &Space, extent: Extent) -> u8 {
    let mut buf = Buf::zeroed(4096);
    space.read(extent, 0, &mut buf).unwrap();
    buf[0]
}

#[test]
fn released_extents_wait_for_the_backup() {
    let space = open(&MemoryDevice::new());
    let extents: Vec<_> = (0..4).map(|byte| page(&space, byte)).collect();
    let used = space.stats().used_bytes;
    let retention = space.retain().unwrap();
    extents[..3].iter().for_each(|extent| space.release(*extent));
    let late = page(&space, 9);
    space.release(late);
    assert_eq!(space.stats().used_bytes, used + 4096, "everything waits");
    assert_eq!(retention.kept_bytes(), 4 * 4096);
    // The backup needs the first two and the last.
    retention.only([extents[0], extents[1], extents[3]]);
    assert_eq!(retention.kept_bytes(), 2 * 4096);
    for byte in 20..24 {
        let new = page(&space, byte);
        assert!(!extents[..2].contains(&new));
    }
    assert_eq!((read(&space, extents[0]), read(&space, extents[1])), (0, 1));
    let used = space.stats().used_bytes;
    retention.done(extents[0]);
    assert_eq!(space.stats().used_bytes, used - 4096);
    // An extent that is released after the backup has read it is free at once.
    retention.done(extents[3]);
    space.release(extents[3]);
    assert_eq!(space.stats().used_bytes, used - 2 * 4096);
    assert!(!retention.is_lost());
    drop(retention);
    assert_eq!(space.stats().used_bytes, used - 3 * 4096);
}

#[test]
fn one_backup_keeps_extents_at_a_time() {
    let space = open(&MemoryDevice::new());
    let retention = space.retain().unwrap();
    assert_eq!(space.retain().unwrap_err().kind(), ErrorKind::Busy);
    drop(retention);
    space.retain().unwrap();
}

#[test]
fn a_full_disk_takes_what_is_kept() {
    let device = MemoryDevice::new();
    let space = open(&device);
    let old: Vec<_> = (0..64).map(|byte| page(&space, byte)).collect();
    device.set_capacity(device.used_bytes());
    // Use up the rest of the allocated space.
    while space.acquire(1, Class::Base).is_ok() {}
    let retention = space.retain().unwrap();
    // Nothing is kept that could be given up, so the writer fails.
    assert_eq!(space.acquire(1, Class::Base).unwrap_err().kind(), ErrorKind::NoSpace);
    assert!(!retention.is_lost());
    old.iter().for_each(|extent| space.release(*extent));
    space.acquire(8, Class::Base).unwrap();
    assert!(retention.is_lost());
    // The lost retention does not change the retention of a later backup.
    let second = space.retain().unwrap();
    let kept = page(&space, 7);
    space.release(kept);
    retention.done(kept);
    assert_eq!(second.kept_bytes(), 4096);
    drop(retention);
    assert!(!second.is_lost());
    assert_eq!(read(&space, kept), 7);
}
