//! [`Areas`]: where the areas of a block lie in its buffer.

/// Offsets of the areas in the buffer; an area that the block does not have is empty.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Areas {
    pub(crate) shared: usize,
    pub(crate) suffix_lens: usize,
    pub(crate) kinds: usize,
    pub(crate) seqs: usize,
    pub(crate) value_lens: usize,
    pub(crate) keys: usize,
    pub(crate) values: usize,
    pub(crate) end: usize,
}
