//! A fold keeps exactly the messages that a live snapshot or a reader of the newest state can still
//! distinguish (docs/design/rules.md, rules 12, 13 and 16).

use std::collections::BTreeMap;

use crate::history::{
    History, ListSource, Message, POISON, append_with_plus, deal, read_all, reader,
};
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_core::{Direction, ErrorKind, MessageKind, SeqNo, Source};
use frondb_merge::{FoldMerge, FoldOptions, FoldStats, VisibleMerge};

struct Folded {
    messages: Vec<Message>,
    refs: Vec<Box<[u8]>>,
    stats: FoldStats,
    first_dropped: Option<Box<[u8]>>,
}

fn fold(sources: Vec<Box<dyn Source>>, options: FoldOptions) -> Folded {
    let mut merge = FoldMerge::new(sources, options).unwrap();
    let mut messages = Vec::new();
    while merge.next().unwrap() {
        assert_eq!(merge.prefix(), frondb_core::chunk::key_prefix(merge.key()));
        messages.push((merge.key().to_vec(), merge.seq(), merge.kind(), merge.value().to_vec()));
    }
    assert!(!merge.next().unwrap());
    let (refs, first_dropped) = (merge.take_dropped_refs(), merge.take_first_dropped());
    Folded { messages, refs, stats: merge.stats(), first_dropped }
}

fn snapshots(prng: &mut Prng, last: SeqNo) -> Arc<[SeqNo]> {
    let mut live: Vec<SeqNo> =
        (0..prng.below(4)).map(|_| SeqNo(prng.below(last.get() + 1))).collect();
    live.sort();
    live.dedup();
    live.into()
}

fn stripe(live: &[SeqNo], seq: SeqNo) -> usize {
    live.partition_point(|&snapshot| snapshot < seq)
}

/// The least key with fewer messages in the output than in the input.
fn first_missing<'a>(given: &'a [Message], folded: &Folded) -> Option<&'a [u8]> {
    let mut left: BTreeMap<&[u8], i64> = BTreeMap::new();
    given.iter().for_each(|(key, ..)| *left.entry(key).or_default() += 1);
    for (key, ..) in &folded.messages {
        *left.get_mut(&key[..]).unwrap() -= 1;
    }
    left.into_iter().find(|(_, left)| *left > 0).map(|(key, _)| key)
}

/// Asserts the order that every source must have, and that every (key, SeqNo) occurs once.
fn assert_ordered(messages: &[Message]) {
    for pair in messages.windows(2) {
        assert!((&pair[0].0, pair[1].1) < (&pair[1].0, pair[0].1), "{pair:?}");
    }
}

#[test]
fn live_snapshots_read_the_same_before_and_after() {
    let (mut prng, mut folds_with_drops) = (Prng::new(51), 0);
    for round in 0..1_500 {
        let history = History::random(&mut prng, 1 + round % 80);
        let live = snapshots(&mut prng, history.last);
        let at_base = prng.chance(1, 2);
        // Not at the base: older messages lie in a source that is not folded.
        let cut = SeqNo(if at_base { 0 } else { prng.below(history.last.get() + 1) });
        let (older, newer): (Vec<Message>, Vec<Message>) =
            history.messages.iter().cloned().partition(|message| message.1 <= cut);
        let sources = deal(&newer, 1 + prng.index(6), Direction::Forward, &mut prng);
        let folded = fold(
            sources,
            FoldOptions {
                snapshots: Arc::clone(&live),
                range_deletes: history.range_deletes(),
                at_base,
                update: Some(append_with_plus()),
            },
        );
        assert_ordered(&folded.messages);
        assert_eq!(folded.stats.entries_in, newer.len() as u64);
        assert_eq!(folded.stats.entries_out, folded.messages.len() as u64);
        let dropped =
            folded.stats.dropped_puts + folded.stats.dropped_deletes + folded.stats.dropped_updates;
        assert_eq!(dropped, newer.len() as u64 - folded.messages.len() as u64, "round {round}");
        if newer.iter().all(|message| message.2 != MessageKind::Update) {
            folds_with_drops += u32::from(folded.first_dropped.is_some());
            assert_eq!(
                folded.first_dropped.as_deref(),
                first_missing(&newer, &folded),
                "round {round}"
            );
        }
        for snapshot in live.iter().copied().chain([SeqNo::MAX]) {
            let expected: Vec<_> = history.read(snapshot).unwrap().into_iter().collect();
            let sources: Vec<Box<dyn Source>> = [&folded.messages, &older]
                .map(|part| {
                    let source = ListSource::new(part.clone(), Direction::Forward, &mut prng);
                    Box::new(source) as Box<dyn Source>
                })
                .into_iter()
                .collect();
            let options = reader(snapshot, Direction::Forward, history.range_deletes());
            let found = read_all(VisibleMerge::new(sources, options)).unwrap();
            assert_eq!(found, expected, "round {round}, live {live:?}, at {snapshot}, cut {cut}");
        }
    }
    assert!(
        folds_with_drops > 10,
        "too few folds without updates dropped anything: {folds_with_drops}"
    );
}

