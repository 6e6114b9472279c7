//! Lock classes, and which of them exclude each other: the table of docs/design/transactions.md as
//! a matrix. Pure.
//!
//! The matrix of the seven classes is symmetric, so one row gives both "held against requested" and
//! "requested earlier against requested later":
//!
//! ```text
//!            rowS rowX gap  scanS scanX rangeS rangeX
//!   rowS      .    x    .    .     x     .      x
//!   rowX      x    x    x    x     x     x      x
//!   gap       .    x    .    .     .     .      x
//!   scanS     .    x    .    .     .     .      x
//!   scanX     x    x    .    .     .     x      x
//!   rangeS    .    x    .    .     x     .      x
//!   rangeX    x    x    x    x     x     x      x
//! ```
//!
//! No locker requests a scanned range: a step of a scan requests a gap and a row, which become part
//! of a scanned range when they are granted. The entries of scan against scan are therefore never
//! used for a request. They say which locks different lockers may hold at the same time.

/// The mode in which a row or a range is locked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum LockMode {
    /// Other transactions may lock the same keys in shared mode.
    Shared,
    /// No other transaction may lock the same keys.
    Exclusive,
}

impl LockMode {
    /// Returns the mode's name in messages and in the status.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Exclusive => "exclusive",
        }
    }
}

/// The class of a lock. The range classes are ordered by strength: each excludes all requestable
/// classes that the range classes before it exclude (a scanned range is not requestable). So where
/// two ranges of one locker overlap, the larger class applies to the overlap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[repr(u8)]
pub(crate) enum Class {
    RowShared,
    RowExclusive,
    Gap,
    ScanShared,
    RangeShared,
    ScanExclusive,
    RangeExclusive,
}

/// A set of classes: bit n is class n.
pub(crate) type Classes = u8;

impl Class {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 7] = [
        Self::RowShared,
        Self::RowExclusive,
        Self::Gap,
        Self::ScanShared,
        Self::RangeShared,
        Self::ScanExclusive,
        Self::RangeExclusive,
    ];

    pub(crate) const fn bit(self) -> Classes {
        1 << self as u8
    }

    pub(crate) const fn row(mode: LockMode) -> Self {
        match mode {
            LockMode::Shared => Self::RowShared,
            LockMode::Exclusive => Self::RowExclusive,
        }
    }

    pub(crate) const fn scan(mode: LockMode) -> Self {
        match mode {
            LockMode::Shared => Self::ScanShared,
            LockMode::Exclusive => Self::ScanExclusive,
        }
    }

    pub(crate) const fn range(mode: LockMode) -> Self {
        match mode {
            LockMode::Shared => Self::RangeShared,
            LockMode::Exclusive => Self::RangeExclusive,
        }
    }

    pub(crate) const fn mode(self) -> LockMode {
        match self {
            Self::RowExclusive | Self::ScanExclusive | Self::RangeExclusive => LockMode::Exclusive,
            Self::RowShared | Self::Gap | Self::ScanShared | Self::RangeShared => LockMode::Shared,
        }
    }

    /// Returns the classes that another locker may not hold on the same keys.
    pub(crate) const fn excludes(self) -> Classes {
        const ALL: Classes = 0x7f;
        match self {
            Self::RowShared => {
                Self::RowExclusive.bit() | Self::ScanExclusive.bit() | Self::RangeExclusive.bit()
            }
            Self::RowExclusive | Self::RangeExclusive => ALL,
            Self::Gap | Self::ScanShared => Self::RowExclusive.bit() | Self::RangeExclusive.bit(),
            Self::RangeShared => Self::Gap.excludes() | Self::ScanExclusive.bit(),
            Self::ScanExclusive => {
                Self::RowShared.bit() | Self::RangeShared.bit() | Self::Gap.excludes()
            }
        }
    }

    pub(crate) const fn conflicts(self, other: Self) -> bool {
        self.excludes() & other.bit() != 0
    }

    /// Whether a locker whose own range has this class need not request `wanted` inside the range.
    ///
    /// A scan, even an exclusive one, does not cover a write. Where the scan saw no row, other
    /// transactions may have seen no row either. An insert there must wait for these transactions,
    /// and must be visible to later requests for that gap.
    pub(crate) fn covers(self, wanted: Self) -> bool {
        match wanted {
            Self::RowShared => self >= Self::ScanShared,
            Self::RowExclusive => self == Self::RangeExclusive,
            wanted => self >= wanted,
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    /// The page that has the table.
    const PAGE: &str = include_str!("../../../docs/design/transactions.md");

    /// Returns the rows of the page's table: the first cell, and for each requested class whether
    /// it waits.
    fn page_rows() -> Vec<(String, Vec<bool>)> {
        let lines = PAGE.lines().skip_while(|line| !line.starts_with("| held by another"));
        let cells = |line: &str| {
            let cells = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned());
            cells.collect::<Vec<_>>()
        };
        let rows = lines.skip(2).take_while(|line| line.starts_with('|')).map(cells);
        rows.map(|row| (row[0].clone(), row[1..].iter().map(|cell| cell == "waits").collect()))
            .collect()
    }

    #[test]
    fn the_matrix_is_the_table_of_the_design() {
        use Class::{Gap, RangeExclusive, RangeShared, RowExclusive, RowShared};
        let held = [
            ("row shared", RowShared),
            ("row exclusive", RowExclusive),
            ("gap (no rows seen in it)", Gap),
            ("scanned, shared (rows and gaps)", Class::ScanShared),
            ("scanned, exclusive (rows and gaps)", Class::ScanExclusive),
            ("range shared", RangeShared),
            ("range exclusive", RangeExclusive),
        ];
        let wanted = [RowShared, RowExclusive, Gap, RangeShared, RangeExclusive];
        let rows = page_rows();
        assert_eq!(rows.len(), held.len());
        for ((name, waits), (expected_name, class)) in rows.iter().zip(held) {
            assert_eq!(name, expected_name);
            let ours: Vec<bool> = wanted.iter().map(|wanted| class.conflicts(*wanted)).collect();
            assert_eq!(*waits, ours, "{name}");
        }
    }

    #[test]
    fn conflicts_are_mutual_and_grow_with_strength() {
        for a in Class::ALL {
            for b in Class::ALL {
                assert_eq!(a.conflicts(b), b.conflicts(a), "{a:?} {b:?}");
                // No locker requests a scanned range.
                let asked = !(Class::ScanShared.bit() | Class::ScanExclusive.bit());
                let ranges = a >= Class::Gap && b >= a;
                let missing = a.excludes() & !b.excludes() & asked;
                assert!(!ranges || missing == 0, "{b:?} is weaker than {a:?}");
            }
        }
    }

    /// An own range that covers a request excludes everything that the requested lock would
    /// exclude.
    #[test]
    fn a_covering_class_excludes_as_much() {
        for own in Class::ALL.into_iter().filter(|own| *own >= Class::Gap) {
            for wanted in Class::ALL.into_iter().filter(|wanted| own.covers(*wanted)) {
                // Where both lockers have scanned, both have seen that there is no row.
                let scan = Class::ScanExclusive.bit();
                let missing = wanted.excludes() & !own.excludes() & !scan;
                assert_eq!(missing, 0, "{own:?} covers {wanted:?}");
            }
        }
        assert!(!Class::Gap.covers(Class::RowShared));
        assert!(!Class::ScanExclusive.covers(Class::RowExclusive));
        assert!(!Class::ScanExclusive.covers(Class::RangeExclusive));
    }
}
