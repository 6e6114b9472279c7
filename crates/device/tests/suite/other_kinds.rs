//! Opening anything but a regular file fails at once: a named pipe would block the open call until
//! another process opens its other end, and a device may have no end.

use std::os::unix::fs::symlink;
use std::path::Path;

use frondb_core::ErrorKind;
use frondb_device::{Device, OpenOptions, PosixDevice};
use rustix::fs::{CWD, FileType, Mode, mknodat};

#[test]
fn pipes_devices_and_directories_are_not_opened() {
    let name = format!("frondb-other-kinds-{}", std::process::id());
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let device = PosixDevice::create(&dir).unwrap();
    mknodat(CWD, dir.join("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    symlink("/dev/zero", dir.join("zero")).unwrap();
    device.create_dir("dir").unwrap();
    for (name, what) in [("pipe", "a named pipe"), ("zero", "a device"), ("dir", "a directory")] {
        let opened = [OpenOptions::READ, OpenOptions::WRITE, OpenOptions::CREATE]
            .map(|options| device.open(name, options.direct(name == "pipe")).map(drop));
        let locked = [device.lock(name).map(drop), device.lock_shared(name).map(drop)];
        for result in opened.into_iter().chain(locked) {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
            assert!(
                error.message().ends_with(&format!("is {what}, not a regular file")),
                "{error}"
            );
        }
    }
    // A link to a regular file can be opened.
    device.open("file", OpenOptions::CREATE).unwrap().write_at(0, b"abc").unwrap();
    symlink("file", dir.join("link")).unwrap();
    assert_eq!(device.open("link", OpenOptions::READ).unwrap().len().unwrap(), 3);
    std::fs::remove_dir_all(&dir).unwrap();
}