#[test]
fn no_message_stays_that_no_reader_can_see() {
    let mut prng = Prng::new(52);
    for round in 0..800 {
        let history = History::random(&mut prng, 1 + round % 80);
        let live = snapshots(&mut prng, history.last);
        let deletes = history.range_deletes();
        let folded = fold(
            deal(&history.messages, 1 + prng.index(6), Direction::Forward, &mut prng),
            FoldOptions {
                snapshots: Arc::clone(&live),
                range_deletes: deletes.clone(),
                at_base: true,
                update: Some(append_with_plus()),
            },
        );
        let mut in_stripe: BTreeMap<(Vec<u8>, usize), Vec<MessageKind>> = BTreeMap::new();
        for (key, seq, kind, _) in &folded.messages {
            let stripe = stripe(&live, *seq);
            let first_reader = live.get(stripe).copied().unwrap_or(SeqNo::MAX);
            assert!(!deletes.hides(key, *seq, first_reader), "round {round}");
            if *kind == MessageKind::Delete {
                assert!(stripe > 0, "round {round}: a delete in the oldest stripe");
            }
            in_stripe.entry((key.clone(), stripe)).or_default().push(*kind);
        }
        for ((key, stripe), kinds) in in_stripe {
            let (last, above) = kinds.split_last().unwrap();
            let above_are_updates = above.iter().all(|kind| *kind == MessageKind::Update);
            assert!(above_are_updates, "round {round} {key:?} {stripe}: {kinds:?}");
            if !above.is_empty() && *last != MessageKind::Update {
                // Operands stay only above a reference, because a fold does not read the large
                // value.
                assert_eq!(*last, MessageKind::PutRef, "round {round} {key:?} {stripe}");
            }
        }
        let value_of_refs = |messages: &[Message]| {
            let refs = messages.iter().filter(|message| message.2 == MessageKind::PutRef);
            refs.map(|message| message.3.clone()).collect::<Vec<_>>()
        };
        let mut refs = value_of_refs(&folded.messages);
        refs.extend(folded.refs.iter().map(|reference| reference.to_vec()));
        let mut expected = value_of_refs(&history.messages);
        refs.sort();
        expected.sort();
        assert_eq!(refs, expected, "round {round}: a reference is kept or reported, once");
    }
}

fn options(live: &[u64], at_base: bool) -> FoldOptions {
    FoldOptions {
        snapshots: live.iter().map(|&seq| SeqNo(seq)).collect(),
        range_deletes: History::default().range_deletes(),
        at_base,
        update: Some(append_with_plus()),
    }
}

fn fold_one_key(messages: &[(u64, MessageKind, &str)], options: FoldOptions) -> Vec<String> {
    let messages = messages
        .iter()
        .map(|(seq, kind, value)| (b"k".to_vec(), SeqNo(*seq), *kind, value.as_bytes().to_vec()));
    let source = ListSource::new(messages.collect(), Direction::Forward, &mut Prng::new(1));
    let folded = fold(vec![Box::new(source)], options);
    let text = |(_, seq, kind, value): &Message| {
        format!("{seq} {kind:?} {}", String::from_utf8_lossy(value))
    };
    folded.messages.iter().map(text).collect()
}

use MessageKind::{Delete, Put, PutRef, Update};

#[test]
fn the_newest_of_each_stripe_stays() {
    let messages = [15, 18, 25, 30, 33, 40, 44].map(|seq| (seq, Put, "v"));
    let kept = fold_one_key(&messages, options(&[20, 35], false));
    assert_eq!(kept, ["44 Put v", "33 Put v", "18 Put v"]);
    // A snapshot at a message sees it: the message is the newest of the older stripe.
    assert_eq!(fold_one_key(&messages, options(&[33], false)), ["44 Put v", "33 Put v"]);
    assert_eq!(fold_one_key(&messages, options(&[], false)), ["44 Put v"]);
}

