//! An update result that is longer than a value may be is a failure of the function: operands stay,
//! readers get the reason, and results that fit are folded.

use frondb_core::limits::VALUE_BYTES_MAX;
use frondb_core::message::UpdateFn;
use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::{Chunk, ErrorKind, MessageKind, Result, SeqNo, Source};
use frondb_merge::{FoldMerge, FoldOptions, Lookup, VisibleValue};

/// An operand of eight bytes is the length of the result, which is all zeros; any other operand
/// stands for its own length. Two operands combine to one as long as both results together.
struct Length;

fn number(bytes: &[u8]) -> usize {
    bytes.try_into().map_or(bytes.len(), usize::from_le_bytes)
}

impl UpdateFn for Length {
    fn name(&self) -> &str {
        "length"
    }

    fn apply(
        &self,
        _: &[u8],
        _: Option<&[u8]>,
        operand: &[u8],
    ) -> std::result::Result<Vec<u8>, String> {
        Ok(vec![0; number(operand)])
    }

    fn combine(&self, _: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some(vec![0; number(older) + number(newer)])
    }
}

struct Once(Option<Chunk>);

impl Source for Once {
    fn next_chunk(&mut self, chunk: &mut Chunk) -> Result<bool> {
        match self.0.take() {
            None => Ok(false),
            Some(mine) => {
                *chunk = mine;
                Ok(true)
            }
        }
    }
}

/// SeqNo, kind and length of what a fold leaves of one key's messages, given newest first.
fn fold(messages: &[(u64, MessageKind, &[u8])]) -> Vec<(u64, MessageKind, usize)> {
    let mut chunk = Chunk::new();
    for (seq, kind, value) in messages {
        chunk.push(b"k", SeqNo(*seq), *kind, value);
    }
    let options = FoldOptions {
        snapshots: Arc::from([]),
        range_deletes: RangeDeletes::empty(),
        at_base: true,
        update: Some(Arc::new(Length)),
    };
    let mut merge = FoldMerge::new(vec![Box::new(Once(Some(chunk)))], options).unwrap();
    let mut left = Vec::new();
    while merge.next().unwrap() {
        left.push((merge.seq().get(), merge.kind(), merge.value().len()));
    }
    left
}

#[test]
fn a_result_that_is_too_long_stays_an_operand() {
    let (fits, long) = (VALUE_BYTES_MAX.to_le_bytes(), (VALUE_BYTES_MAX + 1).to_le_bytes());
    use MessageKind::{Put, Update};
    assert_eq!(fold(&[(9, Update, &fits)]), [(9, Put, VALUE_BYTES_MAX)]);
    assert_eq!(fold(&[(9, Update, &long)]), [(9, Update, 8)]);
    assert_eq!(fold(&[(9, Update, &long), (5, Put, b"v")]), [(9, Update, 8), (5, Put, 1)]);
    // Only intermediate results are too long: the result that a reader gets is what counts.
    assert_eq!(fold(&[(9, Update, &fits), (8, Update, &long)]), [(9, Put, VALUE_BYTES_MAX)]);
}

#[test]
fn operands_that_are_too_long_together_stay_apart() {
    let (long, half) = (VALUE_BYTES_MAX + 1, VALUE_BYTES_MAX / 2 + 1);
    use MessageKind::Update;
    let (long, half) = (long.to_le_bytes(), half.to_le_bytes());
    let kept = fold(&[(9, Update, &long), (8, Update, &half), (7, Update, &half)]);
    assert_eq!(kept, [(9, Update, 8), (8, Update, 8), (7, Update, 8)]);
}

#[test]
fn a_reader_gets_the_reason_of_the_failure() {
    let read = |length: usize| {
        let mut lookup = Lookup::new();
        lookup.feed(SeqNo(9), MessageKind::Update, &length.to_le_bytes());
        lookup.finish(b"k", Some(&Length), None)
    };
    assert!(read(VALUE_BYTES_MAX).unwrap().is_some_and(|value| {
        matches!(value, VisibleValue::Value(value) if value.len() == VALUE_BYTES_MAX)
    }));
    let error = read(VALUE_BYTES_MAX + 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("its result has 67108865 bytes"), "{error}");
}
