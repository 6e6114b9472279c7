//! Types for the numbers that functions pass to each other, so that the compiler rejects, for
//! example, a SeqNo as an Lsn.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($int:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
        #[repr(transparent)]
        pub struct $name(pub $int);

        impl $name {
            /// The smallest value.
            pub const MIN: Self = Self(0);
            /// The largest value.
            pub const MAX: Self = Self(<$int>::MAX);

            /// Returns the number.
            #[inline]
            pub const fn get(self) -> $int {
                self.0
            }

            /// Returns the next value, at most the largest one.
            #[inline]
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// The position of a message in the commit order. Every message has its own SeqNo. A reader
    /// sees the messages up to the SeqNo of its snapshot.
    SeqNo(u64)
}
id! {
    /// Position in the write-ahead log, in bytes since the log's beginning; never reused.
    Lsn(u64)
}
id! {
    /// Number of a tree, which is one ordered index. Never reused.
    TreeId(u32)
}
id! {
    /// Number of an immutable run. Never reused, because the keys of the cache contain it: (run,
    /// block).
    RunId(u64)
}
id! {
    /// Number of a node of a trunk. Never reused.
    NodeId(u64)
}
