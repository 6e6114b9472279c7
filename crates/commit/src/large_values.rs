//! Large values (rule 17). A large value is written once, to extents of its own and before the
//! commit; the log and every merge carry a reference to it.

use frondb_core::checksum::xxh3;
use frondb_core::limits::PAGE_BYTES;
use frondb_core::mem::Buf;
use frondb_core::wear::WriteCause;
use frondb_core::{Error, MessageKind, Result};
use frondb_run::format::ValueRef;
use frondb_space::{Class, Extent, Space};

use frondb_core::codec::Reader;

use crate::batch::{Batch, Section};
use frondb_records::{Op, decode_op, encode_op, encode_range_delete};

/// Bytes written to the device at a time.
const PIECE_BYTES: usize = 256 * 1024;

/// The sections of a batch whose large values are durable in extents. The extents belong to the
/// caller until the commit is logged.
pub struct Written {
    /// The sections, with references in place of the large values.
    pub sections: Vec<Section>,
    /// The extents of the large values, by tree.
    pub values: Vec<(frondb_core::TreeId, Vec<Extent>)>,
}

/// Frees the extents of large values that nothing refers to.
pub fn discard(values: Vec<(frondb_core::TreeId, Vec<Extent>)>, space: &Space) {
    for extent in values.into_iter().flat_map(|(_, extents)| extents) {
        space.release(extent);
    }
}

/// Writes the large values of `batch` and syncs them.
///
/// # Errors
/// `NoSpace`, and errors of the device. After an error the extents are free again.
pub fn write_values(space: &Space, batch: &Batch) -> Result<Written> {
    let mut written = Written { sections: Vec::new(), values: Vec::new() };
    let result = write_sections(space, batch, &mut written).and_then(|()| space.sync());
    match result {
        Ok(()) => Ok(written),
        Err(error) => {
            discard(written.values, space);
            Err(error)
        }
    }
}

/// Writes the large values of each section, and builds the sections with references.
fn write_sections(space: &Space, batch: &Batch, written: &mut Written) -> Result<()> {
    for section in &batch.sections {
        let mut bytes = Vec::with_capacity(section.bytes.len());
        let mut input = Reader::new(&section.bytes);
        while !input.is_empty() {
            let op =
                decode_op(&mut input).map_err(|_| Error::internal("a batch cannot be decoded"))?;
            match op {
                Op::Point { kind: MessageKind::PutRef, key, value } => {
                    let large = position(value)
                        .and_then(|position| batch.large.get(position))
                        .ok_or_else(|| Error::internal("a batch has lost a large value"))?;
                    // Note the value before it is written, so that its extents are freed after a
                    // failure.
                    written.values.push((section.tree, Vec::new()));
                    let Some((_, extents)) = written.values.last_mut() else { continue };
                    let reference = write_value(space, large, extents)?;
                    let mut encoded = Vec::new();
                    reference.encode(&mut encoded);
                    encode_op(&mut bytes, MessageKind::PutRef, key, &encoded);
                }
                Op::Point { kind, key, value } => encode_op(&mut bytes, kind, key, value),
                Op::RangeDelete { lo, hi } => encode_range_delete(&mut bytes, lo, hi),
            }
        }
        let Section { tree, ref handle, count, .. } = *section;
        written.sections.push(Section { tree, handle: handle.clone(), bytes, count });
    }
    Ok(())
}

/// Decodes the value of a message in a batch: the position of the large value in the batch.
fn position(value: &[u8]) -> Option<usize> {
    let bytes: [u8; 8] = value.try_into().ok()?;
    usize::try_from(u64::from_le_bytes(bytes)).ok()
}

/// Writes a value without syncing it. Appends the extents of the value to `extents`, even if the
/// call then fails.
///
/// # Errors
/// `NoSpace`, and errors of the device.
pub fn write_value(space: &Space, value: &[u8], extents: &mut Vec<Extent>) -> Result<ValueRef> {
    let mut rest = value;
    while !rest.is_empty() {
        let pages = Extent::pages_for(rest.len() as u64).min(u64::from(u32::MAX)) as u32;
        let extent = space.acquire(pages, Class::Blob)?;
        extents.push(extent);
        let n = rest.len().min(extent.bytes() as usize);
        write_extent(space, extent, &rest[..n])?;
        rest = &rest[n..];
    }
    Ok(ValueRef { len: value.len() as u64, checksum: xxh3(value), extents: extents.clone() })
}

fn write_extent(space: &Space, extent: Extent, bytes: &[u8]) -> Result<()> {
    let mut buf = Buf::paged(PIECE_BYTES.min(bytes.len().next_multiple_of(PAGE_BYTES)));
    for (i, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
        let padded = piece.len().next_multiple_of(PAGE_BYTES);
        buf[..piece.len()].copy_from_slice(piece);
        buf[piece.len()..padded].fill(0);
        space.write(WriteCause::LargeValues, extent, (i * PIECE_BYTES) as u64, &buf[..padded])?;
    }
    Ok(())
}
