//! A section of the page as data. A row says where its figure is; no figure is in the source.

/// A section of the page.
pub(super) struct Section {
    pub(super) title: &'static str,
    /// The steps whose figures it shows. Rows are of the first one unless they name another.
    pub(super) steps: &'static [&'static str],
    /// The variant of the steps' measurements, unless a row names another.
    pub(super) variant: &'static str,
    /// The engines that FronDB is compared with, at most two.
    pub(super) peers: &'static [Peer],
    /// What was measured. `{ROWS}` is a variable of the first step's command, `{tpcc.ROWS}` that of
    /// the step `tpcc`.
    pub(super) text: &'static str,
    /// The load as the table at the top of the page names it; empty if it is not there.
    pub(super) short: &'static str,
    pub(super) rows: &'static [Row],
}

/// An engine that FronDB is compared with.
pub(super) struct Peer {
    /// Its name in the JSON files.
    pub(super) engine: &'static str,
    pub(super) name: &'static str,
}

pub(super) const ROCKSDB: Peer = Peer { engine: "rocksdb", name: "RocksDB" };
pub(super) const INNODB: Peer = Peer { engine: "innodb", name: "InnoDB" };
pub(super) const MYROCKS: Peer = Peer { engine: "myrocks", name: "MyRocks" };

/// A row of a table.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) label: &'static str,
    /// Step and variant, if they are not those of the section.
    pub(super) place: Option<(&'static str, &'static str)>,
    pub(super) what: Quantity,
    pub(super) unit: Unit,
    /// Whether a smaller value is better.
    pub(super) is_less_better: bool,
    /// The floor of FronDB's own figure.
    pub(super) floor: Floor,
    pub(super) compare: Compare,
    /// The floors of the ratios, in the order of the section's peers.
    pub(super) ratio_floors: [Floor; 2],
    /// Whether the figure is itself a ratio, to what FronDB or an algorithm does otherwise, and is
    /// listed where FronDB is slower.
    pub(super) is_itself_ratio: bool,
    /// What follows the figure or the ratio at the top of the page; empty if it is not there.
    pub(super) short: &'static str,
}

/// Where a figure is in a step's JSON file.
#[derive(Clone, Copy)]
pub(super) enum Quantity {
    /// A member of the engine's measurement.
    Member(&'static str),
    /// One member divided by another.
    Per(&'static str, &'static str),
    /// The same, times 1,000.
    PerThousand(&'static str, &'static str),
    /// A figure by its name.
    Figure(&'static str),
    /// One figure divided by another.
    FigurePer(&'static str, &'static str),
    /// A figure by its name, in a report that is a list of figures.
    Listed(&'static str),
    /// Of all variants, the highest figure whose name has this ending.
    Highest(&'static str),
    /// A member of a case of `reads`: read, keys, threads.
    Case((&'static str, &'static str, u64), &'static str),
    /// Raw bytes divided by those on disk, without what the engine reserves.
    RawPerData,
}

/// How a value is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    Number,
    /// From bytes.
    Megabytes,
    /// From bytes.
    Kib,
    /// A ratio.
    Times,
}

/// The value that the project requires.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Floor {
    None,
    Min(f64),
    Max(f64),
    /// The floor that the JSON file has beside the figure.
    OfFile,
}

/// How FronDB is compared with the peers of the section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Compare {
    /// FronDB's value divided by the peer's.
    Quotient,
    /// The median of the ratios of pairs of slices, which FronDB's measurement has under this name.
    Pairs(&'static str),
    /// Not at all.
    Nothing,
}

impl Row {
    /// A row whose figure is compared with all peers of the section, and should be large.
    pub(super) const fn new(label: &'static str, what: Quantity) -> Self {
        Self {
            label,
            place: None,
            what,
            unit: Unit::Number,
            is_less_better: false,
            floor: Floor::None,
            compare: Compare::Quotient,
            ratio_floors: [Floor::None; 2],
            is_itself_ratio: false,
            short: "",
        }
    }

    /// A row whose figure should be small.
    pub(super) const fn less(label: &'static str, what: Quantity) -> Self {
        let mut row = Self::new(label, what);
        row.is_less_better = true;
        row
    }

    /// The row with a step and a variant of its own.
    pub(super) const fn of(mut self, step: &'static str, variant: &'static str) -> Self {
        self.place = Some((step, variant));
        self
    }

    pub(super) const fn unit(mut self, unit: Unit) -> Self {
        self.unit = unit;
        self
    }

    /// The row with the floor of FronDB's figure.
    pub(super) const fn floor(mut self, floor: Floor) -> Self {
        self.floor = floor;
        self
    }

    /// The row with the floor of its ratio to the first peer.
    pub(super) const fn first(mut self, floor: Floor) -> Self {
        self.ratio_floors[0] = floor;
        self
    }

    /// The row with the floor of its ratio to the second peer.
    pub(super) const fn second(mut self, floor: Floor) -> Self {
        self.ratio_floors[1] = floor;
        self
    }

    /// The row with the ratio of pairs of slices.
    pub(super) const fn pairs(mut self, what: &'static str) -> Self {
        self.compare = Compare::Pairs(what);
        self
    }

    /// The row of FronDB alone.
    pub(super) const fn alone(mut self) -> Self {
        self.compare = Compare::Nothing;
        self
    }

    /// The row of a figure that is itself a ratio.
    pub(super) const fn ratio(mut self) -> Self {
        self.unit = Unit::Times;
        self.is_itself_ratio = true;
        self.alone()
    }

    /// The row with its words at the top of the page.
    pub(super) const fn short(mut self, words: &'static str) -> Self {
        self.short = words;
        self
    }
}
