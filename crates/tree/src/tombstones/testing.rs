//! Shared helpers of the tests of tombstones.

use frondb_core::{MessageKind, SeqNo};
use frondb_memtable::{Entry, Memtable};

/// Adds `more` deletes, of keys above all keys of the memtable.
pub(super) fn delete(memtable: &Memtable, more: u64) {
    for at in memtable.deletes()..memtable.deletes() + more {
        let (key, seq) = (&at.to_be_bytes(), SeqNo(at + 1));
        memtable.insert_batch(&[Entry { key, seq, kind: MessageKind::Delete, value: &[] }]);
    }
}
