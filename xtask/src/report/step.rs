//! A command that measures, and its size.

/// A command and its size.
#[derive(Debug)]
pub(super) struct Step {
    /// The name of the step and of its JSON file.
    pub(super) name: &'static str,
    pub(super) program: Program,
    /// Variables that do not depend on the scale, as on a command line.
    fixed: &'static str,
    /// Variables whose values the scale multiplies.
    scaled: &'static [Scaled],
    /// Minutes that the step takes at scale 1, without building.
    pub(super) minutes: f64,
}

/// The program of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Program {
    Bench,
    /// `frondb device`. The variables of the step are its options.
    Device,
}

/// Name, value at scale 1, least value.
pub(super) type Scaled = (&'static str, f64, f64);

impl Step {
    /// Creates a step of `make bench`.
    pub(super) const fn bench(
        name: &'static str,
        minutes: f64,
        fixed: &'static str,
        scaled: &'static [Scaled],
    ) -> Self {
        Self { name, program: Program::Bench, fixed, scaled, minutes }
    }

    /// Creates the step of `frondb device`.
    pub(super) const fn device(minutes: f64, scaled: &'static [Scaled]) -> Self {
        Self { name: "device", program: Program::Device, fixed: "", scaled, minutes }
    }

    /// Returns the variables of the step with their values at a scale.
    pub(super) fn variables(&self, scale: f64) -> Vec<(&'static str, String)> {
        let fixed = self.fixed.split_whitespace().filter_map(|word| word.split_once('='));
        let fixed = fixed.map(|(name, value)| (name, value.to_owned()));
        fixed.chain(self.scaled.iter().map(|scaled| value(scaled, scale))).collect()
    }

    /// Returns the command as a user types it.
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

/// Formats a variable at a scale. ROWS, values from 10 on and whole values have no decimals, other
/// values have two.
fn value((name, full, least): &Scaled, scale: f64) -> (&'static str, String) {
    let value = (full * scale).max(*least);
    let text = match *name {
        "ROWS" => format!("{value:.0}"),
        _ if value >= 10.0 || value.fract() == 0.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    };
    (name, text)
}
