//! Formats figures as text.

/// Formats a number with about three significant digits, and commas between thousands.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => thousands(value),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 || size == 0.0 => format!("{value:.2}"),
        size if size >= 0.1 => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    }
}

/// Formats `value` divided by `other`.
pub(super) fn times(value: f64, other: f64) -> String {
    match other > 0.0 {
        true => format!("{}x", number(value / other)),
        false => "no ratio, since the other is 0".to_owned(),
    }
}

/// Formats a time in s, ms or us.
pub(super) fn seconds(value: f64) -> String {
    match value {
        long if long >= 1.0 => format!("{} s", number(long)),
        short if short >= 1e-3 => format!("{} ms", number(short * 1e3)),
        shortest => format!("{} us", number(shortest * 1e6)),
    }
}

/// Formats a size in GB, MB, KB or B.
pub(super) fn bytes(value: f64) -> String {
    match value {
        large if large >= 1e9 => format!("{} GB", number(large / 1e9)),
        middle if middle >= 1e6 => format!("{} MB", number(middle / 1e6)),
        small if small >= 1e3 => format!("{} KB", number(small / 1e3)),
        single => format!("{single:.0} B"),
    }
}

/// Formats a size of blocks in KiB, without trailing zeros.
pub(super) fn kib(value: f64) -> String {
    format!("{} KiB", number(value / 1024.0).trim_end_matches('0').trim_end_matches('.'))
}

fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let (sign, digits) = digits.strip_prefix('-').map_or(("", &*digits), |digits| ("-", digits));
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    format!("{sign}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        for (value, text) in [
            (14_532.4, "14,532"),
            (1_234_567.0, "1,234,567"),
            (999.9, "1,000"),
            (-1_500.0, "-1,500"),
            (26.13, "26.1"),
            (9.04, "9.04"),
            (0.5, "0.500"),
            (0.0123, "0.0123"),
            (0.0, "0.00"),
        ] {
            assert_eq!(number(value), text);
        }
        assert_eq!((times(9.0, 2.0), times(1.0, 0.0)).0, "4.50x");
        assert!(times(1.0, 0.0).contains("no ratio"));
        assert_eq!(
            [seconds(26.13), seconds(0.0021), seconds(6e-5)],
            ["26.1 s", "2.10 ms", "60.0 us"]
        );
        assert_eq!([bytes(12.0), bytes(6e4), bytes(2.5e9)], ["12 B", "60.0 KB", "2.50 GB"]);
        assert_eq!([kib(98_304.0), kib(524_288.0)], ["96 KiB", "512 KiB"]);
    }
}
