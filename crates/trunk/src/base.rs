//! [`BaseCursor`]: reads the base of a leaf as one source. The views of a base are disjoint, so the
//! cursor reads them one after the other, and opens each view when it reaches it.

use frondb_core::sync::Arc;
use frondb_core::{Chunk, Direction, Result, Source};
use frondb_run::{Handover, ReadMode, RunCursor};

use crate::view::View;

/// A cursor over the views of a base. Used by one thread at a time.
pub(crate) struct BaseCursor {
    /// Views that are not open yet, in reverse order: the next view is the last element.
    views: Vec<View>,
    current: Option<RunCursor>,
    direction: Direction,
    mode: ReadMode,
    /// Number of messages that the caller expects to read ([`Source::expect`]); 0 if unknown.
    expected: usize,
    /// See [`Source::keep_small`].
    small: Option<usize>,
    /// See [`RunCursor::handing_over`].
    handover: Option<Arc<Handover>>,
}

impl BaseCursor {
    /// Creates a cursor over `views`, which are disjoint and in key order. Opens nothing yet.
    pub(crate) fn new(mut views: Vec<View>, direction: Direction, mode: ReadMode) -> Self {
        if direction == Direction::Forward {
            views.reverse();
        }
        Self { views, current: None, direction, mode, expected: 0, small: None, handover: None }
    }

    /// Counts the cached blocks that the cursor reads; see [`RunCursor::handing_over`].
    pub(crate) fn handing_over(mut self, handover: &Arc<Handover>) -> Self {
        self.handover = Some(Arc::clone(handover));
        self
    }
}

impl BaseCursor {
    fn skip_in_current(&mut self, key: &[u8]) -> Result<()> {
        self.current.as_mut().map_or(Ok(()), |cursor| cursor.skip(key))
    }
}

impl Source for BaseCursor {
    fn next_chunk(&mut self, chunk: &mut Chunk) -> Result<bool> {
        loop {
            if let Some(cursor) = &mut self.current
                && cursor.next_chunk(chunk)?
            {
                return Ok(true);
            }
            chunk.clear();
            self.current = None;
            let Some(view) = self.views.pop() else { return Ok(false) };
            let mut cursor = view.cursor(self.direction, self.mode)?;
            cursor.expect(self.expected);
            if let Some(messages) = self.small {
                cursor.keep_small(messages);
            }
            if let Some(handover) = &self.handover {
                cursor = cursor.handing_over(handover);
            }
            self.current = Some(cursor);
        }
    }

    fn expect(&mut self, messages: usize) {
        self.expected = messages;
    }

    fn keep_small(&mut self, messages: usize) {
        self.small = Some(messages);
        if let Some(cursor) = &mut self.current {
            cursor.keep_small(messages);
        }
    }

    fn skip(&mut self, key: &[u8]) -> Result<()> {
        let is_behind = |view: &View| match self.direction {
            Direction::Forward => view.hi.as_ref().is_some_and(|hi| **hi <= *key),
            Direction::Backward => *view.lo >= *key,
        };
        // Without another view, the skip can only affect the open cursor.
        let Some(next) = self.views.last() else { return self.skip_in_current(key) };
        // A view may have the bounds of its node. These bounds may reach beyond the keys of the run
        // and overlap the neighbouring views. So the open view ends where the keys of the next view
        // begin.
        let meta = next.run.meta();
        let reaches_next = match self.direction {
            Direction::Forward => (&*next.lo).max(&*meta.first_key) <= key,
            Direction::Backward => {
                *key <= *meta.last_key && next.hi.as_ref().is_none_or(|hi| *key <= **hi)
            }
        };
        if !reaches_next {
            return self.skip_in_current(key);
        }
        self.current = None;
        while self.views.last().is_some_and(is_behind) {
            self.views.pop();
        }
        let Some(view) = self.views.last_mut() else { return Ok(()) };
        match self.direction {
            Direction::Forward if *view.lo < *key => view.lo = key.into(),
            Direction::Backward if view.hi.as_ref().is_none_or(|hi| **hi > *key) => {
                view.hi = Some(key.into())
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use frondb_block::Codec;
    use frondb_cache::{Cache, CacheOptions};
    use frondb_core::budget::Budget;
    use frondb_core::clock::SystemClock;
    use frondb_core::sync::Arc;
    use frondb_core::wear::WriteCause;
    use frondb_core::{MessageKind, RunId, SeqNo, TreeId};
    use frondb_filter::FilterKind;
    use frondb_run::{
        FILTER_PART_KEYS, INDEX_PART_BLOCKS, Output, Run, RunEnv, RunOptions, RunWriter,
    };
    use frondb_space::{Class, Space, SpaceOptions};
    use frondb_testkit::MemoryDevice;

    use super::*;

    fn env() -> Arc<RunEnv> {
        let options = SpaceOptions { slack_bytes: 0, ..SpaceOptions::default() };
        let space = Space::open(Arc::new(MemoryDevice::new()), options, []).unwrap();
        let budget = Budget::new(64 << 20);
        RunEnv::new(
            space,
            Cache::new(Arc::clone(&budget), CacheOptions::default()),
            budget,
            SystemClock::shared(),
        )
    }

    fn key(letter: char, number: usize) -> Vec<u8> {
        format!("{letter}{number:03}").into_bytes()
    }

    /// Returns a view without bounds of a run with a hundred keys that begin with `letter`.
    fn view(env: &Arc<RunEnv>, letter: char) -> View {
        let options = RunOptions {
            codec: Codec::None,
            block_bytes: 256,
            tree_block_bytes: 256,
            filter: FilterKind::BlockedBloom,
            filter_prefix: None,
            filter_part_keys: FILTER_PART_KEYS,
            index_part_blocks: INDEX_PART_BLOCKS,
            writes: 1,
        };
        let mut output =
            Output::new(Arc::clone(&env.space), WriteCause::Merge, Class::Merge, 0, false);
        let mut writer = RunWriter::new(RunId(u64::from(letter)), TreeId(1), options, false);
        for number in 0..100 {
            let (key, kind) = (key(letter, number), MessageKind::Put);
            writer.add(&mut output, &key, SeqNo(1), kind, b"").unwrap();
        }
        let meta = writer.finish(&mut output).unwrap().unwrap();
        output.finish().unwrap();
        View::whole(Run::new(meta, None, Arc::clone(env)), Arc::from([]), None)
    }

    #[test]
    fn a_skip_stays_in_a_run_beside_a_view_with_bounds_beyond_its_keys() {
        let env = env();
        let views = || vec![view(&env, 'a'), view(&env, 'b')];
        let mut chunk = Chunk::new();

        let mut backward = BaseCursor::new(views(), Direction::Backward, ReadMode::Scan);
        assert!(backward.next_chunk(&mut chunk).unwrap());
        backward.skip(&key('b', 20)).unwrap();
        assert!(backward.next_chunk(&mut chunk).unwrap());
        assert_eq!(chunk.key(chunk.len() - 1), key('b', 19));

        let mut forward = BaseCursor::new(views(), Direction::Forward, ReadMode::Scan);
        assert!(forward.next_chunk(&mut chunk).unwrap());
        forward.skip(&key('a', 80)).unwrap();
        assert!(forward.next_chunk(&mut chunk).unwrap());
        assert_eq!(chunk.key(0), key('a', 80));
        forward.skip(&key('b', 7)).unwrap();
        assert!(forward.next_chunk(&mut chunk).unwrap());
        assert_eq!(chunk.key(0), key('b', 7));
    }
}
