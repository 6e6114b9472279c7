//! Several reads at once: each has the result of a single read, and wrappers see single reads.

use std::sync::Arc;
use std::time::Duration;

use frondb_core::ErrorKind;
use frondb_core::clock::{Clock, ManualClock, SharedClock};
use frondb_core::mem::Buf;
use frondb_core::prng::Prng;
use frondb_device::{Device, File, OpenOptions, PosixDevice, ReadRequest, SharedDevice};
use frondb_testkit::faults::Script;
use frondb_testkit::throttle::Limits;
use frondb_testkit::trace::Detail;
use frondb_testkit::{Faults, MemoryDevice, Throttle, Trace};

const PAGE: usize = 4096;
const PAGES: usize = 300;

/// The byte at an offset of the file.
fn byte(offset: usize) -> u8 {
    (offset / PAGE * 31 + offset % 251) as u8
}

fn content() -> Vec<u8> {
    (0..PAGES * PAGE).map(byte).collect()
}

fn file_on(device: &dyn Device, options: OpenOptions) -> Arc<dyn File> {
    let file = device.open("f", OpenOptions::CREATE).unwrap();
    file.write_at(0, &content()).unwrap();
    file.sync().unwrap();
    device.open("f", options).unwrap()
}

/// Reads ranges of whole pages at once; returns the results and the bytes.
fn read(file: &dyn File, ranges: &[(usize, usize)]) -> Vec<(frondb_core::Result<()>, Buf)> {
    let mut bufs: Vec<Buf> = ranges.iter().map(|(_, pages)| Buf::paged(pages * PAGE)).collect();
    let mut requests: Vec<ReadRequest<'_>> = ranges
        .iter()
        .zip(&mut bufs)
        .map(|((first, _), buf)| ReadRequest::new((first * PAGE) as u64, buf))
        .collect();
    file.read_many(&mut requests);
    let results: Vec<_> = requests.into_iter().map(|request| request.result).collect();
    results.into_iter().zip(bufs).collect()
}

/// Checks reads of random ranges, some of them beyond the end of the file, in batches of 0 to 300.
fn check(file: &dyn File) {
    let mut prng = Prng::new(7);
    let content = content();
    for count in [0, 1, 2, 3, 100, 127, 128, 129, 300] {
        let ranges: Vec<(usize, usize)> = (0..count)
            .map(|_| (prng.below(PAGES as u64 + 10) as usize, 1 + prng.below(4) as usize))
            .collect();
        for (&(first, pages), (result, buf)) in ranges.iter().zip(read(file, &ranges)) {
            match content.get(first * PAGE..(first + pages) * PAGE) {
                Some(bytes) => {
                    result.unwrap();
                    assert!(buf[..] == *bytes, "{count}: {pages} pages at {first}");
                }
                None => {
                    let error = result.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Corruption);
                    let expected = file
                        .read_exact_at((first * PAGE) as u64, &mut Buf::paged(pages * PAGE))
                        .unwrap_err();
                    assert_eq!(error.to_string(), expected.to_string());
                }
            }
        }
    }
}

#[test]
fn each_read_has_the_result_of_a_single_read() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("frondb-device-read-many-{}", std::process::id()));
    let posix = PosixDevice::create(&dir).unwrap();
    check(&*file_on(&posix, OpenOptions::READ));
    check(&*file_on(&posix, OpenOptions::READ.direct(true)));
    let file = file_on(&posix, OpenOptions::READ.direct(true));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| check(&*file));
        }
    });
    drop((file, posix));
    std::fs::remove_dir_all(&dir).unwrap();
    check(&*file_on(&MemoryDevice::new(), OpenOptions::READ));
}

#[test]
fn a_fault_fails_one_read_and_a_trace_lists_all() {
    let script: Script = "fail read f nth=3".parse().unwrap();
    let faulty: SharedDevice = Arc::new(Faults::over(Arc::new(MemoryDevice::new()), &script));
    let traced = Trace::over(faulty, Detail::All);
    let file = file_on(&traced, OpenOptions::READ);
    let ranges = [(4, 1), (9, 2), (2, 1), (7, 3)];
    let results: Vec<bool> =
        read(&*file, &ranges).into_iter().map(|(result, _)| result.is_ok()).collect();
    assert_eq!(results, [true, true, false, true]);
    let lines = traced.take();
    let reads: Vec<&str> = lines.lines().filter(|line| line.starts_with("read")).collect();
    assert_eq!(
        reads,
        ["read f 16384+4096", "read f 36864+8192", "read f 8192+4096", "read f 28672+12288"]
    );
}

/// A throttled device serves one read at a time, so reads that are requested at once take as long
/// as the same reads one after the other.
#[test]
fn a_throttle_counts_every_read() {
    let clock = Arc::new(ManualClock::stepping());
    let limits = Limits { bytes_per_second: 0, calls_per_second: 1000 };
    let shared: SharedClock = clock.clone();
    let inner: SharedDevice = Arc::new(MemoryDevice::new());
    let slow = Throttle::over(Arc::clone(&inner), limits, shared);
    file_on(&*inner, OpenOptions::READ);
    let file = slow.open("f", OpenOptions::READ).unwrap();
    let before = clock.now();
    read(&*file, &[(1, 1); 100]);
    assert_eq!(clock.now() - before, Duration::from_millis(100));
}
