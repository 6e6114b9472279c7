//! Tests: a range delete hides all messages in its range that are older than itself, and no others
//! (rule 14).

use super::*;
use crate::prng::Prng;

fn delete(lo: &str, hi: Option<&str>, seq: u64) -> RangeDelete {
    RangeDelete { lo: lo.as_bytes().into(), hi: hi.map(|hi| hi.as_bytes().into()), seq: SeqNo(seq) }
}

fn random_set(prng: &mut Prng) -> Vec<RangeDelete> {
    let count = if prng.chance(1, 8) { 40 } else { prng.below(9) };
    (0..count)
        .map(|_| {
            let mut key = || vec![b'a' + prng.below(9) as u8];
            let (lo, hi) = (key(), key());
            let lo = if prng.chance(1, 6) { Vec::new() } else { lo };
            let hi = prng.chance(5, 6).then(|| hi.into());
            RangeDelete { lo: lo.into(), hi, seq: SeqNo(prng.range(1..61)) }
        })
        .collect()
}

fn model(deletes: &[RangeDelete], key: &[u8], snapshot: SeqNo) -> SeqNo {
    let visible = deletes.iter().filter(|delete| delete.covers(key) && delete.seq <= snapshot);
    visible.map(|delete| delete.seq).max().unwrap_or(SeqNo(0))
}

#[test]
fn the_newest_visible_delete_covers_a_key() {
    let set = RangeDeletes::new([delete("f", Some("s"), 9), delete("b", Some("m"), 5)]);
    let newest = |key: &str, at| set.newest_covering(key.as_bytes(), SeqNo(at)).get();
    assert_eq!([newest("a", 9), newest("b", 9), newest("ezz", 9)], [0, 5, 5]);
    assert_eq!([newest("f", 9), newest("f", 8), newest("f", 4)], [9, 5, 0]);
    assert_eq!([newest("m", 9), newest("m", 8), newest("s", 9)], [9, 0, 0]);
    assert!(set.hides(b"f", SeqNo(8), SeqNo(9)) && !set.hides(b"f", SeqNo(9), SeqNo(9)));
}

#[test]
fn all_keys_can_be_covered_and_empty_ranges_hide_nothing() {
    let set = RangeDeletes::new([
        delete("", None, 3),
        delete("x", Some("x"), 9),
        delete("z", Some("a"), 9),
    ]);
    assert_eq!(set.len(), 1);
    for key in ["", "a", "x", "y", "\u{7f}"] {
        assert_eq!(set.newest_covering(key.as_bytes(), SeqNo::MAX), SeqNo(3), "{key}");
    }
    assert_eq!(set.covers_wholly(b"", None, SeqNo::MAX), Some(SeqNo(3)));
    assert_eq!(set.covers_wholly(b"", None, SeqNo(2)), None);
    assert_eq!(set.covers_wholly(b"b", Some(b"b"), SeqNo::MAX), None);
}

#[test]
fn many_deletes_of_a_growing_range_take_little_memory_and_keep_their_order() {
    let deletes: Vec<RangeDelete> = (1..=3_000u64)
        .map(|seq| RangeDelete {
            lo: Box::default(),
            hi: Some((seq as u32).to_be_bytes().into()),
            seq: SeqNo(seq),
        })
        .collect();
    let set = RangeDeletes::new(deletes.clone());
    assert!(set.0.as_ref().unwrap().seqs.len() <= LISTED_MAX * (set.len() + 1));
    for key in [0u32, 1, 1_500, 2_990, 2_999, 3_000] {
        for snapshot in [0, 1, 15, 16, 1_499, 1_501, 2_984, 2_985, 3_000].map(SeqNo) {
            let key = key.to_be_bytes();
            assert_eq!(set.newest_covering(&key, snapshot), model(&deletes, &key, snapshot));
        }
    }
}

/// Checks that the bounds of hidden keys agree with the answers for single keys.
fn hidden_runs(set: &RangeDeletes, keys: &[Vec<u8>], snapshot: SeqNo, seq: SeqNo) {
    let hidden = |key: &[u8]| set.hides(key, seq, snapshot);
    for key in keys {
        match set.hidden_until(key, seq, snapshot) {
            None => assert!(!hidden(key)),
            Some(end) => {
                let inside = |k: &&Vec<u8>| *k >= key && end.is_none_or(|end| ***k < *end);
                assert!(keys.iter().filter(inside).all(|key| hidden(key)));
                assert!(hidden(key) && end.is_none_or(|end| !hidden(end)));
            }
        }
        let last = keys.iter().rfind(|k| *k < key);
        match set.hidden_from(Some(key), seq, snapshot) {
            None => assert!(last.is_none_or(|last| !hidden(last))),
            Some(from) => {
                assert!(hidden(from) && *from < **key);
                let inside = |k: &&Vec<u8>| ***k >= *from && *k < key;
                assert!(keys.iter().filter(inside).all(|k| hidden(k)));
            }
        }
    }
}

#[test]
fn sets_agree_with_a_list_searched_naively() {
    let mut prng = Prng::new(61);
    let keys: Vec<Vec<u8>> =
        std::iter::once(vec![]).chain((b'a'..=b'k').flat_map(|b| [vec![b], vec![b, 1]])).collect();
    for round in 0..400 {
        let (a, b) = (random_set(&mut prng), random_set(&mut prng));
        let both: Vec<RangeDelete> = a.iter().chain(&b).cloned().collect();
        let (a, b) = (RangeDeletes::new(a), RangeDeletes::new(b));
        let set = a.union(&b);
        let mut forward = RangeDeleteCursor::new([a.clone(), b.clone()]);
        let mut backward = RangeDeleteCursor::new([set.clone()]);
        for snapshot in [0, 3, 20, 40, 61].map(SeqNo) {
            for key in &keys {
                let expected = model(&both, key, snapshot);
                assert_eq!(set.newest_covering(key, snapshot), expected, "round {round}");
                assert_eq!(forward.newest_covering(key, snapshot), expected, "round {round}");
                for seq in [expected.get().saturating_sub(1), expected.get()].map(SeqNo) {
                    let hidden = seq < expected;
                    assert_eq!(set.hides(key, seq, snapshot), hidden, "round {round}");
                    assert_eq!(forward.hides(key, seq, snapshot), hidden, "round {round}");
                }
            }
            for key in keys.iter().rev() {
                let expected = model(&both, key, snapshot);
                assert_eq!(backward.newest_covering(key, snapshot), expected, "round {round}");
            }
            let (lo, hi) = (&keys[1 + round % 9], &keys[1 + round % 9 + round % 11]);
            let clipped = set.clip(lo, Some(hi));
            let mut least = SeqNo::MAX;
            for key in &keys {
                let inside = lo <= key && key < hi;
                let expected = if inside { model(&both, key, snapshot) } else { SeqNo(0) };
                assert_eq!(clipped.newest_covering(key, snapshot), expected);
                if inside {
                    least = least.min(expected);
                }
            }
            if lo < hi {
                let inside = clipped.iter().any(|delete| delete.seq <= snapshot);
                assert_eq!(set.touches(lo, Some(hi), snapshot), inside, "round {round}");
            }
            hidden_runs(&set, &keys, snapshot, SeqNo(prng.below(61)));
            let wholly = (lo < hi && least > SeqNo(0)).then_some(least);
            assert_eq!(set.covers_wholly(lo, Some(hi), snapshot), wholly, "round {round}");
        }
    }
}
