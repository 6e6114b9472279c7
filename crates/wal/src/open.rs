//! Opens a log: [`Wal::open`] begins a [`Replay`] of a directory, and [`Replay::finish`] turns the
//! replay into a [`Wal`] that can be appended to.

use frondb_core::clock::SharedClock;
use frondb_core::{Lsn, Result};
use frondb_device::SharedDevice;

use crate::format::DurableMark;
use crate::log::Wal;
use crate::mark::Mark;
use crate::options::WalOptions;
use crate::owner;
use crate::replay::{Replay, TornTail};
use crate::state::LogState;

impl Wal {
    /// Begins to read the log in `device`, which may also contain files with other names.
    ///
    /// `start` is the oldest Lsn whose record is still needed. It must be the `start` or `end` of a
    /// record, and the log must have been durable up to `start` when the caller recorded it.
    /// `known_durable` is the highest Lsn up to which the caller knows that the log was durable. A
    /// directory without segments is an empty log that begins at `start`.
    ///
    /// # Errors
    /// `Corruption` with file and offset if needed segments are missing or damaged; `Unsupported`
    /// for a newer format; `Invalid` for the log of another database or a bad option.
    pub fn open(
        device: SharedDevice,
        options: WalOptions,
        db_id: u128,
        start: Lsn,
        known_durable: Lsn,
        clock: SharedClock,
    ) -> Result<Replay> {
        Replay::open(device, options, db_id, start, known_durable, clock)
    }

    /// Creates the log after a replay that ended at `end`.
    fn resume(replay: Replay, end: Lsn) -> Result<Self> {
        let Replay { directory, options, db_id, clock, segments, obsolete, spares, .. } = replay;
        let numbers = segments.iter().map(|found| found.header.generation);
        let last_generation = numbers.chain(spares.iter().copied()).max().unwrap_or(0);
        let live = segments.iter().map(|found| found.header).collect();
        // Remove the spares, because they may have been made with other options, for longer
        // segments.
        directory.remove_spares(&spares)?;
        directory.retire(&[], &obsolete)?;
        let newest = segments.last().map_or(0, |found| found.header.generation);
        let durable = DurableMark { db_id, newest, durable: end };
        let mut mark = Mark::open(directory.device(), durable)?;
        let marked = match &mut mark {
            Some(mark) if owner::is_marked(directory.device(), db_id)? => {
                mark.record_twice(durable)?;
                true
            }
            // `LOG` names the mark only once the mark is durable.
            Some(mark) => mark.establish(durable)? && owner::note_mark(directory.device(), db_id)?,
            None => false,
        };
        let state = LogState::new(end, last_generation, live, options.spares_max, clock.now());
        Ok(Self::new(directory, options, db_id, clock, state, mark, marked))
    }
}

impl Replay {
    /// Ends the replay: durably cuts off a torn tail, and opens the log for appending after the
    /// last valid record.
    ///
    /// # Errors
    /// Like [`Replay::next_record`] if records have not been read yet; errors of the device.
    pub fn finish(mut self) -> Result<(Wal, Option<TornTail>)> {
        while self.advance()?.is_some() {}
        let torn = self.cut_torn_tail()?;
        let end = self.end();
        // A killed process may have left names of files that are not durable. Sync them before the
        // files are written.
        self.directory.sync()?;
        Ok((Wal::resume(self, end)?, torn))
    }
}
