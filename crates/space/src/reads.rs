//! Several reads with one call; the reads of one data file run concurrently.

use frondb_core::Result;
use frondb_device::ReadRequest;

use crate::files::Located;
use crate::{Extent, Space};

/// One of the reads of [`Space::read_many`]: fills `buf` from `byte_offset` on within an extent.
#[derive(Debug)]
pub struct ExtentRead<'a> {
    /// The extent.
    pub extent: Extent,
    /// Offset in the extent, in bytes.
    pub byte_offset: u64,
    /// The buffer to fill.
    pub buf: &'a mut [u8],
}

impl Space {
    /// Makes all `reads`, concurrently within one data file if the device can, and returns the
    /// result of [`read`](Self::read) for each.
    pub fn read_many(&self, reads: Vec<ExtentRead<'_>>) -> Vec<Result<()>> {
        let mut results: Vec<Result<()>> = Vec::with_capacity(reads.len());
        let mut located: Vec<(u32, usize, Located, &mut [u8])> = Vec::with_capacity(reads.len());
        for (i, read) in reads.into_iter().enumerate() {
            let place = self.files.locate(read.extent, read.byte_offset, read.buf.len());
            results.push(place.map(|place| located.push((read.extent.file, i, place, read.buf))));
        }
        located.sort_by_key(|(file, ..)| *file);
        for of_file in located.chunk_by_mut(|(a, ..), (b, ..)| a == b) {
            let handle = of_file[0].2.file.handle.clone();
            let mut requests: Vec<_> = of_file
                .iter_mut()
                .map(|(_, _, place, buf)| ReadRequest::new(place.offset, buf))
                .collect();
            handle.read_many(&mut requests);
            let done: Vec<_> = requests.into_iter().map(|request| request.result).collect();
            for ((_, i, place, _), result) in of_file.iter().zip(done) {
                results[*i] = result.map_err(|error| place.name_unreadable(error));
            }
        }
        results
    }
}
