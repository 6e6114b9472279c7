//! The commands that measure. Each is an existing benchmark with a size that fits the whole report
//! into half an hour on two processors; SCALE multiplies the sizes.

use crate::Result;

/// A command and its size.
#[derive(Debug)]
pub(super) struct Step {
    /// Its name, which is also that of its JSON file.
    pub(super) name: &'static str,
    pub(super) program: Program,
    /// Variables that do not depend on the scale.
    fixed: &'static [(&'static str, &'static str)],
    /// Variables that the scale multiplies, with the least value.
    scaled: &'static [Scaled],
    /// Minutes that it takes at scale 1, without building.
    pub(super) minutes: f64,
}

/// The program of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Program {
    Bench,
    /// `frondb device`, whose variables are options.
    Device,
}

/// Name, value at scale 1, least value.
type Scaled = (&'static str, f64, f64);

/// All steps, in the order in which they run.
pub(super) const STEPS: &[Step] = &[
    Step {
        name: "device",
        program: Program::Device,
        fixed: &[],
        scaled: &[("SECONDS", 40.0, 5.0)],
        minutes: 0.8,
    },
    // The time limit ends InnoDB's load with fewer rows than FronDB's. That favours InnoDB, whose
    // rate falls as its table grows.
    Step {
        name: "wear",
        program: Program::Bench,
        fixed: &[("WORKLOAD", "wear"), ("ENGINES", "frondb,innodb"), ("MEMORY", "128MiB")],
        scaled: &[("ROWS", 5e6, 50_000.0), ("LIMIT_SECONDS", 240.0, 10.0)],
        minutes: 5.5,
    },
    // FronDB's size includes some 5 MB of its log, which would distort the ratio with fewer rows.
    Step {
        name: "compression",
        program: Program::Bench,
        fixed: &[
            ("WORKLOAD", "compression"),
            ("ENGINES", "frondb"),
            ("KINDS", "logs,json"),
            ("CODECS", "standard,aggressive,toku-lzma"),
            ("MEMORY", "256MiB"),
        ],
        scaled: &[("ROWS", 800_000.0, 20_000.0), ("READ_SCALE", 0.2, 0.02)],
        minutes: 5.0,
    },
    Step {
        name: "sql-delete-left",
        program: Program::Bench,
        fixed: &[("WORKLOAD", "sql-delete-left"), ("ENGINES", "frondb"), ("MEMORY", "128MiB")],
        scaled: &[("ROWS", 5e6, 50_000.0)],
        minutes: 1.2,
    },
    Step {
        name: "optimize",
        program: Program::Bench,
        fixed: &[("WORKLOAD", "optimize"), ("ENGINES", "frondb"), ("MEMORY", "128MiB")],
        scaled: &[("ROWS", 2e6, 50_000.0)],
        minutes: 2.0,
    },
    Step {
        name: "durable",
        program: Program::Bench,
        fixed: &[("WORKLOAD", "durable"), ("ENGINES", "frondb"), ("ROUNDS", "1")],
        scaled: &[("ROWS", 5e6, 50_000.0), ("LIMIT_SECONDS", 10.0, 1.0)],
        minutes: 1.0,
    },
    Step {
        name: "fsync",
        program: Program::Bench,
        fixed: &[("WORKLOAD", "fsync"), ("ENGINES", "frondb"), ("ROUNDS", "1")],
        scaled: &[("LIMIT_SECONDS", 4.0, 0.5)],
        minutes: 1.0,
    },
    Step {
        name: "graph-sata",
        program: Program::Bench,
        fixed: &[
            ("WORKLOAD", "graph"),
            ("ENGINES", "frondb,innodb"),
            ("DISK", "sata"),
            ("MEMORY", "128MiB"),
        ],
        scaled: GRAPH,
        minutes: 3.0,
    },
    Step {
        name: "graph-own",
        program: Program::Bench,
        fixed: &[("WORKLOAD", "graph"), ("ENGINES", "frondb,innodb"), ("MEMORY", "128MiB")],
        scaled: GRAPH,
        minutes: 3.0,
    },
    Step {
        name: "tpcc",
        program: Program::Bench,
        fixed: &[("WORKLOAD", "tpcc"), ("ENGINES", "frondb,innodb"), ("MEMORY", "128MiB")],
        scaled: &[("ROWS", 4.0, 1.0), ("SECONDS", 30.0, 2.0), ("WARM_UP_SECONDS", 10.0, 1.0)],
        minutes: 3.0,
    },
    Step {
        name: "iibench",
        program: Program::Bench,
        fixed: &[("WORKLOAD", "iibench"), ("ENGINES", "frondb"), ("ROUNDS", "1")],
        scaled: &[("ROWS", 5e6, 50_000.0), ("READ_SCALE", 0.4, 0.02)],
        minutes: 0.6,
    },
    Step {
        name: "overwrite",
        program: Program::Bench,
        fixed: &[("WORKLOAD", "overwrite"), ("ENGINES", "frondb"), ("ROUNDS", "1")],
        scaled: &[("ROWS", 5e6, 50_000.0), ("READ_SCALE", 0.2, 0.02)],
        minutes: 0.6,
    },
    Step {
        name: "mixed",
        program: Program::Bench,
        fixed: &[("WORKLOAD", "mixed"), ("ENGINES", "frondb"), ("ROUNDS", "1")],
        scaled: &[("ROWS", 5e6, 50_000.0), ("READ_SCALE", 0.4, 0.02)],
        minutes: 0.6,
    },
];

const GRAPH: &[Scaled] =
    &[("ROWS", 1e6, 10_000.0), ("SECONDS", 30.0, 2.0), ("WARM_UP_SECONDS", 10.0, 1.0)];

impl Step {
    pub(super) fn variables(&self, scale: f64) -> Vec<(&'static str, String)> {
        let fixed = self.fixed.iter().map(|(name, value)| (*name, (*value).to_owned()));
        fixed.chain(self.scaled.iter().map(|scaled| value(scaled, scale))).collect()
    }

    /// The command as a user types it.
    pub(super) fn command(&self, scale: f64) -> String {
        let variables = self.variables(scale);
        match self.program {
            Program::Bench => {
                variables.iter().fold("make bench".to_owned(), |all, (name, value)| {
                    format!("{all} {name}={value}")
                })
            }
            Program::Device => variables
                .iter()
                .fold("frondb device --json --write".to_owned(), |all, (name, value)| {
                    format!("{all} --{} {value}", name.to_lowercase())
                }),
        }
    }
}

/// A variable at a scale: rows are whole numbers, seconds and factors have two digits.
fn value((name, full, least): &Scaled, scale: f64) -> (&'static str, String) {
    let value = (full * scale).max(*least);
    let text = match *name {
        "ROWS" => format!("{value:.0}"),
        _ if value >= 10.0 || value.fract() == 0.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    };
    (name, text)
}

/// Reads SCALE.
pub(super) fn scale(text: &str) -> Result<f64> {
    let scale: f64 = text.parse().map_err(|_| format!("SCALE is a number, not `{text}`"))?;
    match scale > 0.0 && scale <= 10.0 {
        true => Ok(scale),
        false => Err(format!("SCALE is above 0 and at most 10, not {text}")),
    }
}

/// The steps that STEPS names, separated by commas; all of them if it is not given.
pub(super) fn chosen(names: Option<&str>) -> Result<Vec<&'static Step>> {
    let Some(names) = names else { return Ok(STEPS.iter().collect()) };
    let find = |name: &str| {
        STEPS.iter().find(|step| step.name == name).ok_or_else(|| {
            let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
            format!("unknown step `{name}`; known are {}", known.join(", "))
        })
    };
    names.split(',').map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_multiplies_rows_and_seconds() {
        let wear = chosen(Some("wear")).unwrap()[0];
        let full = "make bench WORKLOAD=wear ENGINES=frondb,innodb MEMORY=128MiB ROWS=5000000 \
                    LIMIT_SECONDS=240";
        assert_eq!(wear.command(1.0), full);
        assert!(wear.command(0.1).ends_with("ROWS=500000 LIMIT_SECONDS=24"));
        assert!(wear.command(1e-9).ends_with("ROWS=50000 LIMIT_SECONDS=10"));
        let device = chosen(Some("device")).unwrap()[0];
        assert_eq!(device.command(0.2), "frondb device --json --write --seconds 8");
    }

    #[test]
    fn names_are_unique_and_the_whole_takes_less_than_half_an_hour() {
        let names: std::collections::BTreeSet<&str> = STEPS.iter().map(|step| step.name).collect();
        assert_eq!(names.len(), STEPS.len());
        assert!(STEPS.iter().map(|step| step.minutes).sum::<f64>() < 30.0);
    }

    #[test]
    fn wrong_variables_are_refused() {
        assert!(chosen(Some("wear,no-such")).is_err_and(|e| e.contains("unknown step `no-such`")));
        for text in ["x", "0", "-1", "11", "NaN"] {
            assert!(scale(text).is_err(), "{text}");
        }
        assert_eq!(scale("0.5"), Ok(0.5));
    }
}
