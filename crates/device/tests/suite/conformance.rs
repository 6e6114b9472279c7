//! The contract of every device: the same calls run on the operating system's files, on the
//! in-memory device, and through wrappers of `frondb_testkit`.

use std::sync::Arc;

use frondb_core::ErrorKind;
use frondb_core::clock::{ManualClock, SharedClock};
use frondb_core::mem::Buf;
use frondb_device::{Device, OpenOptions, PosixDevice, SharedDevice};
use frondb_testkit::faults::Script;
use frondb_testkit::throttle::Limits;
use frondb_testkit::trace::Detail;
use frondb_testkit::{Faults, MemoryDevice, Throttle, Trace};

/// A directory below Cargo's target directory that is removed on drop.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let name = format!("frondb-device-{test}-{}", std::process::id());
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs `check` on every kind of device.
fn on_all(test: &str, check: impl Fn(&dyn Device)) {
    check(&MemoryDevice::new());
    check(MemoryDevice::new().subdevice("inner").unwrap().as_ref());
    let scratch = Scratch::new(test);
    check(&PosixDevice::create(scratch.0.join("a")).unwrap());
    let outer = PosixDevice::create(scratch.0.join("b")).unwrap();
    check(outer.subdevice("inner").unwrap().as_ref());
    check(wrapped().as_ref());
    check(wrapped().subdevice("inner").unwrap().as_ref());
}

/// A device in three wrappers, none of which changes a result.
fn wrapped() -> SharedDevice {
    let clock: SharedClock = Arc::new(ManualClock::stepping());
    let limits = Limits { bytes_per_second: 1 << 20, calls_per_second: 1000 };
    let slow = Throttle::over(Arc::new(MemoryDevice::new()), limits, clock);
    let script: Script = "fail any no-such-file count=all".parse().unwrap();
    let faulty = Faults::over(Arc::new(slow), &script);
    Arc::new(Trace::over(Arc::new(faulty), Detail::All))
}

fn write(device: &dyn Device, name: &str, bytes: &[u8]) {
    device.open(name, OpenOptions::CREATE).unwrap().write_at(0, bytes).unwrap();
}

