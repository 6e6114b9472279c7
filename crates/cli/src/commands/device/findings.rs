//! All results of the command: the measurement, and the conclusions from it.

use std::path::PathBuf;

use frondb::device::{
    BlockAdvice, DecodeTime, Endurance, Line, Measurement, Model, Operation, SliceAdvice, Wear,
    background_rate,
};

use crate::args::Device;

/// The lifetime for which the rate of background work is computed, years.
pub(super) const YEARS: f64 = 5.0;

pub(super) struct Findings {
    pub(super) dir: PathBuf,
    pub(super) measured: Measurement,
    /// The models of reads and, if they were measured, writes.
    pub(super) models: Vec<Model>,
    pub(super) datasheet: Option<Line>,
    /// The advised block size; `None` if the measured times may be times of memory instead of the
    /// device, or the model of reads has no half-power point.
    pub(super) blocks: Option<BlockAdvice>,
    pub(super) slices: Option<SliceAdvice>,
    pub(super) wear: Option<WearFindings>,
}

/// The wear of the device, and how long it lasts.
pub(super) struct WearFindings {
    pub(super) wear: Wear,
    pub(super) left_bytes: Option<f64>,
    /// The lifetimes at the rate that the user gave, or else at the past rate; `None` if neither is
    /// known, or `left_bytes` is not.
    pub(super) endurance: Option<Endurance>,
    /// For each write amplification inside the device: the bytes per second with which the device
    /// lasts for [`YEARS`].
    pub(super) rates: Vec<(u32, f64)>,
}

impl Findings {
    pub(super) fn new(
        args: &Device,
        measured: Measurement,
        decoding: &[DecodeTime],
        wear: Option<Wear>,
    ) -> Self {
        let model = |operation| Model::of(operation, &measured.points);
        let (reads, writes) = (model(Operation::Read), model(Operation::Write));
        let of_sample = decoding.iter().map(|time| time.compression).fold(1.0, f64::max);
        let compression = args.compression.unwrap_or(of_sample);
        let (for_blocks, for_slices) = match measured.caching.is_doubtful() {
            true => (None, None),
            false => (reads.as_ref(), writes.as_ref().or(reads.as_ref())),
        };
        let blocks = for_blocks.and_then(|reads| BlockAdvice::of(reads, compression, decoding));
        let slices = for_slices.and_then(|model| SliceAdvice::of(model, compression));
        let per_day = args.bytes_per_day.map(|bytes| bytes as f64);
        Self {
            dir: args.dir.clone(),
            models: reads.into_iter().chain(writes).collect(),
            datasheet: args.datasheet.map(|(startup, bandwidth)| Line::known(startup, bandwidth)),
            blocks,
            slices,
            wear: wear.map(|wear| WearFindings::new(wear, per_day)),
            measured,
        }
    }
}

impl WearFindings {
    fn new(wear: Wear, bytes_per_day: Option<f64>) -> Self {
        let left_bytes = wear.left_bytes();
        let per_day = bytes_per_day.or_else(|| wear.past_bytes_per_day());
        let rates = left_bytes.map_or_else(Vec::new, |left| {
            (1..=4).map(|factor| (factor, background_rate(left, YEARS, factor))).collect()
        });
        let endurance = per_day.and_then(|per_day| Endurance::of(&wear, per_day));
        Self { wear, left_bytes, endurance, rates }
    }
}
