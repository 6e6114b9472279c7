//! The size that the rows would have in TokuDB: the rows compressed with lzma in blocks of 4 MiB,
//! the size of TokuDB's nodes. TokuDB is no longer built for any server, so this size is all there
//! is to compare with. It leaves out everything that TokuDB stores besides keys and values, and the
//! free space in TokuDB's files.

use std::io::Write;

use liblzma::write::XzEncoder;

use super::kind;
use crate::driver::Progress;
use crate::engine::{Codec, EngineKind};
use crate::error::{Error, Result};
use crate::report::Measurement;
use crate::rows::Generator;
use crate::workload::Spec;

const BLOCK_BYTES: usize = 4 << 20;

/// The level of lzma in TokuDB.
const LEVEL: u32 = 6;

/// An entry like those of the registry. The workload `compression` always adds it to the engines
/// that the user has named, and reports show it like an engine, but it cannot be opened.
pub const TOKUDB: EngineKind = EngineKind {
    name: "tokudb",
    describe: |_| DESCRIPTION.to_owned(),
    codecs: &[Codec::TokuLzma],
    open: |_, _| Err(Error::Usage("TokuDB's sizes are computed without an engine".to_owned())),
};

const DESCRIPTION: &str = "tokudb: keys and values in blocks of 4 MiB, lzma level 6; no engine";

/// Compresses the rows in their order, block by block.
pub(crate) fn sizes(spec: &Spec, progress: &Progress) -> Result<Measurement> {
    progress.say("compressing blocks");
    let mut generator = Generator::new(kind(spec), spec.seed);
    let (mut raw, mut disk) = (0, 0);
    let mut block = Vec::with_capacity(BLOCK_BYTES + (64 << 10));
    for id in 0..spec.rows {
        block.extend_from_slice(&Generator::key(id));
        block.extend_from_slice(generator.value(id));
        if block.len() >= BLOCK_BYTES || id + 1 == spec.rows {
            let packed = packed_bytes(&block).map_err(Error::io("compress a block"))?;
            raw += block.len() as u64;
            disk += packed.min(block.len()) as u64;
            block.clear();
        }
    }
    Ok(Measurement {
        engine: TOKUDB.name.to_owned(),
        workload: spec.workload.name().to_owned(),
        variant: spec.variant.name.clone(),
        data: Some(kind(spec).name().to_owned()),
        codec: Some(spec.variant.codec.to_string()),
        settings: DESCRIPTION.to_owned(),
        rows: Some(spec.rows),
        raw_bytes: Some(raw),
        disk_bytes: Some(disk),
        ..Measurement::default()
    })
}

fn packed_bytes(block: &[u8]) -> std::io::Result<usize> {
    let mut encoder = XzEncoder::new(Vec::new(), LEVEL);
    encoder.write_all(block)?;
    Ok(encoder.finish()?.len())
}
