//! Advice on the sizes that suit a device. No option depends on the speed of a device (decision
//! 0027), and the defaults are good on all devices. The block size hardly matters for the writes of
//! a B-epsilon-tree; it matters for reads that miss the cache.

use crate::decode::DecodeTime;
use crate::model::Model;

/// The smallest and the largest block size that are advised, key and value bytes.
const BLOCK_BYTES: (f64, f64) = (8192.0, 131_072.0);
/// Blocks are advised in steps of this many bytes.
const BLOCK_STEP: f64 = 4096.0;
/// The default of `slice_bytes_min`, and the largest value that the option takes.
const SLICE_BYTES: (f64, f64) = (262_144.0, 67_108_864.0);
/// At this many half-power points, the transfer takes four fifths of the time.
const SLICE_HALF_POWERS: f64 = 4.0;
const MIB: f64 = 1_048_576.0;

/// The cost of reads with blocks of one size that are not in the cache.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BlockCost {
    /// Key and value bytes of a block.
    pub block_bytes: u64,
    /// Bytes of a block on disk.
    pub disk_bytes: f64,
    /// A point read: one block read and decoded, seconds.
    pub point_seconds: f64,
    /// A range: one MiB of keys and values in blocks that are read and decoded one after the other,
    /// seconds. Long scans read several blocks with one request and are faster.
    pub range_seconds: f64,
}

/// The block size that suits a device.
#[derive(Clone, PartialEq, Debug)]
pub struct BlockAdvice {
    /// The half-power point of reads, bytes on disk: the size of a request that spends half of its
    /// time on the transfer.
    pub half_power_bytes: f64,
    /// The compression factor of blocks: size in memory divided by size on disk.
    pub compression: f64,
    /// The advised value of `TreeOptions::block_bytes`: the half-power point times the compression,
    /// 8 to 128 KiB.
    pub block_bytes: u64,
    /// The costs of reads with each block size whose decoding time was measured.
    pub costs: Vec<BlockCost>,
}

impl BlockAdvice {
    /// Returns the advice for blocks that compress by `compression`, with a row of costs for each
    /// decoding time; `None` if the model has no half-power point.
    #[must_use]
    pub fn of(reads: &Model, compression: f64, decoding: &[DecodeTime]) -> Option<Self> {
        let half_power_bytes = reads.half_power_bytes()?;
        let compression = compression.max(1.0);
        let (least, most) = BLOCK_BYTES;
        let bytes = (half_power_bytes * compression / BLOCK_STEP).round() * BLOCK_STEP;
        let costs = decoding.iter().map(|decode| {
            let disk_bytes = decode.block_bytes as f64 / compression;
            let point_seconds = reads.seconds(disk_bytes) + decode.seconds;
            let blocks = MIB / decode.block_bytes as f64;
            BlockCost {
                block_bytes: decode.block_bytes,
                disk_bytes,
                point_seconds,
                range_seconds: point_seconds * blocks,
            }
        });
        Some(Self {
            half_power_bytes,
            compression,
            block_bytes: bytes.clamp(least, most) as u64,
            costs: costs.collect(),
        })
    }
}

/// The slice size that suits a device.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SliceAdvice {
    /// The half-power point of writes (of reads, if writes were not measured), bytes on disk.
    pub half_power_bytes: f64,
    /// The share of the bandwidth that slices of the default size reach if each is written, or read
    /// by a merge, with a request of its own: 0 to 1.
    pub default_share: f64,
    /// The advised value of `slice_bytes_min`, key and value bytes: the smallest of 256 KiB (the
    /// default), 512 KiB, ..., 64 MiB that has four half-power points on disk; 64 MiB if none has.
    pub slice_bytes: u64,
}

impl SliceAdvice {
    /// Returns the advice for slices that compress by `compression`; `None` if the model has no
    /// half-power point.
    #[must_use]
    pub fn of(model: &Model, compression: f64) -> Option<Self> {
        let half_power_bytes = model.half_power_bytes()?;
        let compression = compression.max(1.0);
        let (default, most) = SLICE_BYTES;
        let on_disk = default / compression;
        let enough = SLICE_HALF_POWERS * half_power_bytes * compression;
        let doublings = (enough / default).log2().ceil().max(0.0);
        Some(Self {
            half_power_bytes,
            default_share: on_disk / (on_disk + half_power_bytes),
            slice_bytes: (default * doublings.exp2()).min(most) as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::{Operation, Point};

    fn model(s: f64, w: f64) -> Model {
        let points: Vec<Point> = (12..=22)
            .map(|shift| {
                let bytes = 1_u64 << shift;
                Point::known(Operation::Read, bytes, 1, s + bytes as f64 / w)
            })
            .collect();
        Model::of(Operation::Read, &points).unwrap_or_else(|| panic!("no model"))
    }

    fn decoding() -> [DecodeTime; 2] {
        [(8, 5e-6), (64, 40e-6)].map(|(kib, seconds)| DecodeTime {
            block_bytes: kib << 10,
            compression: 2.0,
            seconds,
        })
    }

    fn blocks(s: f64, w: f64, compression: f64) -> BlockAdvice {
        let advice = BlockAdvice::of(&model(s, w), compression, &decoding());
        advice.unwrap_or_else(|| panic!("no advice"))
    }

    #[test]
    fn blocks_have_the_half_power_point_on_disk() {
        assert_eq!(blocks(200e-6, 100e6, 2.0).block_bytes, 40 << 10, "20 KB on disk");
        assert_eq!(blocks(8e-3, 150e6, 2.0).block_bytes, 128 << 10, "a disk with heads");
        assert_eq!(blocks(1e-6, 1e9, 1.5).block_bytes, 8 << 10);
        assert_eq!(blocks(200e-6, 100e6, 0.0).compression, 1.0);
    }

    #[test]
    fn costs_have_the_time_of_the_device_and_of_decoding() {
        let costs = blocks(500e-6, 120e6, 2.0).costs;
        let point = 500e-6 + 4096.0 / 120e6 + 5e-6;
        assert!((costs[0].point_seconds - point).abs() < 1e-9, "{costs:?}");
        assert!((costs[0].range_seconds - 128.0 * point).abs() < 1e-6);
        assert!(costs[1].point_seconds > point && costs[1].range_seconds < costs[0].range_seconds);
    }

    #[test]
    fn slices_are_large_beside_the_half_power_point() {
        let slices =
            |s, w| SliceAdvice::of(&model(s, w), 2.0).unwrap_or_else(|| panic!("no advice"));
        let ssd = slices(20e-6, 500e6);
        assert_eq!(ssd.slice_bytes, 256 << 10);
        assert!((ssd.default_share - 131_072.0 / 141_072.0).abs() < 1e-3, "{ssd:?}");
        assert_eq!(slices(8e-3, 125e6).slice_bytes, 8 << 20, "1 MB is half-power");
        assert_eq!(slices(1.0, 1e9).slice_bytes, 64 << 20);
    }
}
