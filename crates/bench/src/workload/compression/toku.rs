//! The size that the rows would have in TokuDB: its compression algorithms on blocks of the size of
//! its nodes, which is 4 MiB. TokuDB itself is no longer built for any server, so there is only
//! this size to compare with. It leaves out what TokuDB stores besides keys and values, and the
//! free space of its files.

use std::io::Write;

use flate2::write::ZlibEncoder;
use liblzma::write::XzEncoder;

use super::{kind, rows};
use crate::driver::Progress;
use crate::engine::{Codec, EngineKind};
use crate::error::{Error, Result};
use crate::report::Measurement;
use crate::rows::Generator;
use crate::workload::Spec;

const BLOCK_BYTES: usize = 4 << 20;

/// The level of both algorithms in TokuDB.
const LEVEL: u32 = 6;

/// The sizes as an engine that cannot be opened, so that they are chosen and reported as engines
/// are.
pub const TOKUDB: EngineKind = EngineKind {
    name: "tokudb",
    describe: |options| describe(options.codec),
    codecs: &[Codec::TokuZlib, Codec::TokuLzma],
    open: |_, _| Err(Error::Usage("TokuDB's sizes are computed without an engine".to_owned())),
};

fn describe(codec: Codec) -> String {
    let algorithm = if codec == Codec::TokuZlib { "zlib" } else { "lzma" };
    format!("tokudb: keys and values in blocks of 4 MiB, {algorithm} level {LEVEL}; no engine")
}

/// Compresses the rows in their order, block by block.
pub(crate) fn sizes(spec: &Spec, progress: &Progress) -> Result<Measurement> {
    progress.say("compressing blocks");
    let codec = spec.variant.codec;
    let mut generator = Generator::new(kind(spec), spec.seed)?;
    let rows = rows(spec, &generator);
    let (mut raw, mut disk) = (0, 0);
    let mut block = Vec::with_capacity(BLOCK_BYTES + (64 << 10));
    for id in 0..rows {
        block.extend_from_slice(&Generator::key(id));
        block.extend_from_slice(generator.value(id));
        if block.len() >= BLOCK_BYTES || id + 1 == rows {
            let packed = packed_bytes(codec, &block).map_err(Error::io("compress a block"))?;
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
        codec: Some(codec.to_string()),
        settings: describe(codec),
        rows: Some(rows),
        raw_bytes: Some(raw),
        disk_bytes: Some(disk),
        ..Measurement::default()
    })
}

fn packed_bytes(codec: Codec, block: &[u8]) -> std::io::Result<usize> {
    let packed = match codec {
        Codec::TokuZlib => {
            let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::new(LEVEL));
            encoder.write_all(block)?;
            encoder.finish()?
        }
        _ => {
            let mut encoder = XzEncoder::new(Vec::new(), LEVEL);
            encoder.write_all(block)?;
            encoder.finish()?
        }
    };
    Ok(packed.len())
}
