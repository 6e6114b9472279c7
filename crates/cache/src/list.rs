//! Queues whose entries link to their neighbours by index. So an entry can leave from the middle of
//! a queue when its run is dropped, and moving an entry between queues allocates nothing.
//!
//! ```text
//!   head (newest) = ... = tail (oldest)          NONE marks the ends
//! ```

/// No entry.
pub(crate) const NONE: u32 = u32::MAX;

/// An entry's links to its neighbours in a queue.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    newer: u32,
    older: u32,
}

impl Default for Link {
    fn default() -> Self {
        Self { newer: NONE, older: NONE }
    }
}

/// Access of a queue to the links of its entries.
pub(crate) trait Links {
    fn link(&mut self, at: u32) -> &mut Link;
}

/// A queue. It stores indexes only; every call receives the entries.
#[derive(Clone, Copy)]
pub(crate) struct List {
    head: u32,
    tail: u32,
}

impl Default for List {
    fn default() -> Self {
        Self { head: NONE, tail: NONE }
    }
}

impl List {
    /// Returns the oldest entry.
    pub(crate) fn oldest(&self) -> Option<u32> {
        (self.tail != NONE).then_some(self.tail)
    }

    /// Adds an entry as the newest. REQUIRES: the entry is in no queue.
    pub(crate) fn push(&mut self, links: &mut impl Links, at: u32) {
        *links.link(at) = Link { newer: NONE, older: self.head };
        match self.head {
            NONE => self.tail = at,
            head => links.link(head).newer = at,
        }
        self.head = at;
    }

    /// Removes an entry of this queue.
    pub(crate) fn remove(&mut self, links: &mut impl Links, at: u32) {
        let Link { newer, older } = std::mem::take(links.link(at));
        match newer {
            NONE => self.head = older,
            newer => links.link(newer).older = older,
        }
        match older {
            NONE => self.tail = newer,
            older => links.link(older).newer = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Links for Vec<Link> {
        fn link(&mut self, at: u32) -> &mut Link {
            &mut self[at as usize]
        }
    }

    #[test]
    fn entries_leave_from_any_place() {
        let mut links = vec![Link::default(); 5];
        let mut list = List::default();
        for at in 0..5 {
            list.push(&mut links, at);
        }
        list.remove(&mut links, 2);
        list.remove(&mut links, 0);
        list.remove(&mut links, 4);
        list.push(&mut links, 2);
        let mut order = Vec::new();
        while let Some(oldest) = list.oldest() {
            order.push(oldest);
            list.remove(&mut links, oldest);
        }
        assert_eq!(order, [1, 3, 2]);
        list.push(&mut links, 1);
        assert_eq!(list.oldest(), Some(1));
    }
}
