//! What an input of a merge fills: kept for the next merge, because a short scan would otherwise spend
//! more on memory than on its entries.
//!
//! Kept are a few buffers of ordinary size, empty: no block is held by them. They are the process's and
//! not each thread's: a thousand connections that idle hold none of them.

use frondb_core::Chunk;
use frondb_core::mem::Array;
use frondb_core::pool::Shared;

/// Bytes that are kept: a scan of a hundred rows needs some 20 KiB for each of its few sources.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Bytes of one that is kept.
const KEPT_BYTES_EACH: usize = 128 << 10;

/// How many buffers are kept.
const KEPT_MAX: usize = 128;

/// The chunk of an input and what goes with it.
#[derive(Default)]
pub(crate) struct Buffers {
    pub(crate) chunk: Chunk,
    /// Codes of the chunk's keys.
    pub(crate) codes: Array<u64>,
    /// The last key of the chunk before, the base of the first code of the next.
    pub(crate) last_key: Vec<u8>,
}

/// Buffers without an input; the last one was the first of its merge, as the first to be taken will be.
pub(crate) struct Kept {
    buffers: Vec<Buffers>,
    /// Of all of them.
    bytes: usize,
}

static KEPT: Shared<Kept> = Shared::new(Kept::new());

impl Kept {
    const fn new() -> Self {
        Self { buffers: Vec::new(), bytes: 0 }
    }

    /// Empty ones.
    pub(crate) fn take(&mut self) -> Buffers {
        let Some(buffers) = self.buffers.pop() else { return Buffers::default() };
        self.bytes -= buffers.allocated();
        buffers
    }

    /// Gives them back.
    pub(crate) fn keep(&mut self, mut buffers: Buffers) {
        buffers.chunk.clear();
        buffers.codes.clear();
        buffers.last_key.clear();
        let bytes = buffers.allocated();
        let has_room = self.buffers.len() < KEPT_MAX && self.bytes + bytes <= KEPT_BYTES_MAX;
        if (1..=KEPT_BYTES_EACH).contains(&bytes) && has_room {
            self.bytes += bytes;
            self.buffers.push(buffers);
        }
    }
}

/// Calls `with` with the buffers that are kept; with none of them if another thread has them just now.
pub(crate) fn with_kept<R>(with: impl FnOnce(&mut Kept) -> R) -> R {
    let mut with = Some(with);
    let done = KEPT.try_with(|kept| with.take().map(|with| with(kept))).flatten();
    match (done, with) {
        (Some(done), _) => done,
        (None, Some(with)) => with(&mut Kept::new()),
        (None, None) => unreachable!("it is called once"),
    }
}

impl Buffers {
    fn allocated(&self) -> usize {
        self.chunk.allocated() + self.codes.allocated() + self.last_key.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_empty_and_comes_back_in_the_order_of_the_inputs() {
        let mut kept = Kept::new();
        let mut inputs = [kept.take(), kept.take()];
        inputs[0].chunk.push(b"key", frondb_core::SeqNo(1), frondb_core::MessageKind::Put, b"v");
        inputs[0].codes.reserve(100);
        inputs[1].codes.reserve(7);
        let [first, second] = inputs;
        kept.keep(second);
        kept.keep(first);
        assert_eq!(kept.buffers.len(), 2);
        let again = kept.take();
        assert!(again.chunk.is_empty() && again.codes.is_empty() && again.codes.capacity() >= 100);
        assert!((7..100).contains(&kept.take().codes.capacity()));
        assert_eq!((kept.buffers.len(), kept.bytes), (0, 0));
    }

    #[test]
    fn no_more_is_kept_than_may_be() {
        let mut kept = Kept::new();
        for _ in 0..100 {
            let mut buffers = Buffers::default();
            buffers.codes.reserve(KEPT_BYTES_EACH / size_of::<u64>() / 3);
            kept.keep(buffers);
        }
        let (count, bytes) = (kept.buffers.len(), kept.bytes);
        assert!(count >= 10 && bytes <= KEPT_BYTES_MAX, "{count} buffers of {bytes} bytes");
        let mut large = Buffers::default();
        large.codes.reserve(KEPT_BYTES_EACH);
        kept = Kept::new();
        kept.keep(large);
        assert_eq!(kept.buffers.len(), 0);
        for _ in 0..2 * KEPT_MAX {
            let mut buffers = Buffers::default();
            buffers.last_key.push(0);
            kept.keep(buffers);
        }
        assert_eq!(kept.buffers.len(), KEPT_MAX);
    }

    #[test]
    fn nothing_is_kept_of_nothing_and_no_block_is_held() {
        let mut kept = Kept::new();
        kept.keep(Buffers::default());
        assert_eq!((kept.buffers.len(), kept.bytes), (0, 0));
        let bytes = frondb_core::mem::Bytes::copy_from(b"a block");
        let mut buffers = Buffers::default();
        buffers.codes.push(1);
        buffers.chunk.values = frondb_core::chunk::Values::Shared(bytes);
        kept.keep(buffers);
        assert!(matches!(kept.take().chunk.values, frondb_core::chunk::Values::Owned(_)));
    }
}
