//! The findings of the checks: anomalies, classes of cycles, and the edges that cycles consist of.

use std::fmt;

use super::history::KeyNumber;

/// The reason why one transaction must precede another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Edge {
    /// The other transaction overwrote the version that this one wrote.
    Ww,
    /// The other transaction read the version that this one wrote.
    Wr,
    /// The other transaction overwrote the version that this one read.
    Rw,
    /// This transaction had ended before the other one began.
    RealTime,
}

/// A violation of an isolation level. Transactions are identified by their index in the history.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // The names of the fields explain them.
pub enum Anomaly {
    /// A value was appended twice, or is in a list twice: not a valid history of this kind.
    Duplicate { value: u64 },
    /// A final list contains a value that no transaction committed.
    NeverCommitted { key: KeyNumber, value: u64 },
    /// A committed value is not in the final state of its list.
    LostAppend { transaction: usize, key: KeyNumber, value: u64 },
    /// A read does not end with the appends of its own transaction.
    OwnAppendMissing { transaction: usize, key: KeyNumber },
    /// Two reads of a list by one transaction disagree.
    NotRepeatable { transaction: usize, key: KeyNumber },
    /// A read saw a value that was not committed, or one that its own transaction appended later.
    G1a { transaction: usize, key: KeyNumber, value: u64 },
    /// A read saw a version that its writer changed later.
    G1b { transaction: usize, key: KeyNumber, value: u64 },
    /// A read saw a state that the list never had.
    NoVersion { transaction: usize, key: KeyNumber },
    /// A cycle in the order of transactions: each transaction with the edge to the next.
    Cycle { class: Class, path: Vec<(usize, Edge)> },
}

/// Classes of cycles, the worst first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// Only ww edges.
    G0,
    /// ww and wr edges.
    G1c,
    /// One rw edge.
    GSingle,
    /// Several rw edges, no two of them adjacent.
    GNonadjacent,
    /// Adjacent rw edges.
    G2Item,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Cycle { class, path } = self else { return write!(f, "{self:?}") };
        write!(f, "{class:?}:")?;
        path.iter().try_for_each(|(transaction, edge)| write!(f, " T{transaction} -{edge:?}->"))
    }
}
