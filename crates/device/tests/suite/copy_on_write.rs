//! Writes to a copy-on-write device are read there and never reach the device below.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use frondb_core::ErrorKind;
use frondb_core::prng::Prng;
use frondb_device::intercept::{Call, Intercepted, Interceptor, Operation, Verdict};
use frondb_device::{CopyOnWriteDevice, Device, OpenOptions, PosixDevice, SharedDevice};
use frondb_testkit::trace::Detail;
use frondb_testkit::{Faults, MemoryDevice, Trace};

fn bytes(device: &dyn Device, name: &str) -> Vec<u8> {
    let file = device.open(name, OpenOptions::READ).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    assert_eq!(file.read_at(0, &mut bytes).unwrap(), bytes.len());
    bytes
}

/// A random history on a copy-on-write device over existing files equals the same history on a
/// plain device.
#[test]
fn a_history_equals_the_same_history_on_a_plain_device() {
    for seed in 0..60 {
        let mut prng = Prng::new(seed);
        let below = Arc::new(MemoryDevice::new());
        let mut content = vec![0; prng.below(20_000) as usize];
        prng.fill(&mut content);
        below.open("f", OpenOptions::CREATE).unwrap().write_at(0, &content).unwrap();
        let copy = below.crash(frondb_testkit::CrashMode::KeepAll);
        let traced = Arc::new(Trace::over(below.clone(), Detail::Mutations));
        let over = CopyOnWriteDevice::new(traced.clone());
        let files = [&over as &dyn Device, &copy].map(|d| d.open("f", OpenOptions::WRITE).unwrap());
        for _ in 0..40 {
            let (offset, len) = (prng.below(24_000), prng.below(9_000));
            let mut bytes = vec![0; len as usize];
            prng.fill(&mut bytes);
            let choice = prng.below(4);
            for file in &files {
                match choice {
                    0 => file.set_len(offset).unwrap(),
                    1 => file.allocate(offset, len.max(1)).unwrap(),
                    _ => file.write_at(offset, &bytes).unwrap(),
                }
            }
            let from = prng.below(20_000);
            let read = files.each_ref().map(|file| {
                let mut bytes = vec![7; 5000];
                let got = file.read_at(from, &mut bytes).unwrap();
                bytes.truncate(got);
                bytes
            });
            assert_eq!(read[0], read[1], "seed {seed}");
        }
        assert!(bytes(&over, "f") == bytes(&copy, "f"), "seed {seed}");
        assert!(bytes(&*below, "f") == content);
        assert_eq!(traced.take(), "", "the device below is not written");
    }
}

#[test]
fn names_below_never_change() {
    let below: SharedDevice = Arc::new(MemoryDevice::new());
    for name in ["a", "b"] {
        below.open(name, OpenOptions::CREATE).unwrap().write_at(0, name.as_bytes()).unwrap();
    }
    let inner = below.subdevice("dir").unwrap();
    inner.open("x", OpenOptions::CREATE).unwrap().write_at(0, b"x").unwrap();
    let over = CopyOnWriteDevice::new(Arc::clone(&below));
    over.rename("a", "c").unwrap();
    over.remove("b").unwrap();
    over.open("new", OpenOptions::CREATE_NEW).unwrap();
    over.subdevice("dir").unwrap().remove("x").unwrap();
    over.subdevice("other").unwrap().open("y", OpenOptions::CREATE).unwrap();
    assert_eq!(over.list("").unwrap(), ["c", "dir", "new", "other"]);
    assert!(!over.exists("a").unwrap() && !over.exists("dir/x").unwrap());
    assert!(over.exists("other/y").unwrap());
    assert_eq!(bytes(&over, "c"), b"a");
    assert!(over.open("b", OpenOptions::READ).is_err());
    assert_eq!(below.list("").unwrap(), ["a", "b", "dir"]);
    assert_eq!(below.list("dir").unwrap(), ["x"]);
}

/// While a call of the copy-on-write device searches for a file below, creates this file on the
/// copy-on-write device, as another thread may do.
#[derive(Debug, Default)]
struct Creator {
    over: OnceLock<Weak<CopyOnWriteDevice>>,
    has_created: AtomicBool,
}

impl Interceptor for Creator {
    fn before(&self, call: &Call<'_>) -> Verdict {
        let is_first =
            call.operation == Operation::Open && !self.has_created.swap(true, Ordering::Relaxed);
        if let Some(over) = self.over.get().and_then(Weak::upgrade).filter(|_| is_first) {
            let file = over.open(call.name, OpenOptions::CREATE_NEW).unwrap();
            file.write_at(0, b"first").unwrap();
        }
        Verdict::Pass
    }
}

#[test]
fn a_file_that_two_threads_create_is_one_file() {
    for options in [OpenOptions::CREATE, OpenOptions::CREATE_NEW] {
        let below = Intercepted::wrap(Arc::new(MemoryDevice::new()), Creator::default());
        let below = Arc::new(below);
        let over = Arc::new(CopyOnWriteDevice::new(below.clone()));
        below.over.set(Arc::downgrade(&over)).unwrap();
        let error = over.open("f", options).err().map(|error| error.kind());
        assert_eq!(error, options.create_new.then_some(ErrorKind::Exists));
        assert_eq!(bytes(&*over, "f"), b"first");
    }
}

#[test]
fn an_error_of_the_device_below_is_not_a_file() {
    let faults = "fail exists f".parse().unwrap();
    let below = Arc::new(Faults::over(Arc::new(MemoryDevice::new()), &faults));
    let over = CopyOnWriteDevice::new(below);
    assert_eq!(over.exists("f").unwrap_err().kind(), ErrorKind::Io);
    assert!(!over.exists("f").unwrap());
}

/// Pages beyond the memory limit go to a temporary file and read the same.
#[test]
fn pages_in_the_temporary_file_read_the_same() {
    let dir = a_directory();
    for seed in 0..4 {
        println!("seed {seed}");
        let mut prng = Prng::new(seed);
        let below: SharedDevice = Arc::new(PosixDevice::open(&dir).unwrap());
        let name = format!("f{seed}");
        let mut content = vec![0; 3 << 20];
        prng.fill(&mut content);
        below.open(&name, OpenOptions::CREATE).unwrap().write_at(0, &content).unwrap();
        let before = bytes(&*below, &name);
        let names = below.list("").unwrap();
        let copy = MemoryDevice::new();
        copy.open(&name, OpenOptions::CREATE).unwrap().write_at(0, &content).unwrap();
        let over = CopyOnWriteDevice::new(Arc::clone(&below));
        let files =
            [&over as &dyn Device, &copy].map(|d| d.open(&name, OpenOptions::WRITE).unwrap());
        for _ in 0..60 {
            let (offset, len) = (prng.below(4 << 20), prng.below(300_000));
            let mut piece = vec![0; len as usize];
            prng.fill(&mut piece);
            let choice = prng.below(8);
            for file in &files {
                match choice {
                    0 => file.set_len(offset).unwrap(),
                    _ => file.write_at(offset, &piece).unwrap(),
                }
            }
        }
        assert!(bytes(&over, &name) == bytes(&copy, &name));
        assert!(bytes(&*below, &name) == before);
        assert_eq!(below.list("").unwrap(), names);
    }
    std::fs::remove_dir_all(dir).unwrap();
}

fn a_directory() -> std::path::PathBuf {
    let dir = std::env::temp_dir().join(format!("frondb-copy-on-write-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}
