//! Finds and opens the segments that a replay reads, and checks that they form a chain.

use frondb_core::{Error, Lsn, Result};
use frondb_device::SharedFile;

use crate::files::Directory;
use crate::format::{FileName, HEADER_BYTES, SegmentHeader, WHAT_HEADER};

/// A segment found in the log's directory.
#[derive(Clone, Debug)]
pub(crate) struct FoundSegment {
    pub(crate) file: SharedFile,
    pub(crate) header: SegmentHeader,
    pub(crate) len: u64,
}

impl FoundSegment {
    pub(super) fn name(&self) -> String {
        FileName::Segment(self.header.generation).to_string()
    }

    pub(super) fn offset(&self, lsn: Lsn) -> u64 {
        HEADER_BYTES + lsn.get().saturating_sub(self.header.first.get())
    }
}

/// Returns the segments that have records at or above `start`, checked to be a chain, and the
/// numbers of the other segments.
pub(super) fn needed(
    directory: &Directory,
    numbers: &[u64],
    db_id: u128,
    start: Lsn,
) -> Result<(Vec<FoundSegment>, Vec<u64>)> {
    let mut found: Vec<FoundSegment> = Vec::new();
    let mut rest = numbers.len();
    // From the newest segment down, so that segments that are no longer needed are not opened.
    while found.last().is_none_or(|oldest| oldest.header.end_before > start) && rest > 0 {
        rest -= 1;
        let number = numbers[rest];
        let (file, header) = directory.open(number, db_id)?;
        let len = file.len()?;
        if let Some(next) = found.last() {
            check_chain(&header, &next.header)?;
        }
        found.push(FoundSegment { file, header, len });
    }
    if let Some(oldest) = found.last()
        && oldest.header.first > start
        && oldest.header.end_before > start
    {
        let missing = FileName::Segment(oldest.header.generation.saturating_sub(1)).to_string();
        let message = format!(
            "the log begins at lsn {}, but records from lsn {start} on are still needed",
            oldest.header.first
        );
        return Err(Error::corruption(missing, 0, "wal segment", message));
    }
    found.reverse();
    Ok((found, numbers[..rest].to_vec()))
}

/// Checks that `next` directly follows `header`.
fn check_chain(header: &SegmentHeader, next: &SegmentHeader) -> Result<()> {
    if header.generation + 1 != next.generation {
        let missing = FileName::Segment(next.generation - 1).to_string();
        let message = format!("the segment before number {} is missing", next.generation);
        return Err(Error::corruption(missing, 0, "wal segment", message));
    }
    if header.first > next.end_before && !is_empty(header, next) {
        let file = FileName::Segment(next.generation).to_string();
        let message = format!(
            "the previous segment begins at lsn {}, but this header says that it ends at {}",
            header.first, next.end_before
        );
        return Err(Error::corruption(file, 0, WHAT_HEADER, message));
    }
    Ok(())
}

/// Whether all records of a segment were abandoned. `next` then continues the log where the segment
/// before this one ended.
pub(super) fn is_empty(header: &SegmentHeader, next: &SegmentHeader) -> bool {
    next.end_before == header.end_before
}
