//! The merge kernel without an engine, in memory and on one core. The workload `merge` measures it.
//!
//! ```text
//!   8 runs of encoded blocks -> verify, decompress, decode -> merge, fold -> encode, compress,
//!   checksum -> blocks of one base
//! ```
//!
//! The entries have the form of iiBench's third secondary index: the key is price, date, customer
//! and id in 24 bytes, big-endian, and the value is empty. As with flushed memtables, each run has
//! the same number of rows with consecutive ids. Prices are random, so the keys of the runs
//! interleave at random.

use frondb::TrunkOptions;
use frondb_block::{Block, BlockBuilder, BlockOptions, Codec, Place};
use frondb_core::clock::{Clock, SystemClock};
use frondb_core::prng::Prng;
use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::{Chunk, MessageKind, Result, SeqNo, Source};
use frondb_merge::{FoldMerge, FoldOptions, VisibleMerge, VisibleOptions};

/// The runs and blocks of a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelOptions {
    /// Entries of all runs together.
    pub entries: usize,
    /// Number of runs.
    pub runs: usize,
    /// Compression of the runs read and of the base written.
    pub codecs: (Codec, Codec),
    /// Key and value bytes of a block read and of one written.
    pub block_bytes: (usize, usize),
    /// Whether each entry carries its SeqNo, in the runs read and in the base written. The engine
    /// stores the SeqNos only if a reader or a merge must distinguish messages of the run by SeqNo
    /// (docs/design/trunk.md).
    pub per_entry_seqs: (bool, bool),
    /// Seed of the keys.
    pub seed: u64,
}

impl KernelOptions {
    /// Returns the options for eight runs and a base, all with one codec and with the default block
    /// sizes of a tree.
    #[must_use]
    pub fn new(entries: usize, codec: Codec) -> Self {
        let tree = TrunkOptions::default();
        Self {
            entries,
            runs: 8,
            codecs: (codec, codec),
            block_bytes: (tree.run_block_bytes, tree.base_block_bytes),
            per_entry_seqs: (false, false),
            seed: 1,
        }
    }
}

/// The result of a measurement.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct KernelReport {
    /// Entries read.
    pub entries_in: u64,
    /// Entries that the merge wrote, or that the scan returned.
    pub entries_out: u64,
    /// Encoded bytes read.
    pub bytes_in: u64,
    /// Encoded bytes written; 0 for a scan.
    pub bytes_out: u64,
    /// Time of the merge or scan.
    pub seconds: f64,
}

impl KernelReport {
    /// Entries read per second.
    #[must_use]
    pub fn entries_per_s(&self) -> f64 {
        self.entries_in as f64 / self.seconds
    }
}

/// Encoded runs, newest first. They can be merged any number of times.
#[derive(Debug)]
pub struct Kernel {
    options: KernelOptions,
    runs: Vec<Arc<EncodedRun>>,
}

#[derive(Debug)]
struct EncodedRun {
    bytes: Vec<u8>,
    /// The offset of each frame, and the end of the last one.
    offsets: Vec<usize>,
    seq: SeqNo,
}

impl Kernel {
    /// Encodes the runs.
    ///
    /// # Errors
    /// Internal if a codec fails.
    pub fn new(options: KernelOptions) -> Result<Self> {
        let mut prng = Prng::new(options.seed);
        let per_run = options.entries / options.runs.max(1);
        let mut runs = Vec::new();
        for run in 0..options.runs {
            let mut rows: Vec<([u8; 24], SeqNo)> = (0..per_run)
                .map(|i| (run * per_run + i) as u64)
                .map(|id| (row_key(id, &mut prng), SeqNo(id + 1)))
                .collect();
            rows.sort_unstable();
            runs.push(Arc::new(EncodedRun::new(&rows, &options)?));
        }
        runs.reverse();
        Ok(Self { options, runs })
    }

    /// Merges the runs once and writes the blocks of the base to `out`. Reuse the same `out`, so
    /// that a measurement does not include its allocation.
    ///
    /// # Errors
    /// Errors of decoding or encoding; none is expected.
    pub fn merge(&self, out: &mut Vec<u8>) -> Result<KernelReport> {
        out.clear();
        let sources =
            self.runs.iter().map(|run| Box::new(RunSource::new(run)) as Box<dyn Source>).collect();
        let fold = FoldOptions {
            snapshots: Arc::from([]),
            range_deletes: RangeDeletes::empty(),
            at_base: true,
            update: None,
        };
        let block = BlockOptions {
            codec: self.options.codecs.1,
            per_entry_seqs: self.options.per_entry_seqs.1,
            ..BlockOptions::default()
        };
        let clock = SystemClock::new();
        let began = clock.now();
        let mut merge = FoldMerge::new(sources, fold)?;
        let mut builder = BlockBuilder::new(block);
        while merge.next()? {
            builder.add(merge.key(), merge.seq(), merge.kind(), merge.value());
            if builder.raw_bytes() >= self.options.block_bytes.1 {
                builder.finish(out)?;
            }
        }
        if !builder.is_empty() {
            builder.finish(out)?;
        }
        let seconds = clock.now().since(began).as_secs_f64();
        let stats = merge.stats();
        Ok(KernelReport {
            entries_in: stats.entries_in,
            entries_out: stats.entries_out,
            bytes_in: self.runs.iter().map(|run| run.bytes.len() as u64).sum(),
            bytes_out: out.len() as u64,
            seconds,
        })
    }
}

