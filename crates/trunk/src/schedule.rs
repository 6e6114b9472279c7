//! The k-binomial merge schedule of a leaf's runs.
//!
//! "Absorb C(K+w, w) - 1 slices with at most K runs, each message written at most w times":
//! absorb what B(K, w-1) absorbs, merge all of it with the next slice into one run of rank w, go
//! on with B(K-1, w). Because a run carries how often it was written, the position in the
//! schedule is just the count of runs of each rank, and the schedule has no state to lose.
//! (Cf. C. Mathieu et al., "Bigtable merge compaction", and the binomial transform.)

/// C(k + w, w) - 1, saturating: how many slices the schedule absorbs.
pub(crate) fn absorbs(k: u64, w: u64) -> u64 {
    let mut value = 1u64;
    for i in 1..=w {
        value = value.saturating_mul(k + i) / i;
    }
    value - 1
}

/// The smallest K that absorbs `slices` slices with `w` writes.
pub(crate) fn runs_for(slices: u64, w: u64) -> u64 {
    (1..=64).find(|&k| absorbs(k, w) >= slices).unwrap_or(64)
}

/// How many of the newest runs to merge into one now, given the ranks (writes so far) of all
/// runs, newest first; `None` if the schedule allows them all.
pub(crate) fn merge_due(ranks: &[u8], k: u64, w: u8) -> Option<usize> {
    for rank in 1..w {
        let newer = ranks.iter().take_while(|&&r| r <= rank).count();
        let older = ranks.len() - newer;
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

    /// Plays `slices` slices through the schedule; returns the most runs seen between slices
    /// and the average number of writes.
    fn play(k: u64, w: u8, slices: u64) -> (usize, f64) {
        let mut runs: Vec<(u8, u64)> = Vec::new();
        let (mut peak, mut writes) = (0, 0);
        for _ in 0..slices {
            runs.insert(0, (1, 1));
            writes += 1;
            let ranks: Vec<u8> = runs.iter().map(|run| run.0).collect();
            if let Some(n) = merge_due(&ranks, k, w) {
                let size = runs[..n].iter().map(|run| run.1).sum();
                let rank = runs[..n].iter().map(|run| run.0).max().unwrap() + 1;
                writes += size;
                runs.splice(..n, [(rank, size)]);
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
