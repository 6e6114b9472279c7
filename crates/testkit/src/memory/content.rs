//! The bytes of a file in memory: a map of pages, which copies share until one of them is written.
//!
//! A copy of a file costs one reference count per page, so thousands of crashed devices can coexist
//! with the original. A missing page is a hole and reads as zeros.
//!
//! Invariant: no page lies completely beyond `len`, and the bytes of the last page beyond `len` are
//! zeros, so that a file that grows again reads zeros there.

use std::collections::BTreeMap;

use frondb_core::limits::PAGE_BYTES;
use frondb_core::sync::Arc;

const PAGE: u64 = PAGE_BYTES as u64;

type Page = Arc<[u8; PAGE_BYTES]>;

/// The content and length of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    pages: BTreeMap<u64, Page>,
    len: u64,
}

/// Splits a byte range by page into pieces: (page number, offset in the page, offset in the range,
/// length).
fn pieces(offset: u64, len: u64) -> impl Iterator<Item = (u64, usize, u64, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done >= len {
            return None;
        }
        let at = offset + done;
        let inside = at % PAGE;
        let take = (PAGE - inside).min(len - done);
        let piece = (at / PAGE, inside as usize, done, take as usize);
        done += take;
        Some(piece)
    })
}

impl Content {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the bytes of allocated pages.
    pub(super) fn allocated_bytes(&self) -> u64 {
        self.pages.len() as u64 * PAGE
    }

    /// Returns the bytes of new pages that allocating the range would take.
    pub(super) fn cost(&self, offset: u64, len: u64) -> u64 {
        if len == 0 {
            return 0;
        }
        let (first, last) = (offset / PAGE, (offset + len - 1) / PAGE);
        let present = self.pages.range(first..=last).count() as u64;
        (last - first + 1 - present) * PAGE
    }

    /// Reads as much of `buf` as the file has from `offset` on.
    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) -> usize {
        let len = self.len.saturating_sub(offset).min(buf.len() as u64);
        for (page, inside, done, take) in pieces(offset, len) {
            let out = &mut buf[done as usize..done as usize + take];
            match self.pages.get(&page) {
                Some(page) => out.copy_from_slice(&page[inside..inside + take]),
                None => out.fill(0),
            }
        }
        len as usize
    }

    /// Writes `bytes` at `offset` without changing the length.
    pub(super) fn put(&mut self, offset: u64, bytes: &[u8]) {
        for (page, inside, done, take) in pieces(offset, bytes.len() as u64) {
            let page = self.pages.entry(page).or_insert_with(|| Arc::new([0; PAGE_BYTES]));
            let source = &bytes[done as usize..done as usize + take];
            Arc::make_mut(page)[inside..inside + take].copy_from_slice(source);
        }
    }

    /// Makes the file at least `len` bytes long, without allocating pages.
    pub(super) fn extend(&mut self, len: u64) {
        self.len = self.len.max(len);
    }

    /// Truncates or extends the file.
    pub(super) fn set_len(&mut self, len: u64) {
        self.len = len;
        self.cut();
    }

    /// Restores the invariant after writes beyond the length or after a truncation.
    pub(super) fn cut(&mut self) {
        let beyond = self.pages.split_off(&self.len.div_ceil(PAGE));
        drop(beyond);
        let inside = (self.len % PAGE) as usize;
        if inside > 0
            && let Some(page) = self.pages.get_mut(&(self.len / PAGE))
        {
            Arc::make_mut(page)[inside..].fill(0);
        }
    }

    /// Allocates zeroed pages for a range and extends the file over it.
    pub(super) fn allocate(&mut self, offset: u64, len: u64) {
        for (page, ..) in pieces(offset, len) {
            self.pages.entry(page).or_insert_with(|| Arc::new([0; PAGE_BYTES]));
        }
        self.extend(offset + len);
    }

    /// Zeroes a range and frees the pages that lie completely in it.
    pub(super) fn punch(&mut self, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        for page in present(&self.pages, offset, end) {
            let start = page * PAGE;
            let (from, to) = (offset.max(start) - start, (end - start).min(PAGE));
            if to - from == PAGE {
                self.pages.remove(&page);
            } else if let Some(page) = self.pages.get_mut(&page) {
                Arc::make_mut(page)[from as usize..to as usize].fill(0);
            }
        }
    }

    /// Copies the pages of a range from `newer`.
    pub(super) fn adopt(&mut self, newer: &Self, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        for page in present(&self.pages, offset, end) {
            self.pages.remove(&page);
        }
        for page in present(&newer.pages, offset, end) {
            if let Some(bytes) = newer.pages.get(&page) {
                self.pages.insert(page, Arc::clone(bytes));
            }
        }
    }
}

