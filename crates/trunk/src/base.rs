//! A leaf's base as one source: its views are disjoint, so they are read one after the other, each
//! opened when the walk comes to it.

use frondb_core::{Chunk, Direction, Result, Source};
use frondb_run::{ReadMode, RunCursor};

use crate::view::View;

/// Walks the views of a base. For one thread at a time.
pub(crate) struct BaseCursor {
    /// Views not yet opened, the next one last.
    views: Vec<View>,
    current: Option<RunCursor>,
    direction: Direction,
    mode: ReadMode,
    /// See [`Source::keep_small`].
    small: Option<usize>,
}

impl BaseCursor {
    /// A walk over `views`, disjoint and in key order. Opens nothing yet.
    pub(crate) fn new(mut views: Vec<View>, direction: Direction, mode: ReadMode) -> Self {
        if direction == Direction::Forward {
            views.reverse();
        }
        Self { views, current: None, direction, mode, small: None }
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
            if let Some(messages) = self.small {
                cursor.keep_small(messages);
            }
            self.current = Some(cursor);
        }
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
        // What has something left is before all views that are not opened.
        let Some(next) = self.views.last() else { return self.skip_in_current(key) };
        let reaches_next = match self.direction {
            Direction::Forward => *next.lo <= *key,
            Direction::Backward => next.hi.as_ref().is_some_and(|hi| *key <= **hi),
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
