//! The writes of a prepared transaction: keys, ranges, and extents on disk.

use frondb_core::codec::Reader;
use frondb_core::sync::Arc;
use frondb_core::{Chunk, Direction, Error, Result, Source};
use frondb_records::{Op, decode_op};
use frondb_run::format::ValueRef;
use frondb_run::{ReadMode, RunCursor};
use frondb_space::Extent;
use frondb_tree::TreeCore;

use super::set::Prepared;

/// A write of a prepared transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written<'a> {
    /// A key.
    Key(&'a [u8]),
    /// The keys at or above the first key and below the second; `None` means no upper bound.
    Range(&'a [u8], Option<&'a [u8]>),
    /// The number of keys that a bulk statement wrote. The statement locked the whole tree.
    Tree(u64),
}

/// Calls `visit` for each key and each deleted range that a prepared transaction has written, and
/// for each tree of a bulk statement, so that the caller can lock them again after a restart. Does
/// nothing if another thread has just decided the transaction.
///
/// # Errors
/// `NotFound`; errors of reading a private run; errors of `visit`.
pub fn for_each_write(
    context: &Prepared,
    xid: &[u8],
    visit: &mut dyn FnMut(&Arc<TreeCore>, Written<'_>) -> Result<()>,
) -> Result<()> {
    let txn = context.set.find(xid)?;
    let writes = txn.writes.lock();
    let Some(writes) = &*writes else { return Ok(()) };
    for part in &writes.attachments {
        if part.are_base {
            let entries = part.runs.iter().map(|run| run.meta().entries).sum();
            visit(&part.tree, Written::Tree(entries))?;
            continue;
        }
        for run in &part.runs {
            let (run, all) = (Arc::clone(run), (Direction::Forward, ReadMode::Merge));
            let mut cursor = RunCursor::new(run, all.0, None, None, all.1)?;
            let mut chunk = Chunk::new();
            while cursor.next_chunk(&mut chunk)? {
                for i in 0..chunk.len() {
                    visit(&part.tree, Written::Key(chunk.key(i)))?;
                }
            }
        }
        for delete in &part.range_deletes {
            visit(&part.tree, Written::Range(&delete.lo, delete.hi.as_deref()))?;
        }
    }
    for section in &writes.sections {
        let mut visited = Ok(());
        for_each_op(&section.bytes, &mut |op| {
            if visited.is_ok() {
                visited = match op {
                    Op::Point { key, .. } => visit(&section.tree, Written::Key(key)),
                    Op::RangeDelete { lo, hi } => visit(&section.tree, Written::Range(lo, hi)),
                };
            }
        })?;
        visited?;
    }
    Ok(())
}

/// Returns the bytes in the extents of prepared transactions.
#[cfg(feature = "testing")]
pub fn extent_bytes(context: &Prepared) -> u64 {
    let all: Vec<_> = context.set.by_xid.lock().values().cloned().collect();
    let mut bytes = 0;
    for txn in all {
        let writes = txn.writes.lock();
        let Some(writes) = &*writes else { continue };
        let parts = writes.attachments.iter();
        let of_runs = parts.clone().flat_map(|part| &part.runs);
        let of_runs = of_runs.flat_map(|run| &run.meta().extents);
        let of_parts = parts.flat_map(|part| part.values.iter().flatten());
        let of_record = writes.values.iter().flat_map(|(_, extents)| extents);
        bytes += of_runs.chain(of_parts).chain(of_record).map(|extent| extent.bytes()).sum::<u64>();
    }
    bytes
}

fn for_each_op(bytes: &[u8], visit: &mut dyn FnMut(Op<'_>)) -> Result<()> {
    let mut input = Reader::new(bytes);
    while !input.is_empty() {
        let op = decode_op(&mut input);
        visit(op.map_err(|_| Error::internal("prepared messages cannot be decoded"))?);
    }
    Ok(())
}

/// Returns the extents of each large value to which the encoded messages refer.
pub fn values_of(bytes: &[u8]) -> Result<Vec<Vec<Extent>>> {
    let mut values = Vec::new();
    let mut sound = true;
    for_each_op(bytes, &mut |op| {
        if let Op::Point { kind: frondb_core::MessageKind::PutRef, value, .. } = op {
            match ValueRef::decode(value) {
                Ok(reference) => values.push(reference.extents),
                Err(_) => sound = false,
            }
        }
    })?;
    if sound {
        Ok(values)
    } else {
        Err(Error::internal("a prepared message has a bad reference to a large value"))
    }
}
