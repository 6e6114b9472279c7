//! Fuzz entries for the decoders of this crate.

use frondb_core::codec::Reader;
use frondb_core::{Result, SeqNo, TreeId};

use crate::format::{Op, RecordVisitor, decode_edit, decode_record, encode_edit};

struct Ignore;

impl RecordVisitor for Ignore {
    fn relog(&mut self, _: TreeId) -> Result<()> {
        Ok(())
    }

    fn op(&mut self, _: TreeId, _: SeqNo, _: Op<'_>) -> Result<()> {
        Ok(())
    }
}

/// A WAL record's payload: decodes or refuses.
pub fn wal_record(data: &[u8]) {
    let _ = decode_record(data, &mut Ignore);
}

/// A manifest edit: decodes or refuses, and what decodes survives a round trip.
pub fn manifest_edit(data: &[u8]) {
    if let Ok(edit) = decode_edit(&mut Reader::new(data)) {
        let mut out = Vec::new();
        encode_edit(&mut out, &edit);
        assert_eq!(decode_edit(&mut Reader::new(&out)).as_ref(), Ok(&edit));
    }
}