/// Returns the numbers of the existing pages in a byte range. Does not enumerate all numbers in the
/// range, which may span a hole of exabytes.
fn present(pages: &BTreeMap<u64, Page>, offset: u64, end: u64) -> Vec<u64> {
    if offset >= end {
        return Vec::new();
    }
    pages.range(offset / PAGE..=(end - 1) / PAGE).map(|(page, _)| *page).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use frondb_core::prng::Prng;

    fn bytes_of(content: &Content) -> Vec<u8> {
        let mut bytes = vec![0xaa; content.len() as usize];
        assert_eq!(content.read(0, &mut bytes), bytes.len());
        bytes
    }

    /// Compares the content with a plain vector of bytes after each of many random changes.
    #[test]
    fn content_equals_a_vector() {
        let mut prng = Prng::new(11);
        let (mut content, mut model) = (Content::default(), Vec::<u8>::new());
        for step in 0..2000 {
            let offset = prng.below(5 * PAGE);
            let len = prng.below(3 * PAGE);
            match prng.below(5) {
                0 => {
                    content.set_len(offset);
                    model.resize(offset as usize, 0);
                }
                1 => {
                    content.punch(offset, len);
                    let end = model.len().min((offset + len) as usize);
                    if (offset as usize) < end {
                        model[offset as usize..end].fill(0);
                    }
                }
                2 => {
                    content.allocate(offset, len);
                    model.resize(model.len().max((offset + len) as usize), 0);
                }
                _ => {
                    let mut bytes = vec![0; len as usize];
                    prng.fill(&mut bytes);
                    content.put(offset, &bytes);
                    content.extend(offset + len);
                    model.resize(model.len().max((offset + len) as usize), 0);
                    model[offset as usize..(offset + len) as usize].copy_from_slice(&bytes);
                }
            }
            assert_eq!(bytes_of(&content), model, "after step {step}");
        }
    }

    #[test]
    fn holes_take_no_space() {
        let mut content = Content::default();
        content.extend(100 * PAGE);
        assert_eq!(content.allocated_bytes(), 0);
        assert_eq!(content.cost(10, PAGE), 2 * PAGE);
        content.allocate(0, 4 * PAGE);
        assert_eq!(content.allocated_bytes(), 4 * PAGE);
        content.punch(1, 3 * PAGE);
        assert_eq!(content.allocated_bytes(), 2 * PAGE, "only whole pages are dropped");
        assert_eq!(content.len(), 100 * PAGE);
    }

    #[test]
    fn a_hole_of_exabytes_costs_nothing() {
        let mut content = Content::default();
        content.put(0, b"x");
        content.set_len(1 << 60);
        content.punch(1, 1 << 59);
        Content::default().adopt(&content, 0, 1 << 60);
        content.set_len(1);
        assert_eq!(bytes_of(&content), b"x");
    }

    #[test]
    fn a_copy_does_not_see_later_writes() {
        let mut content = Content::default();
        content.put(0, b"before");
        content.extend(6);
        let copy = content.clone();
        content.put(0, b"after!");
        assert_eq!(bytes_of(&copy), b"before");
    }
}
