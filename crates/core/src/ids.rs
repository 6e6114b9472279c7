//! Newtypes for the numbers that functions pass to each other, so that the compiler refuses a SeqNo
//! where an Lsn is expected.

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

            /// The number itself.
            #[inline]
            pub const fn get(self) -> $int {
                self.0
            }

            /// The value after this one (saturating).
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
    /// Commit order of one message. Every message has its own SeqNo; a reader sees the messages up
    /// to its snapshot.
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
    /// Number of an immutable run. Never reused, because it is a part of the cache's keys: (run,
    /// block).
    RunId(u64)
}
id! {
    /// Number of a node of a trunk. Never reused.
    NodeId(u64)
}
