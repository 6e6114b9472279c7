//! Parses rows of `database_options!` and `tree_options!`: range, default and unit, in words and as
//! numbers.
//!
//! ```text
//!   NAME(ARGUMENT: TYPE) -> TYPE OF THE FIELD = DEFAULT, MIN..=MAX => VALUE;
//!   TAG changeable NAME: TYPE = DEFAULT, MIN..=MAX;
//! ```

use super::items::Item;

/// An option of a database or of a tree.
#[derive(Clone, Debug)]
pub(super) struct OptionRow {
    pub(super) name: String,
    /// The first paragraph of the comment as one line.
    pub(super) doc: String,
    /// Whether the option is fixed when the tree is created.
    pub(super) is_fixed: bool,
    /// The smallest and the largest value.
    pub(super) range: Option<(u64, u64)>,
    /// The default, as Rust code.
    default: String,
    /// The code before ` = `: the name and the type, after the tag if there is one.
    declared: String,
    unit: Unit,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    Bytes,
    Millis,
    Count,
}

impl OptionRow {
    /// Parses a row. `constants` is the source with the constants that the range names.
    pub(super) fn new(item: Item, constants: &str) -> Self {
        let code = item.code.trim_end_matches(';');
        let (declared, value) = code.split_once(" = ").unwrap_or((code, ""));
        let value = value.split(" => ").next().unwrap_or_default();
        let (default, range) = value.split_once(", ").unwrap_or((value, ""));
        let mut words = declared.split(['(', ':', ' ']);
        let mut name = words.next().unwrap_or_default();
        let is_tag = name.bytes().all(|byte| byte.is_ascii_digit());
        let is_fixed = is_tag && words.next() == Some("fixed");
        if is_tag {
            name = words.next().unwrap_or_default();
        }
        let is_time = ["Duration", "SyncMode"].iter().any(|time| declared.ends_with(time));
        let unit = match (is_time, name.contains("bytes")) {
            (true, _) => Unit::Millis,
            (_, true) => Unit::Bytes,
            _ => Unit::Count,
        };
        let limit = |text: &str| number(text).or_else(|| constant(text, constants));
        let range = range.split_once("..=").and_then(|(min, max)| limit(min).zip(limit(max)));
        Self {
            name: name.to_owned(),
            doc: item.doc,
            is_fixed,
            range,
            default: default.to_owned(),
            declared: declared.to_owned(),
            unit,
        }
    }

