//! A merge, a visible merge and a lookup show what the history says, in both directions:
//! no message twice and no older one instead of a newer one (rule 2).

use crate::history::{
    AppendWithPlus, Extents, History, ListSource, POISON, deal, read_all, reader,
};
use frondb_core::prng::Prng;
use frondb_core::range_delete::RangeDeletes;
use frondb_core::{Direction, ErrorKind, MessageKind, RangeDelete, SeqNo, Source};
use frondb_merge::{Lookup, Merger, OwnMessages, VisibleMerge, VisibleValue};

const BOTH: [Direction; 2] = [Direction::Forward, Direction::Backward];

#[test]
fn a_merge_yields_every_message_once_in_order() {
    let mut prng = Prng::new(41);
    for round in 0..300 {
        let history = History::random(&mut prng, 1 + round % 90);
        for direction in BOTH {
            let mut sources = deal(&history.messages, 1 + prng.index(9), direction, &mut prng);
            if prng.chance(1, 3) {
                // A second copy of everything, as the oldest source.
                let copy = ListSource::new(history.messages.clone(), direction, &mut prng);
                sources.push(Box::new(copy));
            }
            let mut merge = Merger::new(sources, direction);
            let mut expected = history.messages.clone();
            expected.sort_by(|a, b| (&a.0, b.1).cmp(&(&b.0, a.1)));
            if direction == Direction::Backward {
                expected.reverse();
            }
            let mut last: Option<Vec<u8>> = None;
            for (key, seq, kind, value) in &expected {
                assert!(merge.next().unwrap(), "round {round}");
                assert_eq!((merge.key(), merge.seq()), (&key[..], *seq), "round {round}");
                assert_eq!((merge.kind(), merge.value()), (*kind, &value[..]));
                assert_eq!(merge.prefix(), frondb_core::chunk::key_prefix(key));
                assert_eq!(merge.same_key(), last.as_ref() == Some(key));
                last = Some(key.clone());
            }
            assert!(!merge.next().unwrap() && !merge.next().unwrap());
            assert_eq!(merge.key(), b"");
        }
    }
}

#[test]
fn a_newer_source_wins_over_an_older_one_with_the_same_message() {
    let message = |value: &[u8]| (b"k".to_vec(), SeqNo(4), MessageKind::Put, value.to_vec());
    for direction in BOTH {
        let mut prng = Prng::new(1);
        let sources = ["new", "old"].map(|value| {
            let source = ListSource::new(vec![message(value.as_bytes())], direction, &mut prng);
            Box::new(source) as Box<dyn Source>
        });
        let mut merge = Merger::new(sources.into_iter().collect(), direction);
        assert!(merge.next().unwrap());
        assert_eq!(merge.value(), b"new");
        assert!(!merge.next().unwrap());
    }
}

#[test]
fn a_visible_merge_agrees_with_the_model_at_every_snapshot() {
    let mut prng = Prng::new(42);
    for round in 0..250 {
        let history = History::random(&mut prng, 1 + round % 70);
        for _ in 0..4 {
            let snapshot = SeqNo(prng.below(history.last.get() + 3));
            let mut expected: Vec<(Vec<u8>, VisibleValue)> =
                history.read(snapshot).unwrap().into_iter().collect();
            for direction in BOTH {
                let sources = deal(&history.messages, 1 + prng.index(6), direction, &mut prng);
                let options = reader(snapshot, direction, history.range_deletes());
                let found = read_all(VisibleMerge::new(sources, options)).unwrap();
                assert_eq!(found, expected, "round {round} at {snapshot} {direction:?}");
                expected.reverse();
            }
        }
    }
}

#[test]
fn a_lookup_agrees_with_the_model_at_every_snapshot() {
    let mut prng = Prng::new(43);
    for round in 0..300 {
        let history = History::random(&mut prng, 1 + round % 60);
        let deletes = history.range_deletes();
        let snapshot = SeqNo(prng.below(history.last.get() + 2));
        let key = crate::history::key(&mut prng);
        let mut lookup = Lookup::new();
        lookup.hide_below(deletes.newest_covering(&key, snapshot));
        for (_, seq, kind, value) in
            history.messages.iter().rev().filter(|m| m.0 == key && m.1 <= snapshot)
        {
            let more = lookup.feed(*seq, *kind, value);
            assert_eq!(more, lookup.wants_more());
            // A message that is fed again counts once.
            assert_eq!(lookup.feed(*seq, *kind, value), more);
            if !more {
                break;
            }
        }
        let found = lookup.finish(&key, Some(&AppendWithPlus), Some(&Extents)).unwrap();
        assert_eq!(found, history.read_key(&key, snapshot).unwrap(), "round {round}");
    }
}

/// Rule 14: a range delete does not hide messages with its own SeqNo. Such messages occur, because
/// all messages of a run may have the run's largest SeqNo, which may belong to a range delete.
#[test]
fn a_range_delete_hides_older_messages_from_a_lookup() {
    for (delete, shown) in [(4, true), (5, true), (6, false)] {
        let mut lookup = Lookup::new();
        lookup.hide_below(SeqNo(delete));
        lookup.feed(SeqNo(5), MessageKind::Put, b"v");
        let found = lookup.finish(b"k", None, None).unwrap();
        assert_eq!(found.is_some(), shown, "a range delete at {delete}, a put at 5");
    }
}

