//! Logging a memtable again (rule 10). If a small memtable is the reason why an old part of the log
//! is kept, its messages are copied to the end of the log. So the log stays short although
//! thousands of idle trees are not flushed.

use frondb_core::{Chunk, Result, SeqNo, Source, TreeId};
use frondb_memtable::Memtable;
use frondb_records::{encode_op, encode_range_delete, encode_relog_head};
use frondb_tree::TreeCore;

use crate::committer::{CommitLatch, Committer};

impl CommitLatch<'_> {
    /// Logs the messages of a tree's active memtable again. Does nothing while the tree has a
    /// frozen memtable: messages of the active memtable must not overtake the older messages of the
    /// frozen one.
    ///
    /// # Errors
    /// As [`frondb_wal::Wal::append`] and [`frondb_wal::Wal::write_to`].
    pub fn relog(&mut self, tree: &TreeCore) -> Result<()> {
        let version = tree.version();
        let active = &version.active;
        if active.is_empty() || tree.is_dropped() || !version.frozen.is_empty() {
            return Ok(());
        }
        let (head, body) = encode_relog(tree.id, &active.memtable)?;
        let Committer { log, wal, .. } = self.committer;
        let durable = wal.durable_lsn();
        let appended = wal.append(&[&head, &body])?;
        wal.write_to(appended.end)?;
        active.logged_again(appended.start, appended.end, durable);
        log.set_applied(appended.end);
        self.committer.add_relog();
        Ok(())
    }
}

/// Encodes the head and the body of the record that logs a memtable again.
fn encode_relog(tree: TreeId, memtable: &Memtable) -> Result<(Vec<u8>, Vec<u8>)> {
    // Sort by SeqNo: a memtable accepts messages in this order only.
    let mut messages: Vec<(SeqNo, Vec<u8>)> = Vec::new();
    let (mut source, mut chunk) = (memtable.scan_all(), Chunk::new());
    while source.next_chunk(&mut chunk)? {
        for i in 0..chunk.len() {
            let mut op = Vec::new();
            encode_op(&mut op, chunk.kinds[i], chunk.key(i), chunk.value(i));
            messages.push((chunk.seqs[i], op));
        }
    }
    for delete in memtable.range_deletes().iter() {
        let mut op = Vec::new();
        encode_range_delete(&mut op, &delete.lo, delete.hi.as_deref());
        messages.push((delete.seq, op));
    }
    messages.sort_unstable_by_key(|message| message.0);
    let (mut head, mut body) = (Vec::new(), Vec::new());
    encode_relog_head(&mut head, tree, messages.len() as u64);
    for (seq, op) in messages {
        frondb_core::codec::put_varint(&mut body, seq.get());
        body.extend_from_slice(&op);
    }
    Ok((head, body))
}