    /// Returns the row with another name.
    pub(super) fn renamed(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    /// Returns the default if it is a number.
    pub(super) fn default_number(&self) -> Option<u64> {
        number(&self.default).or((self.default == "Duration::ZERO").then_some(0))
    }

    /// Returns the default if it is a flag.
    pub(super) fn default_flag(&self) -> Option<bool> {
        self.default.parse().ok()
    }

    /// Returns the range in words.
    pub(super) fn range_text(&self) -> Option<String> {
        let (min, max) = self.range?;
        if max == u64::MAX {
            return Some(format!("at least {}", self.amount(min)));
        }
        Some(format!("{} to {}", self.amount(min), self.amount(max)))
    }

    /// Returns the default in words; `None` if the comment has to describe the default.
    pub(super) fn default_text(&self) -> Option<String> {
        if let Some(number) = self.default_number() {
            return Some(self.amount(number));
        }
        let value = self.default.as_str();
        let computed = value.strip_prefix("Self::").and_then(|value| value.strip_suffix("()"));
        if let Some(words) = computed {
            return Some(words.replace('_', " "));
        }
        if let Some(level) = value.strip_prefix("Codec::Zstd(").and_then(|v| v.strip_suffix(')')) {
            return Some(format!("zstd level {level}"));
        }
        if let Some(name) = value.strip_prefix("Codec::").or(value.strip_prefix("FilterPolicy::")) {
            return Some(name.to_lowercase());
        }
        match value {
            _ if self.default_flag().is_some() => Some(value.to_owned()),
            _ if value.contains('(') || value == "None" => None,
            _ => Some(format!("`{value}`")),
        }
    }

    /// Returns the row as an item of a page, with range and default in words.
    pub(super) fn described(&self) -> Item {
        let mut doc = self.doc.clone();
        for sentence in [
            self.range_text().map(|range| format!(" Range: {range}.")),
            self.default_text().map(|default| format!(" Default {default}.")),
            self.is_fixed.then(|| " Fixed when the tree is created.".to_owned()),
        ] {
            doc.extend(sentence);
        }
        let is_method = self.declared.contains(") -> ");
        Item { doc, code: if is_method { &self.declared } else { &self.name }.clone() }
    }

    /// Formats a number in the option's unit.
    fn amount(&self, number: u64) -> String {
        let units: &[(u64, &str)] = match self.unit {
            Unit::Bytes => &[(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")],
            Unit::Millis => &[(86_400_000, "days"), (1000, "s"), (1, "ms")],
            Unit::Count => &[],
        };
        let unit = units.iter().find(|(size, _)| number > 0 && number.is_multiple_of(*size));
        match unit {
            Some((size, "days")) if number == *size => "1 day".to_owned(),
            Some((size, unit)) => format!("{} {unit}", number / size),
            None => number.to_string(),
        }
    }
}

/// Computes the value of a number, a product or a shift.
fn number(text: &str) -> Option<u64> {
    let plain = |text: &str| text.trim().replace('_', "").parse::<u64>().ok();
    if let Some((a, b)) = text.split_once("<<") {
        return plain(a)?.checked_shl(u32::try_from(plain(b)?).ok()?);
    }
    if text == "u64::MAX" {
        return Some(u64::MAX);
    }
    match text.split_once('*') {
        Some((a, b)) => plain(a)?.checked_mul(plain(b)?),
        None => plain(text),
    }
}

/// Returns the value of the constant `TYPE::NAME` in a source.
fn constant(text: &str, source: &str) -> Option<u64> {
    let (_, name) = text.split_once("::")?;
    let (_, rest) = source.split_once(&format!("const {name}: u64 = "))?;
    number(rest.split(';').next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(code: &str) -> OptionRow {
        let item = Item { doc: "Text.".into(), code: code.into() };
        OptionRow::new(item, "pub const MILLIS_MAX: u64 = 86_400_000;")
    }

    #[test]
    fn rows_are_described_with_range_and_default() {
        for (code, name, doc) in [
            (
                "3 changeable block_bytes: usize = 16 << 10, 256..=4 << 20;",
                "block_bytes",
                "Text. Range: 256 to 4 MiB. Default 16 KiB.",
            ),
            (
                "1 fixed codec: Codec = Codec::Lz4;",
                "codec",
                "Text. Default lz4. Fixed when the tree is created.",
            ),
            (
                "1 fixed codec: Codec = Codec::Zstd(1);",
                "codec",
                "Text. Default zstd level 1. Fixed when the tree is created.",
            ),
            (
                "reserve_bytes(bytes: u64) -> u64 = 24 << 20, 0..=256 << 20;",
                "reserve_bytes(bytes: u64)",
                "Text. Range: 0 to 256 MiB. Default 24 MiB.",
            ),
            (
                "sync(mode: SyncMode) -> SyncMode = SyncMode::Always, 1..=SyncMode::MILLIS_MAX;",
                "sync(mode: SyncMode)",
                "Text. Range: 1 ms to 1 day. Default `SyncMode::Always`.",
            ),
            (
                "period(length: Duration) -> Duration = Duration::ZERO, 0..=365 * 86_400_000;",
                "period(length: Duration)",
                "Text. Range: 0 to 365 days. Default 0.",
            ),
            (
                "threads(n: usize) -> usize = Self::half_of_the_cores(), 0..=256;",
                "threads(n: usize)",
                "Text. Range: 0 to 256. Default half of the cores.",
            ),
            (
                "memory_bytes(bytes: u64) -> u64 = 0, 16 << 20..=u64::MAX;",
                "memory_bytes(bytes: u64)",
                "Text. Range: at least 16 MiB. Default 0.",
            ),
            ("on(on: bool) -> bool = true;", "on(on: bool)", "Text. Default true."),
            ("dir(d: P) -> Option<PathBuf> = None => Some(d.into());", "dir(d: P)", "Text."),
        ] {
            let item = row(code).described();
            assert_eq!((item.name().as_str(), item.doc.as_str()), (name, doc));
        }
    }

    #[test]
    fn rows_have_their_values_as_numbers() {
        let sync =
            row("sync(m: SyncMode) -> SyncMode = SyncMode::Always, 1..=SyncMode::MILLIS_MAX;");
        assert_eq!((sync.range, sync.default_number()), (Some((1, 86_400_000)), None));
        let fanout = row("6 fixed fanout: usize = 16, 2..=1024;");
        assert_eq!((fanout.range, fanout.default_number()), (Some((2, 1024)), Some(16)));
        assert!(fanout.is_fixed && fanout.name == "fanout");
    }
}
