//! A ring of the kernel's io_uring interface: several reads of one file are in progress at the same
//! time, and the thread waits for all of them with one system call.
//!
//! ```text
//!   push each read -- submit, wait for all -- note which reads are complete
//!                        | a signal: wait again
//!                        | an error: submit nothing more, wait until the submitted reads are
//!                        |           complete, and use the ring no more
//! ```
//!
//! A ring reads what it can and reports no errors: the caller uses `pread` to repeat a read that
//! failed or was short; `pread` returns the same error as any other read.
//!
//! Invariant: no read is in progress when [`Ring::read`] returns, because the kernel writes into
//! the buffers of the requests until then. One thread at a time.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use io_uring::{IoUring, Probe, opcode, types};

use crate::device::ReadRequest;

/// Maximum number of reads in progress on a ring: twice as many entries make a disk no faster, and
/// the kernel's memory for the ring, about 16 KiB, grows with the entries.
pub(super) const RING_READS: usize = 128;

/// Pause between two checks of the completions of a ring on which the kernel refuses to wait.
const PAUSE: Duration = Duration::from_micros(100);

pub(super) struct Ring {
    ring: IoUring,
    /// Whether the kernel has refused a submission. Reads may then be left in the queue of the
    /// ring; they must never be submitted.
    is_broken: bool,
    /// The error with which the kernel refused a submission; `None` if it refused none.
    refusal: Option<io::Error>,
}

impl Ring {
    /// Sets up a ring.
    ///
    /// # Errors
    /// The reason why the kernel refused the ring: among others `ENOSYS`, and `EPERM` in many
    /// containers. `EINVAL` or `Unsupported` from a kernel older than 5.6, whose rings cannot read
    /// into a plain buffer.
    pub(super) fn new() -> io::Result<Self> {
        let ring = IoUring::new(RING_READS as u32)?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        if !probe.is_supported(opcode::Read::CODE) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(Self { ring, is_broken: false, refusal: None })
    }

    /// Returns whether the ring can still read.
    pub(super) fn is_usable(&self) -> bool {
        !self.is_broken
    }

    /// Returns the error with which the kernel refused a submission; `None` if it refused none.
    pub(super) fn refusal(&self) -> Option<&io::Error> {
        self.refusal.as_ref()
    }

    /// Treats the ring as if the kernel had refused a submission.
    #[cfg(test)]
    pub(super) fn break_off(&mut self, refusal: Option<io::Error>) {
        (self.is_broken, self.refusal) = (true, refusal);
    }

    /// Makes up to [`RING_READS`] reads. Returns a bit for each request, the first request in the
    /// lowest bit; the bit is set if the request was read completely.
    pub(super) fn read(&mut self, fd: &OwnedFd, requests: &mut [ReadRequest<'_>]) -> u128 {
        assert!(requests.len() <= RING_READS, "{} reads do not fit into a ring", requests.len());
        if self.is_broken {
            return 0;
        }
        let mut pushed = 0;
        for (i, request) in requests.iter_mut().enumerate() {
            let Ok(len) = u32::try_from(request.buf.len()) else { continue };
            let read = opcode::Read::new(types::Fd(fd.as_raw_fd()), request.buf.as_mut_ptr(), len)
                .offset(request.offset)
                .build()
                .user_data(i as u64);
            // SAFETY: the buffer is exclusively borrowed and the file is open until this function
            // returns, and `complete` returns, without a panic in between, only when the kernel
            // has completed every read that it has taken. A read that it has not taken stays in
            // the queue of a broken ring, which submits nothing more.
            if unsafe { self.ring.submission().push(&read) }.is_ok() {
                pushed += 1;
            }
        }
        let (full, refusal) = self.complete(pushed, requests);
        if let Some(error) = &refusal {
            tracing::debug!(%error, "io_uring refuses reads: using other calls");
        }
        self.refusal = refusal;
        full
    }

    /// Submits the `pushed` reads and waits until all that the kernel has taken are complete.
    /// Returns the bits of the requests that were read completely, and the error if the kernel
    /// refused some. REQUIRES: nothing in here panics, not even a receiver of log messages.
    fn complete(
        &mut self,
        pushed: usize,
        requests: &[ReadRequest<'_>],
    ) -> (u128, Option<io::Error>) {
        let (mut submitted, mut completed, mut full, mut refusal) = (0, 0, 0, None);
        while completed < if self.is_broken { submitted } else { pushed } {
            if self.is_broken {
                // Any system call, also this sleep, makes the kernel post completions.
                std::thread::sleep(PAUSE);
            } else {
                match self.ring.submit_and_wait(pushed - completed) {
                    Ok(taken) => submitted += taken,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => (self.is_broken, refusal) = (true, Some(error)),
                }
            }
            for completion in self.ring.completion() {
                completed += 1;
                let i = completion.user_data() as usize;
                let is_full = requests.get(i).is_some_and(|request| {
                    usize::try_from(completion.result()) == Ok(request.buf.len())
                });
                if is_full {
                    full |= 1 << i;
                }
            }
        }
        (full, refusal)
    }
}
