//! The rings of a device. A ring is made when a thread reads several blocks at once, and kept for
//! later reads, because setting up and closing a ring takes about as long as ten reads.
//!
//! A thread that gets no ring reads one block after the other. This happens
//!
//! - if the kernel has no io_uring or refuses it, as in many containers (tried only once);
//! - if the kernel has no memory or descriptor for another ring;
//! - if [`RINGS_MAX`] threads are using rings, which keeps any disk busy.
//!
//! Any thread may take a ring. The lock is held for one push or one pop.

use std::io;

use frondb_core::sync::Mutex;

use super::ring::Ring;

/// Maximum number of rings of a device. Each takes a descriptor, and about 16 KiB that the kernel
/// counts as memory of the process.
const RINGS_MAX: usize = 16;

pub(super) struct Rings {
    state: Mutex<RingsState>,
    set_up: SetUp,
}

/// Sets up a ring: [`Ring::new`], except in tests.
type SetUp = fn() -> io::Result<Ring>;

#[derive(Default)]
struct RingsState {
    idle: Vec<Ring>,
    in_use: usize,
    is_refused: bool,
}

/// A ring in use, which is returned on drop.
pub(super) struct RingInUse<'a> {
    rings: &'a Rings,
    /// `None` until the ring is set up.
    ring: Option<Ring>,
}

impl Rings {
    /// Creates an empty set of rings. `set_up` makes a ring when a thread needs one.
    pub(super) fn new(set_up: SetUp) -> Self {
        Self { state: Mutex::default(), set_up }
    }

    /// Takes a ring; `None` if the caller must read without one.
    pub(super) fn take(&self) -> Option<RingInUse<'_>> {
        let idle = {
            let mut state = self.state.lock();
            if state.is_refused || state.in_use == RINGS_MAX {
                return None;
            }
            state.in_use += 1;
            state.idle.pop()
        };
        let mut in_use = RingInUse { rings: self, ring: idle };
        if in_use.ring.is_none() {
            match (self.set_up)() {
                Ok(ring) => in_use.ring = Some(ring),
                Err(error) => {
                    self.note_refusal(&error);
                    return None;
                }
            }
        }
        Some(in_use)
    }

    fn note_refusal(&self, error: &io::Error) {
        let is_temporary = matches!(
            error.kind(),
            io::ErrorKind::OutOfMemory
                | io::ErrorKind::Interrupted
                | io::ErrorKind::WouldBlock
                | io::ErrorKind::ResourceBusy
        ) || is_out_of_descriptors(error);
        if !is_temporary && !std::mem::replace(&mut self.state.lock().is_refused, true) {
            tracing::info!(%error, "the kernel refuses io_uring: blocks are read one by one");
        }
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let is = |errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
    is(Errno::MFILE) || is(Errno::NFILE)
}

impl RingInUse<'_> {
    pub(super) fn ring(&mut self) -> Option<&mut Ring> {
        self.ring.as_mut()
    }
}

impl Drop for RingInUse<'_> {
    fn drop(&mut self) {
        if let Some(error) = self.ring.as_ref().and_then(Ring::refusal) {
            self.rings.note_refusal(error);
        }
        let kept = self.ring.take().filter(Ring::is_usable);
        let mut state = self.rings.state.lock();
        state.in_use -= 1;
        state.idle.extend(kept);
    }
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rustix::io::Errno;

    use frondb_core::sync::Arc;

    use super::super::file::PosixFile;
    use super::*;
    use crate::device::{File, ReadRequest};

    /// Creates a file of 256 bytes, byte `n` at offset `n`.
    fn file(rings: Rings) -> PosixFile {
        let path = std::env::temp_dir().join(format!(
            "frondb-rings-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        let bytes: Vec<u8> = (0..=255).collect();
        std::fs::write(&path, bytes).unwrap_or_else(|error| panic!("{error}"));
        let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{error}"));
        let _ = std::fs::remove_file(&path);
        let name = String::from("f");
        let (path, rings) = (name.clone(), Arc::new(rings));
        PosixFile { fd: file.into(), name, path, direct: false, rings }
    }

    fn reads_correctly(file: &PosixFile) {
        let mut bufs = [[0; 2]; 200];
        let mut requests: Vec<_> = (0..200u64)
            .zip(&mut bufs)
            .map(|(i, buf)| ReadRequest::new(i * 37 % 255, buf))
            .collect();
        file.read_many(&mut requests);
        for (i, request) in (0..200u64).zip(&requests) {
            let first = (i * 37 % 255) as u8;
            assert_eq!(request.buf, [first, first + 1]);
            assert!(request.result.is_ok());
        }
    }

    fn refusal(errno: Errno) -> io::Result<Ring> {
        Err(io::Error::from_raw_os_error(errno.raw_os_error()))
    }

    #[test]
    fn a_kernel_that_refuses_rings_is_asked_once() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let file = file(Rings::new(|| {
            ASKED.fetch_add(1, Ordering::Relaxed);
            refusal(Errno::PERM)
        }));
        for _ in 0..3 {
            reads_correctly(&file);
        }
        assert_eq!(ASKED.load(Ordering::Relaxed), 1);
        assert_eq!(file.rings.state.lock().in_use, 0);
    }

    #[test]
    fn a_kernel_without_descriptors_is_asked_again() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let file = file(Rings::new(|| {
            ASKED.fetch_add(1, Ordering::Relaxed);
            refusal(Errno::MFILE)
        }));
        for _ in 0..3 {
            reads_correctly(&file);
        }
        assert_eq!(ASKED.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn rings_are_kept_and_broken_ones_are_not() {
        let file = file(Rings::new(Ring::new));
        reads_correctly(&file);
        let Some(mut ring) = file.rings.take() else { return }; // The kernel refuses rings here.
        assert_eq!(file.rings.state.lock().idle.len(), 0, "it is the one that was kept");
        ring.ring().unwrap_or_else(|| panic!("a ring")).break_off(None);
        drop(ring);
        assert_eq!(file.rings.state.lock().idle.len(), 0);
        let all: Vec<_> = (0..RINGS_MAX).map_while(|_| file.rings.take()).collect();
        assert_eq!((all.len(), file.rings.take().is_none()), (RINGS_MAX, true));
        reads_correctly(&file);
        drop(all);
        assert_eq!(file.rings.state.lock().idle.len(), RINGS_MAX);
        reads_correctly(&file);
    }

    #[test]
    fn a_kernel_that_refuses_reads_on_rings_is_asked_once() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let file = file(Rings::new(|| {
            ASKED.fetch_add(1, Ordering::Relaxed);
            Ring::new().map(|mut ring| {
                let errno = Errno::PERM.raw_os_error();
                ring.break_off(Some(io::Error::from_raw_os_error(errno)));
                ring
            })
        }));
        for _ in 0..3 {
            reads_correctly(&file);
        }
        assert_eq!(ASKED.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn reads_that_a_broken_ring_loses_are_repeated_without_it() {
        let file = file(Rings::new(|| {
            Ring::new().map(|mut ring| {
                ring.break_off(None);
                ring
            })
        }));
        reads_correctly(&file);
    }
}
