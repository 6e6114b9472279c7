//! Committing a batch.
//!
//! ```text
//! throttle -> large values -> [commit lock: append to the log, hand it to the kernel, insert into
//! memtables, publish] -> freeze if the buffer is full -> wait for the disk, if asked
//! ```
//!
//! One commit at a time holds the lock, so SeqNos, log positions and memtables agree (rule 8).
//! The record is in the kernel before a message of it is in a memtable: a commit that fails
//! changed nothing, and what a reader sees survives kill -9. Waiting for the disk happens without
//! the lock, so that one sync serves many (the log's group commit).

use frondb_core::codec::Reader;
use frondb_core::sync::atomic::Ordering;
use frondb_core::sync::{Arc, Mutex};
use frondb_core::{Error, ErrorKind, Lsn, MessageKind, Result, SeqNo, TreeId};
use frondb_memtable::Entry;
use frondb_space::Extent;

use crate::attach::{Attachment, parts_of};
use crate::batch::{Batch, Section};
use crate::blob::{discard, write_values};
use crate::env::Env;
use crate::hook::CommitInfo;
use crate::options::Durability;
use crate::pending;
use frondb_records::{
    Op, decode_op, encode_batch_head, encode_commit_head, encode_section_head, range_delete,
};
use frondb_tree::TreeCore;
use frondb_tree::tombstones::EmptyRanges;

/// What a commit uses again and again; under the commit lock.
#[derive(Default)]
pub(crate) struct CommitScratch {
    heads: Vec<u8>,
    head_ends: Vec<usize>,
}

/// The commit lock.
#[derive(Default)]
pub(crate) struct Committer {
    lock: Mutex<CommitScratch>,
}

/// A commit that is in the memtables.
pub(crate) struct Committed {
    /// What to wait for to make it durable.
    pub(crate) end: Lsn,
    /// The trees it has messages for.
    pub(crate) trees: Vec<Arc<TreeCore>>,
    /// The trees that got runs, to be flushed.
    pub(crate) attached: Vec<Arc<TreeCore>>,
}

/// What a commit brings, under one record.
#[derive(Clone, Copy)]
pub(crate) struct Commit<'a> {
    /// The transaction; 0 for a batch.
    pub(crate) txn: u64,
    /// What is on disk, pending already.
    pub(crate) attachments: &'a [Attachment],
    /// What goes into memtables.
    pub(crate) sections: &'a [Messages<'a>],
}

impl Commit<'_> {
    /// How many SeqNos it takes.
    pub(crate) fn numbers(&self) -> u64 {
        self.attachments.iter().map(|part| part.numbers).sum::<u64>()
            + self.sections.iter().map(|section| section.count).sum::<u64>()
    }
}

impl Committer {
    /// Runs `f` while no commit is under way.
    pub(crate) fn exclusive<T>(&self, f: impl FnOnce() -> T) -> T {
        let _lock = self.lock.lock();
        f()
    }

    /// Logs and inserts a batch.
    pub(crate) fn commit(&self, env: &Env, batch: &Batch) -> Result<Committed> {
        if let Some(error) = &batch.error {
            return Err(error.clone());
        }
        if batch.engine.is_some_and(|engine| engine != env.id) {
            return Err(Error::invalid("the batch holds messages for another open database"));
        }
        if batch.large.is_empty() {
            return self.commit_sections(env, &sections_of(&batch.sections), &mut Vec::new());
        }
        let written = write_values(&env.runs.space, batch)?;
        let mut values = written.values;
        let sections = sections_of(&written.sections);
        self.commit_sections(env, &sections, &mut values).inspect_err(|_| {
            discard(values, &env.runs.space);
        })
    }

    /// Logs and inserts messages. Takes `values`, the extents of large values that they refer to,
    /// unless it fails, and then has changed nothing.
    pub(crate) fn commit_sections(
        &self,
        env: &Env,
        sections: &[Messages<'_>],
        values: &mut Vec<(TreeId, Vec<Extent>)>,
    ) -> Result<Committed> {
        self.commit_with(env, Commit { txn: 0, attachments: &[], sections }, values)
    }

    /// As [`commit_sections`](Self::commit_sections), with parts on disk beside the messages. Their
    /// trees are flushed soon (`Shared::flush_attached`).
    pub(crate) fn commit_with(
        &self,
        env: &Env,
        commit: Commit<'_>,
        values: &mut Vec<(TreeId, Vec<Extent>)>,
    ) -> Result<Committed> {
        let mut lock = self.lock.lock();
        env.check()?;
        check_trees(commit.sections)?;
        pending::check_trees(commit.attachments)?;
        // Where the log cannot say whether it has the record, nothing may be given up.
        let (first, start, end) =
            log(env, &mut lock, commit).inspect_err(|error| env.poison_if_unknown(error))?;
        enter(env, commit, first, (start, end), values)
    }
}

/// What follows the log: puts a commit into its trees and publishes it. REQUIRES: the commit lock.
pub(crate) fn enter(
    env: &Env,
    commit: Commit<'_>,
    first: SeqNo,
    lsns: (Lsn, Lsn),
    values: &mut Vec<(TreeId, Vec<Extent>)>,
) -> Result<Committed> {
    let Commit { txn, attachments, sections } = commit;
    let last = SeqNo(first.get() + commit.numbers().saturating_sub(1));
    let trees = sections.iter().map(|section| section.tree);
    for tree in trees.chain(attachments.iter().map(|part| &part.tree)) {
        tree.note_commit(last);
    }
    let mut seq = first;
    for (attachment, part) in attachments.iter().zip(0..) {
        let base = SeqNo(seq.get() - 1);
        // A later commit to it is behind this one in the log.
        attachment.tree.has_come();
        attachment.tree.empty_ranges.end_all();
        attachment.tree.attach(attachment.source(env, txn, part, base, lsns));
        seq = SeqNo(seq.get() + attachment.numbers);
    }
    for section in sections {
        let slot = Arc::clone(&section.tree.version().active);
        slot.logged(lsns.0, lsns.1);
        let empty_ranges = &section.tree.empty_ranges;
        let watch = empty_ranges.is_watched().then_some(empty_ranges);
        insert(&slot.memtable, (section.bytes, section.count), &mut seq, watch)?;
    }
    for (id, extents) in values.drain(..) {
        if let Some(section) = sections.iter().find(|section| section.tree.id == id) {
            section.tree.version().active.add_value(extents);
        }
    }
    let count = commit.numbers();
    if count > 0 {
        let reserved = env.oracle.reserve(count);
        debug_assert_eq!(reserved, first);
        env.oracle.publish(first, last);
        env.hook.call(&CommitInfo { transaction: txn, seq: last, end: lsns.1 });
    }
    env.applied.store(lsns.1.get(), Ordering::Release);
    Ok(Committed {
        end: lsns.1,
        trees: sections.iter().map(|section| Arc::clone(section.tree)).collect(),
        attached: attachments.iter().map(|part| Arc::clone(&part.tree)).collect(),
    })
}

/// Messages for one tree, as they are logged; at least one.
#[derive(Clone, Copy)]
pub(crate) struct Messages<'a> {
    pub(crate) tree: &'a Arc<TreeCore>,
    pub(crate) bytes: &'a [u8],
    pub(crate) count: u64,
}

