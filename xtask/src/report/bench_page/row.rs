//! A section of the page as data. A row has no figure, but says where its figure is in the JSON
//! files.

/// A section of the page.
pub(super) struct Section {
    pub(super) title: &'static str,
    /// The steps whose figures the section shows. A row shows the first step unless it names
    /// another.
    pub(super) steps: &'static [&'static str],
    /// The variant whose measurements the rows show, unless a row names another.
    pub(super) variant: &'static str,
    /// The engines that FronDB is compared with, at most two.
    pub(super) peers: &'static [Peer],
    /// The text above the table. `{ROWS}` stands for a variable in the command of the first step,
    /// `{tpcc.ROWS}` for one in the command of the step `tpcc`.
    pub(super) text: &'static str,
    /// The name of the load in the table at the top of the page; empty if it is not in that table.
    pub(super) short: &'static str,
    pub(super) rows: &'static [Row],
}

/// An engine that FronDB is compared with.
pub(super) struct Peer {
    /// The engine's name in the JSON files.
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
    /// Step and variant, if they differ from the section's.
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
    /// Whether the figure is itself a ratio, for example of FronDB's rate beside a writer to its
    /// rate alone. If such a figure is on the wrong side of 1, it is also in the list of figures in
    /// which FronDB is slower.
    pub(super) is_itself_ratio: bool,
    /// The words after the figure or ratio in the table at the top of the page; empty if the row is
    /// not in that table.
    pub(super) short: &'static str,
}

/// Where a figure is in a step's JSON file.
#[derive(Clone, Copy)]
pub(super) enum Quantity {
    /// A member of the engine's measurement.
    Member(&'static str),
    /// One member divided by another.
    Per(&'static str, &'static str),
    /// One member less another, which is not larger.
    Less(&'static str, &'static str),
    /// One member divided by another, times 1,000.
    PerThousand(&'static str, &'static str),
    /// A figure of the engine's measurement, by name.
    Figure(&'static str),
    /// A figure by name, in a report that is a list of figures.
    Listed(&'static str),
    /// The highest figure, over all variants, whose name has this ending.
    Highest(&'static str),
    /// A member of a case of `reads`: read, keys, threads.
    Case((&'static str, &'static str, u64), &'static str),
    /// Raw bytes divided by bytes on disk, without the bytes that the engine reserves.
    RawPerData,
}

/// How a value is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    Number,
    /// Bytes, shown in MB.
    Megabytes,
    /// Bytes, shown in KiB.
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
    /// The floor that the JSON file has with the figure.
    OfFile,
}

/// How FronDB is compared with the peers of the section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Compare {
    /// FronDB's value divided by the peer's.
    Quotient,
    /// The median of the ratios of pairs of slices. FronDB's measurement has it under this name.
    Pairs(&'static str),
    /// FronDB is not compared.
    Nothing,
}

impl Row {
    /// Creates a row whose figure should be large and is compared with all peers of the section.
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

    /// Creates a row whose figure should be small.
    pub(super) const fn less(label: &'static str, what: Quantity) -> Self {
        let mut row = Self::new(label, what);
        row.is_less_better = true;
        row
    }

    /// Sets step and variant of the row.
    pub(super) const fn of(mut self, step: &'static str, variant: &'static str) -> Self {
        self.place = Some((step, variant));
        self
    }

    pub(super) const fn unit(mut self, unit: Unit) -> Self {
        self.unit = unit;
        self
    }

    /// Sets the floor of FronDB's figure.
    pub(super) const fn floor(mut self, floor: Floor) -> Self {
        self.floor = floor;
        self
    }

    /// Sets the floor of the ratio to the first peer.
    pub(super) const fn first(mut self, floor: Floor) -> Self {
        self.ratio_floors[0] = floor;
        self
    }

    /// Sets the floor of the ratio to the second peer.
    pub(super) const fn second(mut self, floor: Floor) -> Self {
        self.ratio_floors[1] = floor;
        self
    }

    /// Makes the row compare by the median of pairs of slices.
    pub(super) const fn pairs(mut self, what: &'static str) -> Self {
        self.compare = Compare::Pairs(what);
        self
    }

    /// Makes the row show FronDB's figure alone.
    pub(super) const fn alone(mut self) -> Self {
        self.compare = Compare::Nothing;
        self
    }

    /// Makes the row show a figure that is itself a ratio.
    pub(super) const fn ratio(mut self) -> Self {
        self.unit = Unit::Times;
        self.is_itself_ratio = true;
        self.alone()
    }

    /// Puts the row into the table at the top of the page, with these words.
    pub(super) const fn short(mut self, words: &'static str) -> Self {
        self.short = words;
        self
    }
}
