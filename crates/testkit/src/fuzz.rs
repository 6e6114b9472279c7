//! Fuzzing without a fuzzer: random and mutated bytes from a seed, so that every decoder gets bad
//! input in each `cargo test`. The long runs with coverage are in `fuzz/` at the root.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use frondb_core::prng::Prng;

use crate::seed;

/// Maximum number of random bytes of an input; a longer input is a mutated sample.
const RANDOM_BYTES_MAX: u64 = 2048;

/// Numbers at which decoders break: ends of ranges, signs, lengths around a limit.
const EDGES: [u64; 10] =
    [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];

/// Changes `bytes` in one to four ways: bits flipped, bytes or numbers replaced, parts removed,
/// copied to another place, filled with noise, or cut off.
pub fn mutate(prng: &mut Prng, bytes: &mut Vec<u8>) {
    for _ in 0..=prng.below(4) {
        mutate_once(prng, bytes);
    }
}

fn mutate_once(prng: &mut Prng, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        return bytes.push(prng.next_u32() as u8);
    }
    let at = prng.index(bytes.len());
    let len = 1 + prng.index((bytes.len() - at).min(64));
    match prng.below(9) {
        0 | 1 => bytes[at] ^= 1 << prng.below(8),
        2 => bytes[at] = prng.next_u32() as u8,
        3 | 4 => {
            let width = [1, 2, 4, 8][prng.index(4)].min(bytes.len() - at);
            let edge = EDGES[prng.index(EDGES.len())].wrapping_add(prng.below(3)).wrapping_sub(1);
            bytes[at..at + width].copy_from_slice(&edge.to_le_bytes()[..width]);
        }
        5 => {
            bytes.drain(at..at + len);
        }
        6 => {
            let part = bytes[at..at + len].to_vec();
            let to = prng.index(bytes.len() + 1);
            bytes.splice(to..to, part);
        }
        7 => prng.fill(&mut bytes[at..at + len]),
        _ => bytes.truncate(at),
    }
}

/// Runs `target` on every sample as it is and on `rounds` inputs made from `seed`: mutations of the
/// samples, and bytes that are random from the start.
///
/// # Panics
/// If `target` panics; the message has the input as hexadecimal digits, for a regression test.
pub fn smoke(seed: u64, rounds: u64, samples: &[Vec<u8>], target: impl Fn(&[u8])) {
    for sample in samples {
        run(sample, "a sample", &target);
    }
    let seed = seed::from_env("FRONDB_FUZZ_SEED", seed);
    let rounds = seed::from_env("FRONDB_FUZZ_ROUNDS", rounds);
    let mut prng = Prng::new(seed);
    for round in 0..rounds {
        let mut input = match prng.pick(samples) {
            Some(sample) if round % 8 != 0 => sample.clone(),
            _ => {
                let mut bytes = vec![0; prng.below(RANDOM_BYTES_MAX) as usize];
                prng.fill(&mut bytes);
                bytes
            }
        };
        mutate(&mut prng, &mut input);
        run(&input, &format!("round {round} of FRONDB_FUZZ_SEED={seed}"), &target);
    }
}

/// As [`smoke`] for a decoder that returns whether it accepted the bytes. Some inputs must be
/// accepted and others refused; otherwise one of the outcomes was not tested.
///
/// # Panics
/// As `smoke`, or if one outcome never occurred.
pub fn smoke_both(seed: u64, rounds: u64, samples: &[Vec<u8>], target: impl Fn(&[u8]) -> bool) {
    let (accepted, refused) = (Cell::new(0_u64), Cell::new(0_u64));
    smoke(seed, rounds, samples, |bytes| {
        let outcome = if target(bytes) { &accepted } else { &refused };
        outcome.set(outcome.get() + 1);
    });
    let (accepted, refused) = (accepted.get(), refused.get());
    assert!(accepted > 0 && refused > 0, "{accepted} inputs accepted, {refused} refused");
}

fn run(input: &[u8], what: &str, target: &impl Fn(&[u8])) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(input))) {
        let message = seed::panic_message(panic.as_ref());
        let digits: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
        panic!("{what}: {message}; input of {} bytes: {digits}", input.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutations_reach_every_kind_and_stay_small() {
        let (mut shorter, mut longer, mut same) = (0, 0, 0);
        let mut prng = Prng::new(5);
        for _ in 0..2000 {
            let mut bytes = vec![0; 100];
            mutate(&mut prng, &mut bytes);
            assert!(bytes.len() <= 100 + 4 * 64);
            match bytes.len().cmp(&100) {
                std::cmp::Ordering::Less => shorter += 1,
                std::cmp::Ordering::Greater => longer += 1,
                std::cmp::Ordering::Equal => same += 1,
            }
        }
        assert!(shorter > 100 && longer > 100 && same > 100, "{shorter} {longer} {same}");
    }

    #[test]
    fn smoke_finds_a_broken_decoder_and_prints_its_input() {
        let decode = |bytes: &[u8]| {
            if let [len, rest @ ..] = bytes {
                assert!(rest.len() >= usize::from(*len), "index out of range");
            }
        };
        let caught = catch_unwind(|| smoke(1, 1000, &[vec![3, 1, 2, 3]], decode));
        let message = seed::panic_message(caught.unwrap_err().as_ref());
        assert!(message.contains("index out of range; input of"), "{message}");
    }
}