pub(crate) fn sections_of(sections: &[Section]) -> Vec<Messages<'_>> {
    let filled = sections.iter().filter(|section| section.count > 0);
    let messages = filled.map(|section| Messages {
        tree: section.handle.core(),
        bytes: &section.bytes,
        count: u64::from(section.count),
    });
    messages.collect()
}

/// Makes a commit as durable as was asked.
pub(crate) fn make_durable(env: &Env, end: Lsn, durability: Durability) -> Result<()> {
    let result = match durability {
        Durability::NoSync => Ok(()),
        Durability::Sync => env.wal.commit_to(end),
    };
    if let Err(error) = &result
        && error.kind() != ErrorKind::NoSpace
    {
        env.poison(error);
    }
    result
}

fn check_trees(sections: &[Messages<'_>]) -> Result<()> {
    match sections.iter().find(|section| section.tree.is_dropped()) {
        None => Ok(()),
        Some(section) => {
            let name = section.tree.name.read();
            Err(Error::new(ErrorKind::NotFound, format!("tree {:?} was dropped", &**name)))
        }
    }
}

/// Appends the record and hands it to the kernel. Returns the first SeqNo, and the record's Lsns.
fn log(env: &Env, scratch: &mut CommitScratch, commit: Commit<'_>) -> Result<(SeqNo, Lsn, Lsn)> {
    let Commit { txn, attachments, sections } = commit;
    let first = env.oracle.last_reserved().next();
    if sections.is_empty() && attachments.is_empty() {
        let end = env.wal.end_lsn();
        return Ok((first, end, end));
    }
    let CommitScratch { heads, head_ends } = scratch;
    heads.clear();
    head_ends.clear();
    if attachments.is_empty() {
        encode_batch_head(heads, first, sections.len());
    } else {
        encode_commit_head(heads, txn, first, &parts_of(attachments), sections.len());
    }
    let bytes = append(env, heads, head_ends, sections)?;
    Ok((first, bytes.0, bytes.1))
}

/// Appends a record that begins with `heads` and ends with sections, and hands it to the kernel.
/// Returns its Lsns. REQUIRES: the commit lock.
pub(crate) fn append(
    env: &Env,
    heads: &mut Vec<u8>,
    head_ends: &mut Vec<usize>,
    sections: &[Messages<'_>],
) -> Result<(Lsn, Lsn)> {
    for section in sections {
        encode_section_head(heads, section.tree.id, section.count, section.bytes.len());
        head_ends.push(heads.len());
    }
    let mut parts: Vec<&[u8]> = Vec::with_capacity(sections.len() * 2 + 1);
    let mut from = 0;
    for (section, &to) in sections.iter().zip(&*head_ends) {
        parts.push(&heads[from..to]);
        parts.push(section.bytes);
        from = to;
    }
    parts.push(&heads[from..]);
    let appended = env.wal.append(&parts)?;
    env.wal.write_to(appended.end)?;
    Ok((appended.start, appended.end))
}

/// Messages decoded at a time: a large batch should not need its size again for their headers.
const INSERT_ENTRIES: usize = 8192;

/// Decodes a section, its bytes and how many messages they are, into a memtable; `seq` goes on by one a
/// message. Tells `watch` which keys get values.
pub(crate) fn insert(
    memtable: &frondb_memtable::Memtable,
    (bytes, count): (&[u8], u64),
    seq: &mut SeqNo,
    watch: Option<&EmptyRanges>,
) -> Result<()> {
    let insert_batch = |entries: &[Entry<'_>]| {
        if let Some(empty_ranges) = watch {
            let puts = entries.iter().filter(|entry| entry.kind != MessageKind::Delete);
            empty_ranges.note_puts(puts.map(|entry| entry.key));
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
