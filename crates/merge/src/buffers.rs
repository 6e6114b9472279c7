//! What an input of a merge fills: kept by the thread for the next merge, because a short scan would
//! otherwise spend more on memory than on its entries.
//!
//! Kept are a few buffers of ordinary size, empty: no block is held by them, and a connection that
//! idles holds no more than [`KEPT_BYTES_MAX`].

use std::cell::RefCell;

use frondb_core::Chunk;

/// Bytes that a thread keeps: a scan of a hundred rows needs some 20 KiB for each of its few sources.
const KEPT_BYTES_MAX: usize = 128 << 10;

/// How many buffers it keeps.
const KEPT_MAX: usize = 16;

/// The chunk of an input and what goes with it.
#[derive(Default)]
pub(crate) struct Buffers {
    pub(crate) chunk: Chunk,
    /// Codes of the chunk's keys.
    pub(crate) codes: Vec<u64>,
    /// The last key of the chunk before, the base of the first code of the next.
    pub(crate) last_key: Vec<u8>,
}

/// Buffers without an input; the last one was the first of its merge, as the first to be taken will be.
#[derive(Default)]
struct Kept {
    buffers: Vec<Buffers>,
    /// Of all of them.
    bytes: usize,
}

thread_local! {
    static KEPT: RefCell<Kept> = RefCell::default();
}

impl Buffers {
    /// Empty ones.
    pub(crate) fn take() -> Self {
        // Merges also end while their thread does.
        let kept = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            let buffers = kept.buffers.pop()?;
            kept.bytes -= buffers.allocated();
            Some(buffers)
        });
        kept.ok().flatten().unwrap_or_default()
    }

    /// Gives them back.
    pub(crate) fn keep(mut self) {
        self.chunk.clear();
        self.codes.clear();
        self.last_key.clear();
        let bytes = self.allocated();
        // Not kept where the thread ends.
        let _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if bytes > 0 && kept.buffers.len() < KEPT_MAX && kept.bytes + bytes <= KEPT_BYTES_MAX {
                kept.bytes += bytes;
                kept.buffers.push(self);
            }
        });
    }

    fn allocated(&self) -> usize {
        self.chunk.allocated() + size_of::<u64>() * self.codes.capacity() + self.last_key.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> (usize, usize) {
        KEPT.with_borrow(|kept| (kept.buffers.len(), kept.bytes))
    }

    /// Another test may have run in this thread.
    fn forget_all() {
        KEPT.with_borrow_mut(|kept| *kept = Kept::default());
    }

    #[test]
    fn what_was_kept_is_empty_and_comes_back_in_the_order_of_the_inputs() {
        forget_all();
        let mut inputs = [Buffers::take(), Buffers::take()];
        inputs[0].chunk.push(b"key", frondb_core::SeqNo(1), frondb_core::MessageKind::Put, b"v");
        inputs[0].codes.reserve(100);
        inputs[1].codes.reserve(7);
        let [first, second] = inputs;
        second.keep();
        first.keep();
        assert_eq!(kept().0, 2);
        let again = Buffers::take();
        assert!(again.chunk.is_empty() && again.codes.is_empty() && again.codes.capacity() >= 100);
        assert!((7..100).contains(&Buffers::take().codes.capacity()));
        assert_eq!(kept(), (0, 0));
    }

    #[test]
    fn a_thread_keeps_no_more_than_it_may() {
        forget_all();
        for _ in 0..100 {
            let mut buffers = Buffers::default();
            buffers.codes.reserve(KEPT_BYTES_MAX / size_of::<u64>() / 3);
            buffers.keep();
        }
        let (count, bytes) = kept();
        assert!(count >= 1 && bytes <= KEPT_BYTES_MAX, "{count} buffers of {bytes} bytes");
        forget_all();
        for _ in 0..100 {
            let mut buffers = Buffers::default();
            buffers.last_key.push(0);
            buffers.keep();
        }
        assert_eq!(kept().0, KEPT_MAX);
    }

    #[test]
    fn nothing_is_kept_of_nothing_and_no_block_is_held() {
        forget_all();
        Buffers::default().keep();
        assert_eq!(kept(), (0, 0));
        let bytes = frondb_core::mem::Bytes::copy_from(b"a block");
        let mut buffers = Buffers::default();
        buffers.codes.push(1);
        buffers.chunk.values = frondb_core::chunk::Values::Shared(bytes);
        buffers.keep();
        assert!(matches!(Buffers::take().chunk.values, frondb_core::chunk::Values::Owned(_)));
    }
}