impl Kernel {
    /// Reads the newest `runs` runs as a cursor does: merges them and resolves each key for a
    /// reader that sees all commits.
    ///
    /// # Errors
    /// Errors of decoding; none is expected.
    pub fn scan(&self, runs: usize) -> Result<KernelReport> {
        let runs = &self.runs[..runs.min(self.runs.len())];
        let sources =
            runs.iter().map(|run| Box::new(RunSource::new(run)) as Box<dyn Source>).collect();
        let clock = SystemClock::new();
        let began = clock.now();
        let mut merge = VisibleMerge::new(sources, VisibleOptions::new(SeqNo::MAX));
        let mut key_bytes = 0;
        while merge.next()? {
            key_bytes += merge.key().len() + merge.value().len();
        }
        std::hint::black_box(key_bytes);
        let seconds = clock.now().since(began).as_secs_f64();
        let stats = merge.stats();
        Ok(KernelReport {
            entries_in: stats.entries_in,
            entries_out: stats.entries_out,
            bytes_in: runs.iter().map(|run| run.bytes.len() as u64).sum(),
            bytes_out: 0,
            seconds,
        })
    }
}

/// Encodes the runs, merges them `rounds` times, and returns the median round.
///
/// # Errors
/// As [`Kernel::merge`].
pub fn run(options: KernelOptions, rounds: usize) -> Result<KernelReport> {
    let kernel = Kernel::new(options)?;
    let mut out = Vec::new();
    // The first round is not measured: it allocates the memory of the output.
    let mut reports = vec![kernel.merge(&mut out)?];
    for round in 0..rounds {
        let report = kernel.merge(&mut out)?;
        if round == 0 {
            reports.clear();
        }
        reports.push(report);
    }
    reports.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    Ok(reports[reports.len() / 2])
}

/// Returns the key of row `id` in the third secondary tree. The date grows by one every 1,000 rows.
fn row_key(id: u64, prng: &mut Prng) -> [u8; 24] {
    let mut key = [0; 24];
    key[..4].copy_from_slice(&(prng.below(50_000) as u32).to_be_bytes());
    key[4..12].copy_from_slice(&(id / 1_000).to_be_bytes());
    key[12..16].copy_from_slice(&(prng.below(100_000) as u32).to_be_bytes());
    key[16..].copy_from_slice(&id.to_be_bytes());
    key
}

impl EncodedRun {
    fn new(rows: &[([u8; 24], SeqNo)], options: &KernelOptions) -> Result<Self> {
        let mut builder = BlockBuilder::new(BlockOptions {
            codec: options.codecs.0,
            per_entry_seqs: options.per_entry_seqs.0,
            ..BlockOptions::default()
        });
        let mut run = Self { bytes: Vec::new(), offsets: vec![0], seq: SeqNo(0) };
        for (key, seq) in rows {
            builder.add(key, *seq, MessageKind::Put, &[]);
            run.seq = run.seq.max(*seq);
            if builder.raw_bytes() >= options.block_bytes.0 {
                builder.finish(&mut run.bytes)?;
                run.offsets.push(run.bytes.len());
            }
        }
        if !builder.is_empty() {
            builder.finish(&mut run.bytes)?;
            run.offsets.push(run.bytes.len());
        }
        Ok(run)
    }
}

/// Decodes a run chunk by chunk.
struct RunSource {
    run: Arc<EncodedRun>,
    frame: usize,
    block: Option<Block>,
    at: usize,
}

/// Entries of a chunk: so few that the chunks of eight sources, with the offset-value codes that
/// the merge computes for their keys, fit the second-level cache.
const CHUNK_ENTRIES: usize = 512;

impl RunSource {
    fn new(run: &Arc<EncodedRun>) -> Self {
        Self { run: Arc::clone(run), frame: 0, block: None, at: 0 }
    }
}

impl Source for RunSource {
    fn next_chunk(&mut self, chunk: &mut Chunk) -> Result<bool> {
        loop {
            if let Some(block) = &self.block
                && self.at < block.len()
            {
                let end = block.len().min(self.at + CHUNK_ENTRIES);
                block.fill(self.at..end, self.run.seq, chunk);
                self.at = end;
                return Ok(true);
            }
            let Some([start, end]) = self.run.offsets.get(self.frame..self.frame + 2) else {
                chunk.clear();
                return Ok(false);
            };
            let place = Place { file: "kernel", offset: *start as u64 };
            self.block = Some(Block::decode(&self.run.bytes[*start..*end], &place)?);
            self.frame += 1;
            self.at = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_keeps_every_entry_in_order() {
        for codec in [Codec::None, Codec::Zstd(1)] {
            let kernel = Kernel::new(KernelOptions::new(20_000, codec)).unwrap();
            let mut out = Vec::new();
            let report = kernel.merge(&mut out).unwrap();
            assert_eq!((report.entries_in, report.entries_out), (20_000, 20_000));
            let (mut at, mut count) = (0, 0);
            let mut chunk = Chunk::new();
            let mut last = Vec::new();
            while at < out.len() {
                let end = at + frondb_block::frame_len(&out[at..]).unwrap();
                let block =
                    Block::decode(&out[at..end], &Place { file: "out", offset: 0 }).unwrap();
                block.fill(0..block.len(), SeqNo(1), &mut chunk);
                for i in 0..chunk.len() {
                    assert!(last < chunk.key(i).to_vec());
                    last = chunk.key(i).to_vec();
                }
                count += chunk.len();
                at = end;
            }
            assert_eq!(count, 20_000);
        }
    }
}
