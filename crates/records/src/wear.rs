//! The note in a superblock: a [`History`] of the bytes that the database has written.
//!
//! ```text
//!  version   u8, 1
//!  since     varint, seconds since 1970
//!  causes    varint, the number of causes in each sample
//!  samples   varint count, each:
//!    after     varint, seconds after the sample before it, or after `since`
//!    user      varint, bytes of batches and transactions
//!    causes    bytes and requests, a varint each, in the order of `WriteCause`
//! ```
//! Every number of a sample is a total since `since`.

use frondb_core::codec::{Reader, Truncated, put_varint};
use frondb_core::wear::{History, SAMPLES_MAX, Sample, WriteCause, WriteSums, Writes};

/// The version of the note. Stored on disk: do not change it.
const VERSION: u8 = 1;

/// Maximum number of causes in a note. Above the current number, because later builds may have more
/// causes.
const CAUSES_MAX: u64 = 64;

/// Encodes a history.
#[must_use]
pub fn encode_history(history: &History) -> Vec<u8> {
    let mut out = vec![VERSION];
    put_varint(&mut out, history.since());
    put_varint(&mut out, WriteCause::ALL.len() as u64);
    put_varint(&mut out, history.samples().len() as u64);
    let mut before = history.since();
    for sample in history.samples() {
        put_varint(&mut out, sample.at - before);
        before = sample.at;
        put_varint(&mut out, sample.sums.user_bytes());
        for cause in WriteCause::ALL {
            let Writes { bytes, requests } = sample.sums.of(cause);
            put_varint(&mut out, bytes);
            put_varint(&mut out, requests);
        }
    }
    out
}

/// Decodes a history; returns `None` if the bytes are no history, or have another version.
#[must_use]
pub fn decode_history(bytes: &[u8]) -> Option<History> {
    read_history(&mut Reader::new(bytes)).ok().flatten()
}

fn read_history(input: &mut Reader<'_>) -> Result<Option<History>, Truncated> {
    if input.u8()? != VERSION {
        return Ok(None);
    }
    let (since, causes, count) = (input.varint()?, input.varint()?, input.varint()?);
    if causes > CAUSES_MAX || count > SAMPLES_MAX as u64 {
        return Ok(None);
    }
    let (mut samples, mut at) = (Vec::new(), since);
    for _ in 0..count {
        at = at.checked_add(input.varint()?).ok_or(Truncated)?;
        let user_bytes = input.varint()?;
        let mut sums = [Writes::default(); WriteCause::ALL.len()];
        for i in 0..causes as usize {
            let writes = Writes { bytes: input.varint()?, requests: input.varint()? };
            if let Some(sum) = sums.get_mut(i) {
                *sum = writes;
            }
        }
        samples.push(Sample { at, sums: WriteSums::new(user_bytes, sums) });
    }
    Ok(History::from_samples(since, samples))
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_these_bytes() {
        let mut history = History::new(1000);
        let sums = WriteCause::ALL
            .into_iter()
            .fold(WriteSums::default(), |sums, cause| sums.with(cause, 128 + cause as u64));
        history.add(Sample { at: 1600, sums });
        let bytes = encode_history(&history);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let zero = "00".repeat(14);
        let causes: String = (0..7).map(|i| format!("8{i}0101")).collect();
        assert_eq!(hex, format!("01e80707020000{zero}d80400{causes}"));
        assert_eq!(decode_history(&bytes), Some(history));
    }

    #[test]
    fn the_longest_history_fits_into_a_superblock() {
        let most = Writes { bytes: u64::MAX, requests: u64::MAX };
        let sums = WriteSums::new(u64::MAX, [most; WriteCause::ALL.len()]);
        let samples = vec![Sample { at: u64::MAX, sums }; SAMPLES_MAX];
        let history = History::from_samples(1, samples);
        let bytes = history.as_ref().map(encode_history).unwrap_or_default();
        assert_eq!(decode_history(&bytes), history);
        // 4030 is `frondb_manifest::NOTE_BYTES_MAX`, which this crate cannot name. The crate
        // `commit` asserts that the longest history fits into that limit.
        assert!(bytes.len() <= 4030, "{}", bytes.len());
    }

    #[test]
    fn causes_of_a_later_build_are_passed_over() {
        let mut bytes = vec![VERSION, 5, 9, 1, 3, 50];
        (0..18).for_each(|i| bytes.push(i));
        let history = decode_history(&bytes).unwrap();
        assert_eq!((history.since(), history.newest().at), (5, 8));
        let sums = history.newest().sums;
        assert_eq!(sums.of(WriteCause::LargeValues), Writes { bytes: 12, requests: 13 });
        assert_eq!(decode_history(&[2, 0, 0, 0]), None, "another version");
        assert_eq!(decode_history(&[]), None);
    }
}
