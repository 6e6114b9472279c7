//! A merge that skips shows what is behind the key and nothing else, wherever its sources are: in the
//! chunk, beyond it, at their ends; at every snapshot, under range deletes and updates.

mod history;

use frondb_core::prng::Prng;
use frondb_core::{Chunk, Direction, Result, SeqNo, Source};
use frondb_merge::{Found, VisibleMerge};
use history::{History, deal, reader};

/// A source that takes the hint, for some skips.
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

fn found(merge: &VisibleMerge) -> (Vec<u8>, Found) {
    let value = merge.value().to_vec();
    let value = match merge.kind() {
        frondb_core::MessageKind::Put => Found::Value(value),
        frondb_core::MessageKind::PutRef => Found::Reference(value),
        other => panic!("{other:?} is not visible"),
    };
    (merge.key().to_vec(), value)
}

#[test]
fn a_merge_that_skips_agrees_with_the_model_at_every_snapshot() {
    let mut prng = Prng::new(51);
    let (mut skips, mut moved) = (0, 0);
    for round in 0..400 {
        let history = History::random(&mut prng, 1 + round % 90);
        let snapshot = SeqNo(prng.below(history.last.get() + 3));
        let mut expected: Vec<_> = history.read(snapshot).unwrap().into_iter().collect();
        for direction in [Direction::Forward, Direction::Backward] {
            let sources = deal(&history.messages, 1 + prng.index(6), direction, &mut prng);
            let sources = sources.into_iter().map(|inner| {
                let source = Skipping { inner, direction, before: None, prng: prng.fork() };
                Box::new(source) as Box<dyn Source>
            });
            let options = reader(snapshot, direction, history.range_deletes());
            let mut merge = VisibleMerge::new(sources.collect(), options);
            let mut at = 0;
            loop {
                let what = format!("round {round} at {snapshot} {direction:?}, entry {at}");
                // Also before the first entry.
                if prng.chance(1, 2) && at < expected.len() {
                    let near = at + prng.index(expected.len() - at);
                    let mut key = expected[near].0.clone();
                    if prng.chance(1, 3) {
                        key.push(0);
                    }
                    let is_behind = |entry: &(Vec<u8>, Found)| match direction {
                        Direction::Forward => entry.0 >= key,
                        Direction::Backward => entry.0 < key,
                    };
                    // Backward the key just shown is no further skip, and may be one.
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
            }
            assert!(!merge.next().unwrap());
            merge.skip(b"k").unwrap();
            assert!(!merge.next().unwrap(), "a merge that ended stays so");
            expected.reverse();
        }
    }
    assert!(skips > 1000 && moved > 500, "{skips} skips, {moved} over something");
}

#[test]
fn the_error_of_a_source_that_skips_is_returned_once() {
    let mut prng = Prng::new(52);
    for direction in [Direction::Forward, Direction::Backward] {
        let history = History::random(&mut prng, 60);
        let source =
            history::ListSource::new(history.messages, direction, &mut prng).failing_at(20);
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
