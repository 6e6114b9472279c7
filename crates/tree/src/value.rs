//! Reading large values (rule 17). A large value lies in extents of its own, and its message has a
//! reference to them.

use frondb_core::checksum::{Xxh3, xxh3};
use frondb_core::mem::Buf;
use frondb_core::sync::Arc;
use frondb_core::{Error, Result};
use frondb_merge::ValueReader;
use frondb_run::RunEnv;
use frondb_run::format::ValueRef;
use frondb_space::{Extent, Space};

/// Bytes of one read from the device.
const PIECE_BYTES: usize = 256 * 1024;

/// Reads large values for update functions.
pub(crate) struct Values(pub(crate) Arc<RunEnv>);

impl ValueReader for Values {
    fn read(&self, reference: &[u8]) -> Result<Vec<u8>> {
        read_value(&self.0, reference)
    }
}

/// Reads the value that an encoded reference names.
///
/// # Errors
/// `Corruption` if the reference cannot be decoded or the checksum does not match; a device error.
pub fn read_value(runs: &RunEnv, encoded: &[u8]) -> Result<Vec<u8>> {
    let reference = ValueRef::decode(encoded).map_err(|_| bad_reference())?;
    let space = &*runs.space;
    let mut value = Vec::with_capacity(reference.len as usize);
    let read = runs.profiled_value(reference.len, || {
        for_each_piece(space, &reference, &mut |piece| value.extend_from_slice(piece))
    });
    let checked = read.and_then(|()| check_sum(space, &reference, xxh3(&value)));
    runs.events.note_damage(checked).map(|()| value)
}

/// Checks the value that an encoded reference names. Uses the memory of one piece, 256 KiB.
///
/// # Errors
/// As [`read_value`].
pub fn check_value(space: &Space, encoded: &[u8]) -> Result<()> {
    let reference = ValueRef::decode(encoded).map_err(|_| bad_reference())?;
    let mut sum = Xxh3::new();
    for_each_piece(space, &reference, &mut |piece| sum.update(piece))?;
    check_sum(space, &reference, sum.finish())
}

/// Reads a value in order and passes each piece to `take`.
fn for_each_piece(space: &Space, reference: &ValueRef, take: &mut dyn FnMut(&[u8])) -> Result<()> {
    let (mut buf, mut rest) = (Buf::paged(PIECE_BYTES), reference.len);
    for extent in &reference.extents {
        let mut offset = 0;
        while offset < extent.bytes() && rest > 0 {
            let n = PIECE_BYTES.min((extent.bytes() - offset) as usize);
            space.read(*extent, offset, &mut buf[..n])?;
            let wanted = rest.min(n as u64);
            take(&buf[..wanted as usize]);
            rest -= wanted;
            offset += n as u64;
        }
    }
    Ok(())
}

fn check_sum(space: &Space, reference: &ValueRef, found: u64) -> Result<()> {
    if found == reference.checksum {
        return Ok(());
    }
    let first = reference.extents[0];
    let file = space.file(first.file).map_or_else(|_| "data".into(), |f| f.name().to_owned());
    let message = format!("checksum {found:016x}, expected {:016x}", reference.checksum);
    Err(Error::corruption(file, first.offset(), "value", message))
}

/// Returns the extents of each value that these encoded references name.
///
/// # Errors
/// `Corruption` if a reference cannot be decoded.
pub fn extents_of(references: &[Box<[u8]>]) -> Result<Vec<Vec<Extent>>> {
    let decoded = references.iter().map(|bytes| {
        let value = ValueRef::decode(bytes).map_err(|_| bad_reference())?;
        Ok(value.extents)
    });
    decoded.collect()
}

/// Returns the error for a reference to a large value that cannot be decoded. The checksum of its
/// block was right, but the engine never writes such a reference. The run that holds it is not
/// known here.
pub(crate) fn bad_reference() -> Error {
    let message = "a reference to a large value cannot be decoded";
    Error::corruption("data", 0, "value", message)
}
