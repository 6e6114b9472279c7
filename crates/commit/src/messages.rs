//! [`Messages`]: the messages of a commit for one tree, and inserting them into a memtable.

use frondb_core::codec::Reader;
use frondb_core::sync::Arc;
use frondb_core::{Error, MessageKind, Result, SeqNo};
use frondb_memtable::{Entry, Memtable};
use frondb_records::{Op, decode_op, range_delete};
use frondb_tree::TreeCore;
use frondb_tree::tombstones::EmptyRanges;

use crate::batch::Section;

/// One or more messages for one tree, in the encoding of the log.
#[derive(Clone, Copy)]
pub struct Messages<'a> {
    /// The tree that the messages are for.
    pub tree: &'a Arc<TreeCore>,
    /// The encoded messages.
    pub bytes: &'a [u8],
    /// The number of messages.
    pub count: u64,
}

/// Returns the messages of a batch, without its empty sections.
#[must_use]
pub fn sections_of(sections: &[Section]) -> Vec<Messages<'_>> {
    let filled = sections.iter().filter(|section| section.count > 0);
    let messages = filled.map(|section| Messages {
        tree: &section.handle,
        bytes: &section.bytes,
        count: u64::from(section.count),
    });
    messages.collect()
}

/// Number of messages decoded at a time, so that the decoded headers of a large batch do not take
/// as much memory as the batch.
const INSERT_ENTRIES: usize = 8192;

/// Decodes the messages of a section, `count` messages in `bytes`, into a memtable. The messages
/// get the SeqNos from `seq` on, and `seq` advances by one for each. Notifies `watch`, the
/// known-empty ranges of the tree, of the keys that were put or updated.
///
/// # Errors
/// `Internal` if a message cannot be decoded.
pub fn insert(
    memtable: &Memtable,
    (bytes, count): (&[u8], u64),
    seq: &mut SeqNo,
    watch: Option<&EmptyRanges>,
) -> Result<()> {
    let insert_batch = |entries: &[Entry<'_>]| {
        if let Some(empty_ranges) = watch {
            let puts = entries.iter().filter(|entry| entry.kind != MessageKind::Delete);
            let newest = entries.last().map_or(SeqNo(0), |entry| entry.seq);
            empty_ranges.note_puts(puts.map(|entry| entry.key), newest);
        }
        memtable.insert_batch(entries);
    };
    let mut entries: Vec<Entry<'_>> = Vec::with_capacity(count.min(INSERT_ENTRIES as u64) as usize);
    let mut input = Reader::new(bytes);
    while !input.is_empty() {
        match decode_op(&mut input).map_err(|_| Error::internal("a batch cannot be decoded"))? {
            Op::Point { kind, key, value } => {
                entries.push(Entry { key, seq: *seq, kind, value });
                if entries.len() == INSERT_ENTRIES {
                    insert_batch(&entries);
                    entries.clear();
                }
            }
            Op::RangeDelete { lo, hi } => {
                insert_batch(&entries);
                entries.clear();
                memtable.add_range_delete(range_delete(lo, hi, *seq));
            }
        }
        *seq = seq.next();
    }
    insert_batch(&entries);
    Ok(())
}
