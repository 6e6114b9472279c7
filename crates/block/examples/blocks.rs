//! Prints the size and the speed of blocks: `cargo run --release -p frondb-block --example blocks
//! -- [shape]`.
//!
//! The entries are those of iiBench (rows by primary key, and one secondary index), and rows with
//! keys and values of varied lengths. Times are CPU time of one thread in ns per entry (find: per
//! call), as the mean of many rounds.

#![allow(clippy::print_stdout)]

use frondb_block::{Block, BlockBuilder, BlockKind, BlockOptions, Codec, Place, decode_frame};
use frondb_core::prng::Prng;
use frondb_core::{Chunk, MessageKind, Result, SeqNo};

type Entry = (Vec<u8>, Vec<u8>);

const ENTRIES: u64 = 200_000;

fn primary(prng: &mut Prng) -> Vec<Entry> {
    let row = |id: u64| {
        let mut value = (id / 1_000).to_be_bytes().to_vec();
        for limit in [1_000, 100_000, 10_000, 50_000] {
            value.extend_from_slice(&(prng.below(limit) as u32).to_be_bytes());
        }
        let mut noise = [0; 32];
        prng.fill(&mut noise);
        value.extend_from_slice(&noise);
        value.extend_from_slice(&[b'x'; 32]);
        (id.to_be_bytes().to_vec(), value)
    };
    (1 << 20..(1 << 20) + ENTRIES).map(row).collect()
}

fn secondary(prng: &mut Prng) -> Vec<Entry> {
    let mut row = |id: u64| {
        let mut key = (prng.below(50_000 / 20) as u32).to_be_bytes().to_vec();
        key.extend_from_slice(&(id / 1_000).to_be_bytes());
        key.extend_from_slice(&(prng.below(100_000) as u32).to_be_bytes());
        key.extend_from_slice(&id.to_be_bytes());
        (key, Vec::new())
    };
    let mut entries: Vec<Entry> = (0..ENTRIES).map(|i| row(i * 20)).collect();
    entries.sort();
    entries
}

fn varied(prng: &mut Prng) -> Vec<Entry> {
    const WORDS: [&str; 8] = ["tree", "fractal", "of", "messages", "buffer", "leaf", "is", "the"];
    let row = |id: u64| {
        let key = format!("/home/user{:03}/photos/{}.jpg", prng.below(400), id);
        let words = 3 + prng.index(12);
        let value: Vec<&str> = (0..words).map(|_| WORDS[prng.index(WORDS.len())]).collect();
        (key.into_bytes(), value.join(" ").into_bytes())
    };
    let mut entries: Vec<Entry> = (0..ENTRIES).map(row).collect();
    entries.sort();
    entries
}

/// CPU time of this thread in nanoseconds.
fn processor_nanos() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0.0)
}

/// Returns the mean time of many rounds of `work`, in ns for each of the `count` items of a round.
/// One round is too short, because the system measures CPU time in ticks.
fn mean(count: u64, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let before = processor_nanos();
    let (mut rounds, mut spent) = (0, 0.0);
    while rounds < 3 || (spent < 2e8 && rounds < 1_000) {
        work()?;
        rounds += 1;
        spent = processor_nanos() - before;
    }
    Ok(spent / f64::from(rounds) / count as f64)
}

fn encode(entries: &[Entry], codec: Codec, block_bytes: usize) -> Result<Vec<Vec<u8>>> {
    let options = BlockOptions { codec, per_entry_seqs: false, ..BlockOptions::default() };
    let mut builder = BlockBuilder::new(options);
    let mut frames = Vec::new();
    for (i, (key, value)) in entries.iter().enumerate() {
        builder.add(key, SeqNo(1), MessageKind::Put, value);
        if builder.raw_bytes() >= block_bytes || i + 1 == entries.len() {
            let mut frame = Vec::new();
            builder.finish(&mut frame)?;
            frames.push(frame);
        }
    }
    Ok(frames)
}

fn measure(name: &str, entries: &[Entry], codec: Codec, block_bytes: usize) -> Result<()> {
    let place = Place { file: "memory", offset: 0 };
    let mut frames = Vec::new();
    let encode_ns = mean(ENTRIES, || {
        frames = encode(entries, codec, block_bytes)?;
        Ok(())
    })?;
    // The additional work of an encoder that verifies; `encode` includes it for codecs that are not
    // fast.
    let verify_ns = mean(ENTRIES, || {
        frames.iter().try_for_each(|frame| decode_frame(frame, BlockKind::Data, &place).map(drop))
    })?;
    // Each block is dropped immediately, so its memory is reused, as in a full cache.
    let decode_ns = mean(ENTRIES, || {
        frames.iter().try_for_each(|frame| Block::decode(frame, &place).map(drop))
    })?;
    let blocks: Vec<Block> =
        frames.iter().map(|frame| Block::decode(frame, &place)).collect::<Result<_>>()?;
    let mut chunk = Chunk::new();
    let fill_ns = mean(ENTRIES, || {
        blocks.iter().for_each(|block| block.fill(0..block.len(), SeqNo(1), &mut chunk));
        Ok(())
    })?;
    let mut prng = Prng::new(3);
    let starts: Vec<usize> = blocks
        .iter()
        .scan(0, |at, block| {
            *at += block.len();
            Some(*at)
        })
        .collect();
    let sought: Vec<(usize, usize)> = (0..20_000)
        .map(|_| prng.index(entries.len()))
        .map(|entry| (entry, starts.partition_point(|&end| end <= entry)))
        .collect();
    let mut found = 0;
    let find_ns = mean(20_000, || {
        for &(entry, block) in &sought {
            found += blocks[block].find(&entries[entry].0).len();
        }
        Ok(())
    })?;
    assert!(found.is_multiple_of(20_000));
    let bytes: usize = frames.iter().map(Vec::len).sum();
    let memory: usize = blocks.iter().map(Block::memory_bytes).sum();
    println!(
        "{name:10} {:7} {:4} KiB  {:6.2} bytes, {:6.2} in memory  encode {encode_ns:6.1}  verify \
         {verify_ns:5.1}  decode {decode_ns:6.1}  fill {fill_ns:5.1}  find {find_ns:6.1}",
        codec.to_string(),
        block_bytes / 1024,
        bytes as f64 / ENTRIES as f64,
        memory as f64 / ENTRIES as f64,
    );
    Ok(())
}

fn main() -> Result<()> {
    let mut prng = Prng::new(1);
    let shapes = [
        ("primary", primary(&mut prng)),
        ("secondary", secondary(&mut prng)),
        ("varied", varied(&mut prng)),
    ];
    let only = std::env::args().nth(1);
    for (name, entries) in &shapes {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        for codec in [
            Codec::None,
            Codec::Lz4,
            Codec::Zstd(1),
            Codec::Zstd(3),
            Codec::Zstd(6),
            Codec::Zlib(1),
            Codec::Zlib(6),
        ] {
            measure(name, entries, codec, 16 * 1024)?;
        }
        measure(name, entries, Codec::Lz4, 32 * 1024)?;
        measure(name, entries, Codec::Lzma(6), 128 * 1024)?;
        measure(name, entries, Codec::AGGRESSIVE, 128 * 1024)?;
    }
    Ok(())
}
