//! Entry points for fuzzing the decoders of this crate.

use frondb_core::codec::Reader;
use frondb_core::{Result, SeqNo, TreeId};

use crate::{
    Op, PrepareRecord, RecordVisitor, decode_edit, decode_history, decode_record, encode_edit,
    encode_history,
};

/// Accepts every record.
struct Ignore;

impl RecordVisitor for Ignore {
    fn relog(&mut self, _: TreeId) -> Result<()> {
        Ok(())
    }

    fn op(&mut self, _: TreeId, _: SeqNo, _: Op<'_>) -> Result<()> {
        Ok(())
    }

    fn attach(&mut self, _: u64, _: SeqNo, _: &[(TreeId, u64)]) -> Result<()> {
        Ok(())
    }

    fn prepare(&mut self, _: &PrepareRecord<'_>) -> Result<()> {
        Ok(())
    }

    fn commit_prepared(&mut self, _: u64, _: SeqNo) -> Result<()> {
        Ok(())
    }

    fn roll_back_prepared(&mut self, _: u64) -> Result<()> {
        Ok(())
    }
}

/// Decodes `data` as the note of a superblock; it may fail, but must not panic.
pub fn wear_note(data: &[u8]) {
    if let Some(history) = decode_history(data) {
        assert_eq!(decode_history(&encode_history(&history)), Some(history));
    }
}

/// Decodes `data` as the payload of a log record; it may fail, but must not panic.
pub fn wal_record(data: &[u8]) {
    let _ = decode_record(data, &mut Ignore);
}

/// Decodes `data` as an edit of the manifest. An edit that decodes must survive a round trip.
pub fn manifest_edit(data: &[u8]) {
    if let Ok(edit) = decode_edit(&mut Reader::new(data)) {
        let mut out = Vec::new();
        encode_edit(&mut out, &edit);
        assert_eq!(decode_edit(&mut Reader::new(&out)).as_ref(), Ok(&edit));
    }
}

/// The edits of these tests have no nodes and no runs. The crate `frondb` tests the decoder with
/// edits that have nodes and runs (`open/manifest_state_tests.rs`).
#[cfg(test)]
mod tests {
    use frondb_core::prng::Prng;
    use frondb_core::wear::{History, Sample, WriteCause, WriteSums};
    use frondb_core::{Lsn, MessageKind, NodeId, RangeDelete, RunId};
    use frondb_space::Extent;

    use super::*;
    use crate::{
        Edit, PendingPart, TreeOptions, encode_batch_head, encode_commit_head,
        encode_commit_prepared, encode_op, encode_prepare_head, encode_range_delete,
        encode_relog_head, encode_roll_back_prepared, encode_section_head,
    };

    const PARTS: [(TreeId, u64); 2] = [(TreeId(1), 5), (TreeId(2), 400)];

    fn batch() -> Vec<u8> {
        let mut out = Vec::new();
        encode_batch_head(&mut out, SeqNo(u64::MAX - 2), 2);
        with_sections(out)
    }

    fn commit() -> Vec<u8> {
        let mut out = Vec::new();
        encode_commit_head(&mut out, 7, SeqNo(u64::MAX - 9), &PARTS, 2);
        with_sections(out)
    }

    fn prepare() -> Vec<u8> {
        let mut out = Vec::new();
        encode_prepare_head(&mut out, 7, b"a name", &PARTS, 2);
        with_sections(out)
    }

    fn decided() -> [Vec<u8>; 2] {
        let mut out = [Vec::new(), Vec::new()];
        encode_commit_prepared(&mut out[0], 7, SeqNo(u64::MAX), 9);
        encode_roll_back_prepared(&mut out[1], 1 << 40);
        out
    }

    fn with_sections(mut out: Vec<u8>) -> Vec<u8> {
        let mut section = Vec::new();
        encode_op(&mut section, MessageKind::Put, b"key", b"value");
        encode_op(&mut section, MessageKind::Delete, b"key", b"");
        encode_range_delete(&mut section, b"a", Some(b"b"));
        for tree in [1, 2] {
            encode_section_head(&mut out, TreeId(tree), 3, section.len());
            out.extend_from_slice(&section);
        }
        out
    }

