//! On real files: the kernel and the space report the same disk space.

use frondb_core::mem::Buf;
use frondb_core::sync::Arc;
use frondb_core::wear::WriteCause;
use frondb_device::{Device, OpenOptions, PosixDevice};
use frondb_space::{Class, Extent, Reclaim, Space, SpaceOptions};

fn files_take(device: &PosixDevice) -> (u64, u64) {
    let (mut allocated, mut length) = (0, 0);
    for name in device.list("").unwrap() {
        let file = device.open(&name, OpenOptions::READ).unwrap();
        allocated += file.allocated_bytes().unwrap();
        length += file.len().unwrap();
    }
    (allocated, length)
}

#[test]
fn released_space_is_returned_to_the_file_system() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let dir = dir.join(format!("space-posix-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let device = Arc::new(PosixDevice::open(&dir).unwrap());
    let options = SpaceOptions { reserve_bytes: 1 << 20, ..SpaceOptions::default() };
    let space = Space::open(device.clone(), options, []).unwrap();
    let mut bytes = Buf::zeroed(1 << 20);
    bytes.fill(7);
    let mut live: Vec<Extent> = Vec::new();
    for _ in 0..24 {
        let extent = space.acquire(256, Class::Merge).unwrap();
        space.write(WriteCause::Flush, extent, 0, &bytes[..extent.bytes() as usize]).unwrap();
        live.push(extent);
    }
    space.sync().unwrap();
    // Release every other extent and the last eight, which leaves holes and a free tail.
    let kept: Vec<Extent> = live.iter().take(16).step_by(2).copied().collect();
    live.iter().filter(|extent| !kept.contains(extent)).for_each(|&extent| space.release(extent));
    while space.reclaim_step(Reclaim::Idle).unwrap() {}
    let (allocated, length) = files_take(&device);
    let stats = space.stats();
    assert_eq!(stats.used_bytes, kept.iter().map(|extent| extent.bytes()).sum::<u64>());
    assert_eq!(length, stats.file_bytes);
    assert!(length <= 16 << 20, "the file was not truncated: {length}");
    if allocated < length {
        // This file system supports holes. It may use a few blocks for its own metadata.
        assert!(allocated <= stats.allocated_bytes + (64 << 10), "{allocated}, {stats:?}");
        assert_eq!(stats.allocated_bytes, stats.used_bytes + options.reserve_bytes);
    }
    drop(space);
    let space = Space::open(device, options, kept.iter().copied()).unwrap();
    for extent in kept {
        let mut found = Buf::zeroed(extent.bytes() as usize);
        space.read(extent, 0, &mut found).unwrap();
        assert!(found.iter().all(|&byte| byte == 7));
    }
    std::fs::remove_dir_all(&dir).unwrap();
}
