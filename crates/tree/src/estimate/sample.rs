//! [`Sample`]: the share of the messages near a key that is obsolete, which counts cannot show.
//!
//! A sample reads a block or two of each source. `strata.rs` chooses the keys.

use frondb_core::{Direction, MessageKind, Result, SeqNo};
use frondb_memtable::Memtable;

use crate::estimate::leaf::{LeafMessages, bounds, is_hidden};
use crate::estimate::share::share;
use crate::version::Version;

/// Number of messages that one sample reads.
pub(super) const SAMPLE_MESSAGES: u64 = 256;

/// Counts over those keys of which the samples have read all messages, or at least
/// `SAMPLE_MESSAGES / 2`.
#[derive(Clone, Copy, Default)]
pub(super) struct Sample {
    puts: u64,
    /// Puts that are obsolete because of a newer put or a range delete of a node.
    overwritten: u64,
    deletes: u64,
    /// Deletes that remove a put.
    met: u64,
    /// Messages that a range delete above the trunk hides.
    hidden: u64,
}

/// The messages of one key in a sample.
#[derive(Clone, Copy, Default)]
struct KeyMessages {
    puts: u64,
    deletes: u64,
    /// Whether the newest message is a put that no range delete hides.
    is_live: bool,
}

impl Sample {
    /// Takes a sample of the messages from `at` on, within the leaf that holds `at` and below `hi`.
    pub(super) fn take(
        version: &Version,
        snapshot: SeqNo,
        at: &[u8],
        hi: Option<&[u8]>,
    ) -> Result<Self> {
        let all = |_, memtable: &Memtable, lo: &[u8], hi: Option<&[u8]>| {
            let (from, to) = bounds(lo, hi);
            memtable.cursor(Direction::Forward, from, to, snapshot)
        };
        let LeafMessages { mut merge, above, in_nodes, .. } =
            LeafMessages::open(version, snapshot, at, hi, &all)?;
        let mut sample = Self::default();
        let mut key: Option<KeyMessages> = None;
        for seen in 0.. {
            let more = merge.next()?;
            if (!more || !merge.same_key())
                && let Some(key) = key.take()
            {
                sample.add(key);
            }
            if !more {
                return Ok(sample);
            }
            if seen >= SAMPLE_MESSAGES {
                break;
            }
            let (seq, kind) = (merge.seq(), merge.kind());
            if seq > snapshot {
                continue;
            }
            if seq < above.newest_covering(merge.key(), snapshot) {
                sample.hidden += 1;
                continue;
            }
            let is_put = kind != MessageKind::Delete;
            let is_newest = key.is_none();
            let key = key.get_or_insert_default();
            key.puts += u64::from(is_put);
            key.deletes += u64::from(!is_put);
            if is_newest {
                key.is_live = is_put && !is_hidden(&in_nodes, merge.key(), seq, snapshot);
            }
        }
        // The sample has not seen all messages of this key, so the key counts only if it has very
        // many messages.
        if let Some(key) = key
            && key.puts + key.deletes >= SAMPLE_MESSAGES / 2
        {
            sample.add(key);
        }
        Ok(sample)
    }

    fn add(&mut self, key: KeyMessages) {
        self.puts += key.puts;
        self.deletes += key.deletes;
        if key.is_live {
            self.overwritten += key.puts - 1;
        } else if key.puts > 0 && key.deletes > 0 {
            self.overwritten += key.puts - 1;
            self.met += 1;
        } else {
            // A range delete of a node hides all puts of the key.
            self.overwritten += key.puts;
        }
    }

    /// Adds another sample.
    pub(super) fn join(&mut self, other: Self) {
        let Self { puts, overwritten, deletes, met, hidden } = other;
        self.puts += puts;
        self.overwritten += overwritten;
        self.deletes += deletes;
        self.met += met;
        self.hidden += hidden;
    }

    /// Returns the number of entries per message; `None` if the sample has no message.
    pub(super) fn live_per_message(&self) -> Option<f64> {
        let messages = self.puts + self.deletes + self.hidden;
        let live = self.puts.saturating_sub(self.overwritten + self.met);
        (messages > 0).then(|| live as f64 / messages as f64)
    }

    /// Returns whether the sample saw nothing but hidden messages.
    pub(super) fn is_empty(&self) -> bool {
        self.puts + self.deletes == 0
    }

    /// Returns the number of deletes among `messages`, in proportion.
    pub(super) fn deletes_of(&self, messages: u64) -> u64 {
        share(messages, self.deletes, self.puts + self.deletes)
    }

    /// Returns the number of entries that result from `puts` puts and `deletes` deletes, in
    /// proportion to the sample.
    pub(super) fn live(&self, puts: u64, deletes: u64) -> u64 {
        let overwritten = share(puts, self.overwritten, self.puts);
        // Without a delete in the sample, assume that each delete removes a put, as most do.
        let met = if self.deletes == 0 { deletes } else { share(deletes, self.met, self.deletes) };
        puts.saturating_sub(overwritten).saturating_sub(met)
    }
}
