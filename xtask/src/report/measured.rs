//! The figures of one engine in a step: an object of the step's JSON file.

use serde_json::Value;

use crate::Result;

/// The figures of one engine.
#[derive(Clone)]
pub(super) struct Measured<'a> {
    value: &'a Value,
    /// File, engine and variant, for errors.
    shown: String,
}

/// A figure with a name, and its floor if it has one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Named {
    pub(super) value: f64,
    pub(super) floor: Option<f64>,
    /// Whether the floor is an upper limit.
    pub(super) is_most: bool,
}

impl<'a> Measured<'a> {
    pub(super) fn new(value: &'a Value, shown: String) -> Self {
        Self { value, shown }
    }

    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    pub(super) fn number(&self, field: &str) -> Result<f64> {
        let number = self.value[field].as_f64();
        number.ok_or_else(|| format!("{} has no number `{field}`", self.shown))
    }

    /// Returns a field, or `otherwise` if the field is absent.
    pub(super) fn number_or(&self, field: &str, otherwise: f64) -> f64 {
        self.value[field].as_f64().unwrap_or(otherwise)
    }

    pub(super) fn figure(&self, name: &str) -> Result<f64> {
        self.named(name).map(|figure| figure.value)
    }

    pub(super) fn named(&self, name: &str) -> Result<Named> {
        named(self.figures(), name, &self.shown)
    }

    /// Returns the first figure whose name has this ending.
    pub(super) fn figure_ending(&self, ending: &str) -> Result<Named> {
        let name = self.figures().iter().filter_map(|figure| figure["name"].as_str());
        let name = name.into_iter().find(|name| name.ends_with(ending)).unwrap_or(ending);
        self.named(name)
    }

    fn figures(&self) -> &'a [Value] {
        self.value["figures"].as_array().map_or(&[], Vec::as_slice)
    }

    /// Returns a field of a case in the member `reads`.
    pub(super) fn case(
        &self,
        (read, keys, threads): (&str, &str, u64),
        field: &str,
    ) -> Result<f64> {
        let all = self.value["reads"].as_array().map_or(&[][..], Vec::as_slice);
        let is_it = |case: &&Value| {
            case["read"] == read && case["keys"] == keys && case["threads"] == threads
        };
        let number = all.iter().find(is_it).and_then(|case| case[field].as_f64());
        let shown = &self.shown;
        number.ok_or_else(|| {
            format!("{shown} has no number `{field}` of {read}, {keys} keys, {threads} threads")
        })
    }
}

/// Returns a figure of a list by its name. `shown` says in an error where the list is.
pub(super) fn named(figures: &[Value], name: &str, shown: &str) -> Result<Named> {
    let figure = figures.iter().find(|figure| figure["name"] == name);
    let value = figure.and_then(|figure| figure["value"].as_f64());
    let value = value.ok_or_else(|| format!("{shown} has no figure `{name}`"))?;
    let floor = figure.and_then(|figure| figure["floor"].as_f64());
    let is_most = figure.is_some_and(|figure| figure["at_most"] == true);
    Ok(Named { value, floor, is_most })
}
