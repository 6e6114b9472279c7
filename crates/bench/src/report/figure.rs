//! A figure with a name: a value with its unit, its floor and its goal.

use serde::{Deserialize, Serialize};

use super::columns::align;
use super::numbers::short;

/// One figure of a report, with the values that it should reach.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What was measured. No other figure of a report has this name.
    pub name: String,
    /// The value.
    pub value: f64,
    /// The unit; `x` is a ratio.
    pub unit: String,
    /// The value that the figure must reach; none for a figure that only explains another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor: Option<f64>,
    /// The value that the figure should reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<f64>,
    /// Which of floor and goal the value reaches; none without a floor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub met: Option<Met>,
    /// Whether less is better.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub at_most: bool,
}

/// How a value compares with its floor and its goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Met {
    /// The value reaches the goal, or the floor if there is no goal.
    Goal,
    /// The value reaches the floor and not the goal.
    Floor,
    /// The value does not reach the floor.
    Neither,
}

impl Figure {
    /// Creates a figure without floor and goal.
    #[must_use]
    pub fn plain(name: impl Into<String>, value: f64, unit: &str) -> Self {
        let (name, unit) = (name.into(), unit.to_owned());
        Self { name, value, unit, floor: None, goal: None, met: None, at_most: false }
    }

    /// Sets the floor and the goal of a figure that should be large.
    #[must_use]
    pub fn at_least(self, floor: f64, goal: f64) -> Self {
        Self { floor: Some(floor), goal: Some(goal), ..self }.judged()
    }

    /// Sets the floor, and the goal if there is one, of a figure that should be small.
    #[must_use]
    pub fn at_most(self, floor: f64, goal: Option<f64>) -> Self {
        Self { floor: Some(floor), goal, at_most: true, ..self }.judged()
    }

    /// Compares the value with floor and goal and sets [`met`](Self::met). Call it after a change
    /// of the value.
    #[must_use]
    pub fn judged(mut self) -> Self {
        let reaches = |limit: f64| {
            if self.at_most { self.value <= limit } else { self.value >= limit }
        };
        self.met = self.floor.map(|floor| match () {
            () if self.goal.map_or(reaches(floor), reaches) => Met::Goal,
            () if reaches(floor) => Met::Floor,
            () => Met::Neither,
        });
        self
    }
}

/// Formats the figures as a table for the terminal.
#[must_use]
pub fn figures(title: &str, figures: &[Figure]) -> String {
    let mut rows = vec![[title, "", "", "floor", "goal", ""].map(str::to_owned).to_vec()];
    for figure in figures {
        let limit = |limit: Option<f64>| limit.map_or_else(String::new, short);
        let met = figure.met.map_or("", |met| match met {
            Met::Goal => "goal met",
            Met::Floor => "floor met",
            Met::Neither => "NOT MET",
        });
        let value = short(figure.value);
        let (floor, goal) = (limit(figure.floor), limit(figure.goal));
        rows.push(vec![figure.name.clone(), value, figure.unit.clone(), floor, goal, met.into()]);
    }
    align(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_compared_with_its_limits() {
        let more = |value| Figure::plain("a", value, "x").at_least(0.7, 0.9).met;
        let stages = [Met::Neither, Met::Floor, Met::Goal].map(Some);
        assert_eq!([more(0.69), more(0.7), more(0.9)], stages);
        let less = |value| Figure::plain("a", value, "s").at_most(2.0, Some(0.2)).met;
        assert_eq!([less(2.1), less(2.0), less(0.2)], stages);
        let floor = |value| Figure::plain("a", value, "x").at_most(1.15, None).met;
        assert_eq!([floor(1.2), floor(1.1)], [Some(Met::Neither), Some(Met::Goal)]);
        assert_eq!(Figure::plain("a", 1.0, "x").met, None);
    }

    #[test]
    fn the_json_has_name_value_and_unit() {
        let json = serde_json::to_string(&Figure::plain("a", 0.5, "us")).unwrap();
        assert_eq!(json, r#"{"name":"a","value":0.5,"unit":"us"}"#);
        let held = Figure::plain("a", 0.5, "us").at_most(1.0, Some(0.3));
        let json = serde_json::to_string(&held).unwrap();
        assert_eq!(serde_json::from_str::<Figure>(&json).unwrap(), held);
        assert!(json.contains(r#""met":"floor""#), "{json}");
    }

    #[test]
    fn the_table_marks_figures_that_miss_their_floor() {
        let list = [
            Figure::plain("reads", 0.4, "x").at_least(0.45, 0.6),
            Figure::plain("commits", 12_345.0, "1/s"),
        ];
        let expected = "\
txn                   floor  goal
reads      0.40    x   0.45  0.60  NOT MET
commits  12,345  1/s
";
        assert_eq!(figures("txn", &list), expected);
    }
}
