//! Detects that InnoDB's recovery took old log for new log.
//!
//! A checksum in InnoDB's log does not include the log position, and the last block of the log is
//! written with the old contents of the buffer after the end of the log. If those bytes begin with
//! a whole mini-transaction, recovery may continue to read there. The end of the log is then a copy
//! of log that was written a whole number of sectors earlier, and old changes are applied again. A
//! test that uses both engines checks this to learn whether InnoDB or FronDB lost a part of a
//! transaction.
//!
//! ```text
//!   ... | prepare 7 | commit 7 | ... | end of the log | prepare 7 | ...   recovered as prepared,
//!          ^------------- n sectors ------------------^                   and rolled back
//! ```

use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::error::{Error, Result, harness};
use crate::server::Server;

/// Offset of the log in its file.
const LOG_START: u64 = 12288;
/// Offset in the file of the log position at `LOG_START`.
const FIRST_POSITION: u64 = 8;
/// The distance between the original and its copy is a multiple of this.
const SECTOR: usize = 512;
/// Bytes before the end of the log in which a copy is searched.
const WINDOW: u64 = 1 << 20;
/// Shortest copy that is not accidental, bytes: two small mini-transactions with their checksums.
const SHORTEST: usize = 48;

/// A copy of older log that recovery took for the end of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaleTail {
    /// Log position at which recovery ended, in bytes of log.
    pub end: u64,
    /// Length of the copy at the end of the log, bytes.
    pub bytes: usize,
    /// Distance from the original to the copy, bytes.
    pub distance: usize,
}

impl fmt::Display for StaleTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { end, bytes, distance } = self;
        write!(
            f,
            "the last {bytes} bytes of InnoDB's log before {end} are a copy of those {distance} bytes before"
        )
    }
}

/// Checks the log from which InnoDB recovered at the last start of `server`. Returns none if the
/// log is sound, or if there was nothing to recover.
pub fn stale_tail(server: &Server) -> Result<Option<StaleTail>> {
    let Some(end) = recovered_end(&server.log()?) else { return Ok(None) };
    let path = server.data().join("ib_logfile0");
    let failed = |error| harness(path.display(), error);
    let file = File::open(&path).map_err(failed)?;
    let mut first = [0; 8];
    file.read_exact_at(&mut first, FIRST_POSITION).map_err(failed)?;
    let written = end.checked_sub(u64::from_be_bytes(first)).ok_or_else(|| {
        Error::Harness(format!("{}: it begins after its end at {end}", path.display()))
    })?;
    // A test writes less than the log's capacity, so the log has not wrapped around in its file.
    let from = written.saturating_sub(WINDOW);
    let mut log = vec![0; usize::try_from(written - from).map_err(|e| harness("the log", e))?];
    file.read_exact_at(&mut log, LOG_START + from).map_err(failed)?;
    Ok(copied_tail(&log).map(|(bytes, distance)| StaleTail { end, bytes, distance }))
}

/// The log position at which the last recovery ended; none if the last start needed no recovery.
fn recovered_end(errors: &str) -> Option<u64> {
    let last_start = errors.rfind("Starting MariaDB")?;
    let (_, rest) = errors[last_start..].split_once("End of log at LSN=")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Length of the copy at the end of `log`, and distance of its original.
fn copied_tail(log: &[u8]) -> Option<(usize, usize)> {
    let is_suffix =
        |distance: &usize| log[..log.len() - distance].ends_with(&log[log.len() - SHORTEST..]);
    let far = log.len().checked_sub(SHORTEST)?;
    let distance = (SECTOR..=far).step_by(SECTOR).find(is_suffix)?;
    let pairs = log.iter().rev().zip(log[..log.len() - distance].iter().rev());
    Some((pairs.take_while(|(copy, original)| copy == original).count(), distance))
}

#[cfg(test)]
mod tests {
    use super::{copied_tail, recovered_end};
    use frondb_core::prng::Prng;

    fn log(bytes: usize) -> Vec<u8> {
        let mut random = Prng::new(9);
        (0..bytes).map(|_| random.below(256) as u8).collect()
    }

    #[test]
    fn a_copy_is_found_with_its_length() {
        let mut log = log(20_000);
        let from = log.len() - 8192;
        log[from - 1] = !log[19_999];
        log.extend_from_within(from..from + 312);
        assert_eq!(copied_tail(&log), Some((312, 8192)));
    }

    #[test]
    fn a_sound_log_has_none() {
        assert_eq!(copied_tail(&log(20_000)), None);
        assert_eq!(copied_tail(&[]), None);
        // A few equal bytes are accidental, and the buffer cannot cause other distances.
        for (length, distance) in [(20, 8192), (312, 8000)] {
            let mut log = log(20_000);
            let from = log.len() - distance;
            log.extend_from_within(from..from + length);
            assert_eq!(copied_tail(&log), None, "{length} bytes {distance} away");
        }
    }

    #[test]
    fn the_end_is_that_of_the_last_start() {
        let run = |end| format!("Starting MariaDB 10.11\nInnoDB: End of log at LSN={end}\nready\n");
        assert_eq!(recovered_end(&(run(12) + &run(3456))), Some(3456));
        assert_eq!(recovered_end(&(run(12) + "Starting MariaDB 10.11\nready\n")), None);
        assert_eq!(recovered_end(""), None);
    }
}