fn read(device: &dyn Device, name: &str) -> Vec<u8> {
    let file = device.open(name, OpenOptions::READ).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    file.read_exact_at(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn opening_creates_a_file_only_on_request() {
    on_all("open", |device| {
        let kind = |options| device.open("f", options).unwrap_err().kind();
        assert_eq!(kind(OpenOptions::READ), ErrorKind::NotFound);
        assert_eq!(kind(OpenOptions::WRITE), ErrorKind::NotFound);
        assert!(!device.exists("f").unwrap());
        device.open("f", OpenOptions::CREATE_NEW).unwrap();
        assert!(device.exists("f").unwrap());
        assert_eq!(kind(OpenOptions::CREATE_NEW), ErrorKind::Exists);
        let file = device.open("f", OpenOptions::CREATE).unwrap();
        assert_eq!((file.name(), file.is_empty().unwrap()), ("f", true));
        let reader = device.open("f", OpenOptions::READ).unwrap();
        assert_eq!(reader.write_at(0, b"x").unwrap_err().kind(), ErrorKind::Io);
        let missing = device.open("no/f", OpenOptions::CREATE).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        assert!(missing.message().contains("no/f"), "{missing}");
    });
}

#[test]
fn names_cannot_leave_the_device() {
    on_all("names", |device| {
        for bad in ["../f", "/etc/passwd", "", "a//b", "."] {
            let errors = [
                device.open(bad, OpenOptions::CREATE).unwrap_err(),
                device.exists(bad).unwrap_err(),
                device.remove(bad).unwrap_err(),
                device.rename(bad, "f").unwrap_err(),
                device.rename("f", bad).unwrap_err(),
                device.create_dir(bad).unwrap_err(),
                device.lock(bad).unwrap_err(),
            ];
            assert!(errors.iter().all(|error| error.kind() == ErrorKind::Invalid), "{bad:?}");
        }
        assert_eq!(device.list("..").unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(device.sync_dir("/").unwrap_err().kind(), ErrorKind::Invalid);
    });
}

#[test]
fn reads_end_with_the_file() {
    on_all("reads", |device| {
        write(device, "f", b"0123456789");
        let file = device.open("f", OpenOptions::READ).unwrap();
        let mut buf = [0xff; 8];
        assert_eq!(file.read_at(4, &mut buf).unwrap(), 6);
        assert_eq!(&buf, b"456789\xff\xff");
        assert_eq!(file.read_at(10, &mut buf).unwrap(), 0);
        assert_eq!(file.read_at(1 << 40, &mut buf).unwrap(), 0);
        let error = file.read_exact_at(4, &mut buf).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        let place = error.place().unwrap();
        assert_eq!((place.file.as_str(), place.offset, place.what), ("f", 4, "file"));
    });
}

#[test]
fn writes_leave_holes_that_read_as_zeros() {
    on_all("holes", |device| {
        let file = device.open("f", OpenOptions::CREATE).unwrap();
        file.write_at(9000, b"end").unwrap();
        assert_eq!(file.len().unwrap(), 9003);
        let mut expected = vec![0; 9000];
        expected.extend(b"end");
        assert_eq!(read(device, "f"), expected);
        file.set_len(9001).unwrap();
        file.set_len(9003).unwrap();
        expected[9001..].fill(0);
        assert_eq!(read(device, "f"), expected, "bytes came back after a cut");
    });
}

#[test]
fn vectored_writes_write_all_buffers_in_order() {
    on_all("vectored", |device| {
        let file = device.open("f", OpenOptions::CREATE).unwrap();
        // More buffers than the kernel accepts in one call, some of them empty.
        let bufs: Vec<Vec<u8>> = (0..3000_u32).map(|i| vec![i as u8; i as usize % 7]).collect();
        let slices: Vec<&[u8]> = bufs.iter().map(Vec::as_slice).collect();
        file.write_vectored_at(5, &slices).unwrap();
        assert_eq!(read(device, "f")[5..], bufs.concat());
        file.write_vectored_at(0, &[]).unwrap();
    });
}

#[test]
fn allocating_and_punching_change_the_disk_space() {
    on_all("space", |device| {
        let file = device.open("f", OpenOptions::CREATE).unwrap();
        file.allocate(0, 1 << 20).unwrap();
        assert_eq!(file.len().unwrap(), 1 << 20);
        assert!(file.allocated_bytes().unwrap() >= 1 << 20);
        file.write_at(0, &[7; 8192]).unwrap();
        file.allocate(0, 4096).unwrap();
        file.sync().unwrap();
        let before = file.allocated_bytes().unwrap();
        file.punch(4096, 512 * 1024).unwrap();
        file.sync().unwrap();
        assert_eq!(file.len().unwrap(), 1 << 20, "punching keeps the length");
        assert!(file.allocated_bytes().unwrap() <= before - 256 * 1024);
        let bytes = read(device, "f");
        assert!(bytes[..4096].iter().all(|&byte| byte == 7));
        assert!(bytes[4096..].iter().all(|&byte| byte == 0));
        file.set_len(0).unwrap();
        assert_eq!(file.allocated_bytes().unwrap(), 0);
        file.start_writeback(0, 4096).unwrap();
        assert!(device.free_bytes().unwrap() > 0);
    });
}

#[test]
fn an_offset_out_of_range_is_an_error() {
    on_all("range", |device| {
        let file = device.open("f", OpenOptions::CREATE).unwrap();
        assert_eq!(file.write_at(u64::MAX - 1, b"abc").unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(file.allocate(u64::MAX - 1, 3).unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(file.set_len(u64::MAX).unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(file.punch(u64::MAX - 1, 3).unwrap_err().kind(), ErrorKind::Io);
        assert!(file.is_empty().unwrap());
    });
}

#[test]
fn directories_list_their_entries() {
    on_all("list", |device| {
        assert_eq!(device.list("").unwrap(), [""; 0]);
        device.create_dir("d").unwrap();
        device.create_dir("d").unwrap();
        device.create_dir("d/e").unwrap();
        for name in ["d/b", "d/a", "d/e/deep", "d.x", "z"] {
            write(device, name, b"");
        }
        assert_eq!(device.list("").unwrap(), ["d", "d.x", "z"]);
        assert_eq!(device.list("d").unwrap(), ["a", "b", "e"]);
        assert_eq!(device.list("none").unwrap_err().kind(), ErrorKind::NotFound);
        for options in [OpenOptions::READ, OpenOptions::WRITE, OpenOptions::CREATE] {
            assert_eq!(device.open("d", options).unwrap_err().kind(), ErrorKind::Invalid);
        }
        assert_eq!(device.create_dir("z").unwrap_err().kind(), ErrorKind::Exists);
        assert_eq!(device.create_dir("none/d").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(device.sync_dir("none").unwrap_err().kind(), ErrorKind::NotFound);
        device.sync_dir("d/e").unwrap();
        device.sync_dir("").unwrap();
        let inner = device.subdevice("d").unwrap();
        assert_eq!(inner.list("").unwrap(), ["a", "b", "e"]);
        assert_eq!(inner.list("e").unwrap(), ["deep"]);
    });
}

#[test]
fn a_rename_replaces_and_a_removed_file_stays_open() {
    on_all("rename", |device| {
        write(device, "old", b"old");
        write(device, "new", b"new");
        let open = device.open("old", OpenOptions::READ).unwrap();
        device.rename("new", "old").unwrap();
        assert_eq!(read(device, "old"), b"new");
        assert!(!device.exists("new").unwrap());
        device.rename("old", "old").unwrap();
        device.remove("old").unwrap();
        assert_eq!(device.remove("old").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(device.rename("old", "x").unwrap_err().kind(), ErrorKind::NotFound);
        let mut bytes = [0; 3];
        open.read_exact_at(0, &mut bytes).unwrap();
        assert_eq!(&bytes, b"old");
    });
}

#[test]
fn a_lock_has_one_owner() {
    on_all("lock", |device| {
        let lock = device.lock("LOCK").unwrap();
        let error = device.lock("LOCK").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        let expected = format!("in use by pid {}", std::process::id());
        assert!(error.message().contains(&expected), "{error}");
        assert!(device.exists("LOCK").unwrap());
        drop(lock);
        device.lock("LOCK").unwrap();
    });
}

#[test]
fn a_direct_file_works_in_pages_or_falls_back() {
    on_all("direct", |device| {
        let file = device.open("f", OpenOptions::CREATE_NEW.direct(true)).unwrap();
        let mut page = Buf::zeroed(8192);
        page.fill(9);
        file.write_at(4096, &page).unwrap();
        file.write_vectored_at(12288, &[&page, &page]).unwrap();
        file.sync().unwrap();
        assert_eq!(file.len().unwrap(), 28672);
        let mut back = Buf::zeroed(32768);
        assert_eq!(file.read_at(0, &mut back).unwrap(), 28672);
        assert!(back[..4096].iter().all(|&byte| byte == 0));
        assert!(back[4096..28672].iter().all(|&byte| byte == 9));
        // A file that does not end at a page boundary can be read to its end.
        file.set_len(20_001).unwrap();
        assert_eq!(file.read_at(0, &mut back).unwrap(), 20_001);
        assert!(file.read_exact_at(16384, &mut back[..4096]).is_err());
    });
}

#[test]
fn misaligned_direct_access_is_a_programmers_error() {
    let scratch = Scratch::new("misaligned");
    let device = PosixDevice::create(&scratch.0).unwrap();
    let file = device.open("f", OpenOptions::CREATE.direct(true)).unwrap();
    if !file.is_direct() {
        return; // The file system of the build directory has no direct I/O.
    }
    let write = std::panic::AssertUnwindSafe(|| file.write_at(512, &Buf::zeroed(4096)));
    let caught = std::panic::catch_unwind(write);
    assert!(caught.is_err());
}