#[test]
fn deletes_that_are_stepped_over_are_counted() {
    let message = |key: u8, seq, kind| (vec![key], SeqNo(seq), kind, Vec::new());
    let mut messages: Vec<_> =
        (0..50).map(|i| message(i, u64::from(i) + 1, MessageKind::Put)).collect();
    messages.extend((0..40).map(|i| message(i, 100 + u64::from(i), MessageKind::Delete)));
    for direction in BOTH {
        let mut prng = Prng::new(7);
        let sources = deal(&messages, 3, direction, &mut prng);
        let options = reader(SeqNo::MAX, direction, History::default().range_deletes());
        let mut merge = VisibleMerge::new(sources, options);
        assert!(merge.next().unwrap());
        assert_eq!(merge.key(), [if direction == Direction::Forward { 40 } else { 49 }]);
        while merge.next().unwrap() {}
        let stats = merge.stats();
        assert_eq!((stats.entries_in, stats.entries_out, stats.deletes_passed), (90, 10, 40));
    }
}

/// A range delete of the reader's transaction gives no reason for a compaction. It does not take
/// the reason away either: committed deletes below it count as without it.
#[test]
fn rows_that_only_an_own_range_delete_hides_are_counted_as_own() {
    let message = |key: u8, kind| (vec![key], SeqNo(u64::from(key) + 1), kind, Vec::new());
    let mut messages: Vec<_> = (0..25).map(|key| message(key, MessageKind::Put)).collect();
    messages.extend((25..30).map(|key| message(key, MessageKind::Delete)));
    let delete = |lo: u8, hi: u8, seq| {
        let (lo, hi) = ([lo].into(), Some([hi].into()));
        RangeDeletes::new([RangeDelete { lo, hi, seq: SeqNo(seq) }])
    };
    for direction in BOTH {
        let mut prng = Prng::new(8);
        let sources = deal(&messages, 3, direction, &mut prng);
        let mut options = reader(SeqNo(200), direction, delete(20, 25, 100));
        let (from, upto) = (SeqNo(1 << 40), 1);
        let range_deletes = [delete(10, 30, upto)].into();
        options.own = Some(OwnMessages { from, seen_from: from, upto, range_deletes });
        let mut merge = VisibleMerge::new(sources, options);
        while merge.next().unwrap() {}
        let stats = merge.stats();
        let passed = (stats.deletes_passed, stats.own_deletes_passed);
        assert_eq!((stats.entries_out, passed), (10, (10, 10)), "{direction:?}");
    }
}

#[test]
fn the_error_of_a_source_is_returned_once() {
    let mut prng = Prng::new(44);
    for direction in BOTH {
        for left in [0, 10, 30] {
            let history = History::random(&mut prng, 60);
            let count = history.messages.len();
            let failing =
                ListSource::new(history.messages, direction, &mut prng).failing_at(left.min(count));
            let options = reader(SeqNo::MAX, direction, History::default().range_deletes());
            let mut merge = VisibleMerge::new(vec![Box::new(failing)], options);
            let error = loop {
                match merge.next() {
                    Ok(true) => {}
                    Ok(false) => panic!("the error was lost"),
                    Err(error) => break error,
                }
            };
            assert_eq!(error.kind(), ErrorKind::Corruption);
            assert!(!merge.next().unwrap());
        }
    }
}

#[test]
fn updates_without_or_with_a_failing_function_are_errors_to_the_reader() {
    let message =
        |seq, value: &[u8]| (b"k".to_vec(), SeqNo(seq), MessageKind::Update, value.to_vec());
    for direction in BOTH {
        let mut prng = Prng::new(45);
        let poisoned = vec![message(1, b"a"), message(2, &[POISON])];
        let sources = deal(&poisoned, 2, direction, &mut prng);
        let options = reader(SeqNo::MAX, direction, History::default().range_deletes());
        let error = read_all(VisibleMerge::new(sources, options.clone())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains("append"), "{error}");
        // A reader at a snapshot below the poisoned operand can read the key.
        let sources = deal(&poisoned, 2, direction, &mut prng);
        let below = reader(SeqNo(1), direction, History::default().range_deletes());
        let found = read_all(VisibleMerge::new(sources, below)).unwrap();
        assert_eq!(found, [(b"k".to_vec(), VisibleValue::Value(b"~+a".to_vec()))]);
        let sources = deal(&poisoned, 2, direction, &mut prng);
        let mut without = options;
        without.update = None;
        let error = read_all(VisibleMerge::new(sources, without)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    let mut lookup = Lookup::new();
    assert!(lookup.feed(SeqNo(1), MessageKind::Update, &[POISON]));
    assert_eq!(
        lookup.finish(b"k", Some(&AppendWithPlus), None).unwrap_err().kind(),
        ErrorKind::Invalid
    );
}
