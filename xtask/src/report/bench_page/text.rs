//! Cells of a table as text.

use super::lookup::Cell;
use super::row::{Floor, Unit};
use crate::report::text::number;

/// A smaller ratio is shown as 1/N with a whole number N.
const ONE_TO: f64 = 0.02;

/// Formats a ratio: 33x, 2.94x, 0.07x, 1/220.
pub(super) fn ratio(value: f64) -> String {
    match value {
        endless if endless.is_infinite() => "(other: 0)".to_owned(),
        large if large >= 10.0 => format!("{}x", whole(large)),
        middle if middle >= ONE_TO || middle <= 0.0 => format!("{middle:.2}x"),
        small => format!("1/{}", whole(1.0 / small)),
    }
}

fn whole(value: f64) -> String {
    match value {
        large if large >= 100.0 => number(large),
        small => format!("{small:.0}"),
    }
}

/// Formats a value in its unit. The row's label names the unit.
pub(super) fn value(value: f64, unit: Unit) -> String {
    let scaled = match unit {
        Unit::Number => value,
        Unit::Megabytes => value / 1e6,
        Unit::Kib => value / 1024.0,
        Unit::Times => return ratio(value),
    };
    match scaled {
        large if large >= 1e7 => format!("{:.1} M", large / 1e6),
        small => number(small),
    }
}

/// Formats a value or a ratio, bold if it misses its floor.
pub(super) fn cell(cell: &Cell, unit: Unit) -> String {
    let text = value(cell.value, unit);
    let text = if cell.is_missed() { format!("**{text}**") } else { text };
    match cell.quartiles {
        Some((lower, upper)) => format!("{text} ({}, {})", plain(lower), plain(upper)),
        None => text,
    }
}

fn plain(quartile: f64) -> String {
    ratio(quartile).trim_end_matches('x').to_owned()
}

/// Formats a floor; empty if there is none.
pub(super) fn floor(floor: Floor, unit: Unit) -> String {
    match floor {
        Floor::None | Floor::OfFile => String::new(),
        Floor::Min(least) => format!("min {}", limit(least, unit)),
        Floor::Max(most) => format!("max {}", limit(most, unit)),
    }
}

/// Formats a limit as it was chosen: without trailing zeros, and small ratios as 1/N.
fn limit(limit: f64, unit: Unit) -> String {
    match unit {
        Unit::Times if limit < 0.1 => format!("1/{:.0}", 1.0 / limit),
        Unit::Times => format!("{}x", trimmed(&format!("{limit:.2}"))),
        Unit::Number if limit >= 1e6 => format!("{} M", trimmed(&format!("{:.1}", limit / 1e6))),
        other => trimmed(&value(limit, other)).to_owned(),
    }
}

/// Removes trailing zeros after the decimal point.
fn trimmed(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_have_as_many_digits_as_they_need() {
        for (value, text) in [
            (137.6, "138x"),
            (33.4, "33x"),
            (2.94, "2.94x"),
            (0.07, "0.07x"),
            (1.0 / 220.0, "1/220"),
            (1.0 / 1_234.0, "1/1,234"),
            (0.0, "0.00x"),
            (f64::INFINITY, "(other: 0)"),
        ] {
            assert_eq!(ratio(value), text);
        }
    }

    #[test]
    fn values_follow_their_unit() {
        assert_eq!(value(24_100_000.0, Unit::Number), "24.1 M");
        assert_eq!(value(1_044_349.0, Unit::Number), "1,044,349");
        assert_eq!(value(629e6, Unit::Megabytes), "629");
        assert_eq!(value(10_240.0, Unit::Kib), "10.0");
        assert_eq!(value(0.13, Unit::Times), "0.13x");
    }

    #[test]
    fn a_missed_floor_is_bold() {
        let of = |value, floor| cell(&Cell { value, quartiles: None, floor }, Unit::Times);
        assert_eq!(of(1.2, Floor::Max(1.15)), "**1.20x**");
        assert_eq!(of(1.15, Floor::Max(1.15)), "1.15x");
        assert_eq!(of(0.9, Floor::Min(1.0)), "**0.90x**");
        let pair = Cell { value: 0.9, quartiles: Some((0.85, 1.0)), floor: Floor::Min(1.0) };
        assert_eq!(cell(&pair, Unit::Times), "**0.90x** (0.85, 1.00)");
    }

    #[test]
    fn floors_are_as_they_were_chosen() {
        for (given, unit, text) in [
            (Floor::Min(1.5), Unit::Times, "min 1.5x"),
            (Floor::Max(1.0 / 161.0), Unit::Times, "max 1/161"),
            (Floor::Max(0.6), Unit::Times, "max 0.6x"),
            (Floor::Min(4e6), Unit::Number, "min 4 M"),
            (Floor::Min(200_000.0), Unit::Number, "min 200,000"),
            (Floor::Max(10.0), Unit::Number, "max 10"),
            (Floor::Max(0.5), Unit::Number, "max 0.5"),
            (Floor::None, Unit::Number, ""),
        ] {
            assert_eq!(floor(given, unit), text);
        }
    }
}
