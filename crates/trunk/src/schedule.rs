//! The k-binomial merge schedule of a leaf's runs.
//!
//! The schedule B(K, w) absorbs C(K+w, w) - 1 slices with at most K runs, and writes each message
//! at most w times. It absorbs as many slices as B(K, w-1), merges all of these with the next slice
//! into one run that has been written w times, and continues with B(K-1, w). Each run stores how
//! often it was written. So the position in the schedule follows from how many runs have each
//! number of writes, and the schedule keeps no state of its own. (Cf. C. Mathieu et al., "Bigtable
//! merge compaction", and the binomial transform.)

/// Returns C(k + w, w) - 1, saturating: the number of slices that the schedule absorbs.
pub(crate) fn absorbs(k: u64, w: u64) -> u64 {
    let mut value = 1u64;
    for i in 1..=w {
        value = value.saturating_mul(k + i) / i;
    }
    value - 1
}

/// Returns the smallest K, at most 64, that absorbs `slices` slices with `w` writes.
pub(crate) fn runs_for(slices: u64, w: u64) -> u64 {
    (1..=64).find(|&k| absorbs(k, w) >= slices).unwrap_or(64)
}

/// Returns how many of the newest runs to merge into one now; `None` if the schedule allows them
/// all. `run_writes` says how often each run has been written, newest first.
pub(crate) fn merge_due(run_writes: &[u8], k: u64, w: u8) -> Option<usize> {
    for writes in 1..w {
        let newer = run_writes.iter().take_while(|&&w| w <= writes).count();
        let older = run_writes.len() - newer;
        let allowed = k.saturating_sub(older as u64);
        if newer as u64 > allowed && newer >= 2 {
            return Some(newer);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds `slices` slices one by one, with the merge that is due after each. Returns the largest
    /// number of runs left after a slice, and how often a slice was written on average.
    fn play(k: u64, w: u8, slices: u64) -> (usize, f64) {
        let mut runs: Vec<(u8, u64)> = Vec::new();
        let (mut peak, mut writes) = (0, 0);
        for _ in 0..slices {
            runs.insert(0, (1, 1));
            writes += 1;
            let run_writes: Vec<u8> = runs.iter().map(|run| run.0).collect();
            if let Some(n) = merge_due(&run_writes, k, w) {
                let size = runs[..n].iter().map(|run| run.1).sum();
                let merged = runs[..n].iter().map(|run| run.0).max().unwrap() + 1;
                writes += size;
                runs.splice(..n, [(merged, size)]);
            }
            peak = peak.max(runs.len());
        }
        (peak, writes as f64 / slices as f64)
    }

    #[test]
    fn the_schedule_keeps_its_bounds() {
        assert_eq!(absorbs(7, 2), 35);
        assert_eq!(absorbs(11, 2), 77);
        assert_eq!(absorbs(9, 3), 219);
        assert_eq!(runs_for(36, 2), 8);
        for (k, w) in [(7, 2u8), (11, 2), (18, 2), (9, 3)] {
            let (peak, writes) = play(k, w, absorbs(k, u64::from(w)));
            assert!(peak as u64 <= k, "k={k} w={w}: {peak} runs");
            assert!(writes <= f64::from(w), "k={k} w={w}: {writes} writes");
        }
    }
}