#[test]
fn a_delete_is_dropped_only_at_the_base_and_in_the_oldest_stripe() {
    let messages = [(10, Put, "v"), (20, Delete, "")];
    assert_eq!(fold_one_key(&messages, options(&[], false)), ["20 Delete "]);
    assert!(fold_one_key(&messages, options(&[], true)).is_empty());
    assert_eq!(fold_one_key(&messages, options(&[15], true)), ["20 Delete ", "10 Put v"]);
    assert!(fold_one_key(&messages, options(&[25], true)).is_empty());
}

#[test]
fn updates_become_a_put_only_where_everything_below_is_known() {
    let updates = [(20, Update, "b"), (30, Update, "c")];
    assert_eq!(fold_one_key(&updates, options(&[], false)), ["30 Update b+c"]);
    assert_eq!(fold_one_key(&updates, options(&[], true)), ["30 Put ~+b+c"]);
    assert_eq!(fold_one_key(&updates, options(&[25], true)), ["30 Update c", "20 Put ~+b"]);
    let upon_put = [(10, Put, "a"), (20, Update, "b"), (30, Update, "c")];
    assert_eq!(fold_one_key(&upon_put, options(&[], false)), ["30 Put a+b+c"]);
    assert_eq!(fold_one_key(&upon_put, options(&[15], false)), ["30 Update b+c", "10 Put a"]);
    let upon_delete = [(10, Delete, ""), (20, Update, "b")];
    assert_eq!(fold_one_key(&upon_delete, options(&[], false)), ["20 Put ~+b"]);
    let upon_ref = [(10, PutRef, "r"), (20, Update, "b")];
    assert_eq!(fold_one_key(&upon_ref, options(&[], true)), ["20 Update b", "10 PutRef r"]);
}

#[test]
fn operands_that_do_not_combine_stay_in_order() {
    let updates =
        [(10, Update, "one"), (20, Update, "two"), (30, Update, "three"), (40, Update, "x")];
    let kept = fold_one_key(&updates, options(&[], false));
    assert_eq!(kept, ["40 Update three+x", "20 Update one+two"]);
    let without = FoldOptions { update: None, ..options(&[], true) };
    assert_eq!(fold_one_key(&updates, without).len(), 4);
}

#[test]
fn updates_are_not_combined_across_a_range_delete() {
    let mut history = History::default();
    history.deletes.push(frondb_core::RangeDelete { lo: Box::default(), hi: None, seq: SeqNo(15) });
    let updates = [(10, Update, "a"), (20, Update, "b")];
    let with = |live: &[u64]| FoldOptions {
        range_deletes: history.range_deletes(),
        ..options(live, false)
    };
    assert_eq!(fold_one_key(&updates, with(&[])), ["20 Put ~+b"]);
    assert_eq!(fold_one_key(&updates, with(&[12])), ["20 Update b", "10 Update a"]);
    assert_eq!(fold_one_key(&updates, with(&[17])), ["20 Update b"]);
}

#[test]
fn a_failing_function_leaves_the_operands() {
    let poison = String::from(char::from(POISON));
    let messages =
        [(10, Put, "a"), (20, Update, "b"), (30, Update, &poison[..]), (40, Update, "c")];
    let kept = fold_one_key(&messages, options(&[], true));
    assert_eq!(kept, ["40 Update c", "30 Update !", "20 Update b", "10 Put a"]);
    let upon_delete = [(10, Delete, ""), (30, Update, &poison[..])];
    assert_eq!(fold_one_key(&upon_delete, options(&[], true)), ["30 Update !"]);
    assert_eq!(fold_one_key(&upon_delete, options(&[], false)), ["30 Update !", "10 Delete "]);
    // Rule 13: the delete stays below the operands, because the put that it deletes stays for an
    // older snapshot.
    let upon_deleted = [(5, Put, "a"), (15, Delete, ""), (20, Update, &poison[..])];
    let kept = fold_one_key(&upon_deleted, options(&[10], true));
    assert_eq!(kept, ["20 Update !", "15 Delete ", "5 Put a"]);
}

#[test]
fn the_error_of_a_source_ends_the_fold() {
    let mut prng = Prng::new(53);
    let history = History::random(&mut prng, 60);
    let source = ListSource::new(history.messages, Direction::Forward, &mut prng).failing_at(5);
    let mut merge = FoldMerge::new(vec![Box::new(source)], options(&[], true)).unwrap();
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