    fn relog() -> Vec<u8> {
        let mut out = Vec::new();
        encode_relog_head(&mut out, TreeId(7), 2);
        for seq in [3, 9] {
            frondb_core::codec::put_varint(&mut out, seq);
            encode_op(&mut out, MessageKind::Update, b"counter", b"+1");
        }
        out
    }

    /// Returns an edit of every kind, except the kinds that carry a run or a node.
    fn edits() -> Vec<Edit> {
        let tree = TreeId(3);
        let extents = vec![Extent { file: 1, page: 7, pages: 2 }];
        let range_delete = RangeDelete { lo: b"a".as_slice().into(), hi: None, seq: SeqNo(4) };
        let pending = PendingPart {
            txn: 9,
            part: 0,
            tree,
            offset: 5,
            numbers: 6,
            are_base: true,
            runs: Vec::new(),
            range_deletes: vec![range_delete],
            values: vec![extents.clone()],
        };
        let options = TreeOptions::default();
        vec![
            Edit::SetOptions { tree, options: options.clone() },
            Edit::CreateTree { tree, name: "t".into(), options, root: NodeId(1) },
            Edit::RenameTree { tree, name: "u".into() },
            Edit::CreatedBy { tree, txn: 9 },
            Edit::DropTree { tree },
            Edit::DropRun { tree, run: RunId(2) },
            Edit::DropNode { tree, node: NodeId(2) },
            Edit::SetRoot { tree, root: NodeId(3) },
            Edit::Flushed { tree, seq: SeqNo(u64::MAX) },
            Edit::AddValue { tree, extents: extents.clone() },
            Edit::DropValue { tree, first: extents[0] },
            Edit::Log { start: Lsn(5), durable: Lsn(6) },
            Edit::Pending(pending),
            Edit::EndPending { tree, txn: 9, part: 0 },
            Edit::Prepared { txn: 9, xid: b"x".as_slice().into(), logged: Lsn(4), parts: 1 },
            Edit::EndPrepared { txn: 9, logged: Lsn(4) },
            Edit::Ids { tree, run: RunId(2), node: NodeId(3), seq: SeqNo(4) },
        ]
    }

    #[test]
    fn no_bytes_make_the_reader_of_edits_panic() {
        let encoded = edits().into_iter().map(|edit| {
            let mut bytes = Vec::new();
            encode_edit(&mut bytes, &edit);
            assert_eq!(decode_edit(&mut Reader::new(&bytes)).as_ref(), Ok(&edit));
            bytes
        });
        let samples: Vec<Vec<u8>> = encoded.collect();
        frondb_testkit::fuzz::smoke(1, 20_000, &samples, manifest_edit);
    }

    #[test]
    fn no_bytes_make_the_reader_of_notes_panic() {
        let mut history = History::new(1_000);
        let mut samples = Vec::new();
        for minute in 0..9 {
            samples.push(encode_history(&history));
            let sums = WriteSums::default().with(WriteCause::Merge, 1 << (7 * minute));
            history.add(Sample { at: 1_000 + 600 * minute, sums });
        }
        frondb_testkit::fuzz::smoke(1, 20_000, &samples, wear_note);
    }

    #[test]
    fn no_bytes_make_the_reader_of_log_records_panic() {
        let [committed, rolled_back] = decided();
        for sample in [batch(), relog(), commit(), prepare(), committed, rolled_back] {
            assert!(decode_record(&sample, &mut Ignore).is_ok());
            for seed in 0..10_000 {
                let mut prng = Prng::new(seed);
                let mut bytes = sample.clone();
                for _ in 0..=prng.below(3) {
                    let at = prng.index(bytes.len());
                    match prng.below(3) {
                        0 => bytes[at] ^= 1 << prng.below(8),
                        1 => bytes[at] = prng.next_u32() as u8,
                        _ => bytes.insert(at, 0xff),
                    }
                }
                if prng.chance(1, 4) {
                    bytes.truncate(prng.index(bytes.len()));
                }
                wal_record(&bytes);
            }
        }
    }
}
