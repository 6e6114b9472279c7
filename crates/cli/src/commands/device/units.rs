//! Formats times, sizes and rates for people.

/// Formats a time with about three digits: "72.1 us", "8.00 ms".
pub(super) fn time(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s < 1e-6 => (s * 1e9, "ns"),
        s if s < 1e-3 => (s * 1e6, "us"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    format!("{} {unit}", digits(value))
}

/// Formats a number of bytes with a decimal unit: "60.0 KB", "1.20 TB".
pub(super) fn bytes(bytes: f64) -> String {
    let units = ["B", "KB", "MB", "GB", "TB", "PB"];
    let power = units.iter().enumerate().rev().find(|(power, _)| {
        // A value that would round up to 1,000 of a unit is printed in the next unit.
        bytes >= 999.5 * 1000_f64.powi(*power as i32 - 1) && *power > 0
    });
    match power {
        Some((power, unit)) => format!("{} {unit}", digits(bytes / 1000_f64.powi(power as i32))),
        None => format!("{bytes:.0} B"),
    }
}

/// Formats bytes per second; "-" if infinite.
pub(super) fn bandwidth(per_second: f64) -> String {
    match per_second.is_finite() {
        true => format!("{}/s", bytes(per_second)),
        false => "-".to_owned(),
    }
}

/// Formats a number of bytes with a binary unit: "8 KiB", "4 MiB".
pub(super) fn binary(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fits =
        units.iter().find(|(shift, _)| bytes >= 1 << shift && bytes.is_multiple_of(1 << shift));
    match fits {
        Some((shift, unit)) => format!("{} {unit}", bytes >> shift),
        None if bytes >= 1 << 20 => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
        None => format!("{bytes} B"),
    }
}

/// Formats a lifetime: "11.4 years", "246 days".
pub(super) fn lifetime(days: f64) -> String {
    match days {
        days if days >= 2.0 * 365.25 => format!("{} years", digits(days / 365.25)),
        days => format!("{days:.0} days"),
    }
}

/// Formats a whole number with commas.
pub(super) fn count(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a share as a percentage.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Formats a value with about three digits.
fn digits(value: f64) -> String {
    match value {
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_and_three_digits() {
        assert_eq!(time(16e-6), "16.0 us");
        assert_eq!(time(8e-3), "8.00 ms");
        assert_eq!(time(90e-9), "90.0 ns");
        assert_eq!(time(2.0), "2.00 s");
        assert_eq!(bytes(60e3), "60.0 KB");
        assert_eq!(bytes(999.9e6), "1.00 GB");
        assert_eq!(bytes(12.0), "12 B");
        assert_eq!(bandwidth(125e6), "125 MB/s");
        assert_eq!(bandwidth(f64::INFINITY), "-");
        assert_eq!(binary(40 << 10), "40 KiB");
        assert_eq!(binary(4 << 30), "4 GiB");
        assert_eq!(binary((5 << 20) + 100), "5.0 MiB");
        assert_eq!(binary(100), "100 B");
        assert_eq!(lifetime(246.0), "246 days");
        assert_eq!(lifetime(4160.0), "11.4 years");
        assert_eq!(count(1234567.0), "1,234,567");
        assert_eq!(percent(0.25), "25 %");
    }
}
