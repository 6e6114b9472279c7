//! A merge that skips returns exactly the entries that do not lie before the key, whether the key
//! is in a source's chunk, after it or after the source's end, at every snapshot, under range
//! deletes and updates. A merge that returns many entries at once returns the same entries.

use crate::history::{History, deal, reader};
use frondb_core::prng::Prng;
use frondb_core::{Chunk, Direction, MessageKind, Result, SeqNo, Source};
use frondb_merge::{Merger, VisibleMerge, VisibleValue};

/// A source that follows some skips, which are hints, and ignores the others.
struct Skipping {
    inner: Box<dyn Source>,
    direction: Direction,
    before: Option<Vec<u8>>,
    prng: Prng,
}

impl Source for Skipping {
    fn next_chunk(&mut self, chunk: &mut Chunk) -> Result<bool> {
        while self.inner.next_chunk(chunk)? {
            let Some(key) = &self.before else { return Ok(true) };
            let mut kept = Chunk::new();
            for i in 0..chunk.len() {
                let is_kept = match self.direction {
                    Direction::Forward => chunk.key(i) >= &key[..],
                    Direction::Backward => chunk.key(i) < &key[..],
                };
                if is_kept {
                    kept.push(chunk.key(i), chunk.seqs[i], chunk.kinds[i], chunk.value(i));
                }
            }
            if !kept.is_empty() {
                *chunk = kept;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn skip(&mut self, key: &[u8]) -> Result<()> {
        if self.prng.chance(1, 2) {
            self.before = Some(key.to_vec());
        }
        Ok(())
    }
}

fn found(merge: &VisibleMerge) -> (Vec<u8>, VisibleValue) {
    let value = merge.value().to_vec();
    let value = match merge.kind() {
        MessageKind::Put => VisibleValue::Value(value),
        MessageKind::PutRef => VisibleValue::Reference(value),
        other => panic!("{other:?} is not visible"),
    };
    (merge.key().to_vec(), value)
}

/// The entries that [`VisibleMerge::next_entries`] returns: their keys together have at most
/// `bytes` bytes, and their values too.
fn take(merge: &mut VisibleMerge, max: usize, bytes: usize) -> Vec<(Vec<u8>, VisibleValue)> {
    let entries = merge.next_entries(max, bytes);
    let ((keys, mut key_at, key_ends), (values, mut value_at, value_ends)) =
        (entries.keys(), entries.values());
    assert_eq!((key_ends.len(), value_ends.len()), (entries.len(), entries.len()));
    let (keys_from, values_from) = (key_at, value_at);
    let pairs = key_ends.iter().zip(value_ends).map(|(&key_end, &value_end)| {
        let key = keys[key_at as usize..key_end as usize].to_vec();
        let value = values[value_at as usize..value_end as usize].to_vec();
        (key_at, value_at) = (key_end, value_end);
        (key, VisibleValue::Value(value))
    });
    let pairs = pairs.collect();
    assert!((key_at - keys_from) as usize <= bytes && (value_at - values_from) as usize <= bytes);
    pairs
}

#[test]
fn one_source_is_handed_out_in_chunks() {
    let mut prng = Prng::new(53);
    let list = |messages, prng: &mut Prng| {
        Box::new(crate::history::ListSource::new(messages, Direction::Forward, prng))
            as Box<dyn Source>
    };
    // One source alone, and one with a second source of a later key, where the merge checks less
    // often.
    for (other, steps_max) in [(false, 60), (true, 100)] {
        let put =
            |i: u32| (i.to_be_bytes().to_vec(), SeqNo(1 + u64::from(i)), MessageKind::Put, vec![7]);
        let later = vec![(vec![0xff], SeqNo(500), MessageKind::Put, vec![8])];
        let mut sources =
            vec![list(Vec::new(), &mut prng), list((0..100).map(put).collect(), &mut prng)];
        if other {
            sources.insert(0, list(later, &mut prng));
        }
        let options = reader(SeqNo::MAX, Direction::Forward, History::default().range_deletes());
        let mut merge = VisibleMerge::new(sources, options);
        let (mut steps, mut shown) = (0, 0);
        while merge.next().unwrap() {
            steps += 1;
            shown += 1 + take(&mut merge, 100, 1000).len();
        }
        assert_eq!((shown, merge.stats().entries_out), (100 + usize::from(other), shown as u64));
        assert!(steps <= steps_max, "{steps} steps");
    }
}

#[test]
fn a_merge_that_skips_agrees_with_the_model_at_every_snapshot() {
    let mut prng = Prng::new(51);
    let (mut skips, mut moved, mut together) = (0, 0, 0);
    for round in 0..400 {
        let mut history = History::random(&mut prng, 1 + round % 90);
        if round % 2 == 1 {
            // Mostly puts of keys with one message, so that the merge returns many at once.
            history.deletes.clear();
            for (key, _, kind, _) in &mut history.messages {
                key.push(prng.below(256) as u8);
                if prng.chance(9, 10) {
                    *kind = MessageKind::Put;
                }
            }
        }
        let snapshot = SeqNo(prng.below(history.last.get() + 3));
        let mut expected: Vec<_> = history.read(snapshot).unwrap().into_iter().collect();
        for direction in [Direction::Forward, Direction::Backward] {
            let count = 1 + prng.index(if round % 2 == 1 { 2 } else { 6 });
            let sources = deal(&history.messages, count, direction, &mut prng);
            let sources = sources.into_iter().map(|inner| {
                let source =
                    Skipping { inner, direction, before: None, prng: Prng::new(prng.next_u64()) };
                Box::new(source) as Box<dyn Source>
            });
            let options = reader(snapshot, direction, history.range_deletes());
            let mut merge = VisibleMerge::new(sources.collect(), options);
            let mut at = 0;
            loop {
                let what = format!("round {round} at {snapshot} {direction:?}, entry {at}");
                // The merge also skips before it has returned an entry.
                if prng.chance(1, 2) && at < expected.len() {
                    let near = at + prng.index(expected.len() - at);
                    let mut key = expected[near].0.clone();
                    if prng.chance(1, 3) {
                        key.push(0);
                    }
                    let is_behind = |entry: &(Vec<u8>, VisibleValue)| match direction {
                        Direction::Forward => entry.0 >= key,
                        Direction::Backward => entry.0 < key,
                    };
                    // A backward skip may be to the key of the current entry; then it skips
                    // nothing.
                    let passed =
                        expected[at..].iter().take_while(|entry| !is_behind(entry)).count();
                    merge.skip(&key).unwrap();
                    skips += 1;
                    moved += usize::from(passed > 0);
                    at += passed;
                }
                if at == expected.len() {
                    assert!(!merge.next().unwrap(), "{what}");
                    break;
                }
                assert!(merge.next().unwrap(), "{what}");
                assert_eq!(found(&merge), expected[at], "{what}");
                at += 1;
                if prng.chance(1, 2) {
                    let (max, bytes) = (prng.index(9), prng.index(100));
                    let many = take(&mut merge, max, bytes);
                    assert!(many.len() <= max, "{what}");
                    assert_eq!(many[..], expected[at..at + many.len()], "{what}");
                    assert!(many.is_empty() || direction == Direction::Forward, "{what}");
                    if let Some(last) = many.last() {
                        assert_eq!(
                            found(&merge),
                            *last,
                            "{what}: the merge is at the last of them"
                        );
                    }
                    (at, together) = (at + many.len(), together + many.len());
                }
            }
            assert!(!merge.next().unwrap());
            merge.skip(b"k").unwrap();
            assert!(!merge.next().unwrap(), "a merge that ended stays so");
            expected.reverse();
        }
    }
    let counts = format!("{skips} skips, {moved} over something, {together} entries at once");
    assert!(skips > 1000 && moved > 500 && together > 100, "{counts}");
}

#[test]
fn the_error_of_a_source_that_skips_is_returned_once() {
    let mut prng = Prng::new(52);
    for direction in [Direction::Forward, Direction::Backward] {
        let history = History::random(&mut prng, 60);
        let source =
            crate::history::ListSource::new(history.messages, direction, &mut prng).failing_at(20);
        let options = reader(SeqNo::MAX, direction, History::default().range_deletes());
        let mut merge = VisibleMerge::new(vec![Box::new(source)], options);
        assert!(merge.next().unwrap());
        let far: &[u8] = if direction == Direction::Forward { b"\xff\xff\xff" } else { b"" };
        merge.skip(far).unwrap_err();
        assert!(!merge.next().unwrap());
        merge.skip(far).unwrap();
        assert!(!merge.next().unwrap());
    }
}

#[test]
fn a_merge_whose_first_move_is_a_skip_that_fails_has_ended() {
    let mut prng = Prng::new(53);
    for direction in [Direction::Forward, Direction::Backward] {
        let messages = History::random(&mut prng, 20).messages;
        let source =
            crate::history::ListSource::new(messages, direction, &mut prng).failing_at(1000);
        let mut merge = Merger::new(vec![source], direction);
        merge.skip(b"key").unwrap_err();
        assert!(!merge.next().unwrap() && merge.key().is_empty());
    }
}
