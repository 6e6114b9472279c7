//! Numbers as text for people.

/// Rounds to a whole number and separates the thousands with commas: 1,234,567.
#[must_use]
pub fn count(value: f64) -> String {
    let digits = format!("{:.0}", value.abs().round());
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    if value <= -0.5 {
        text.push('-');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number of bytes in MB (a million bytes), the unit of the reference figures.
#[must_use]
pub fn bytes(value: f64) -> String {
    let mega = value / 1e6;
    if mega < 10.0 { format!("{mega:.2} MB") } else { format!("{} MB", count(mega)) }
}

/// Formats a number with about three significant digits.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1_000.0 => count(value),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_easy_to_read() {
        assert_eq!(count(0.0), "0");
        assert_eq!(count(999.4), "999");
        assert_eq!(count(1_000.0), "1,000");
        assert_eq!(count(1_234_567.0), "1,234,567");
        assert_eq!(count(-12_345.0), "-12,345");
        assert_eq!(bytes(1_606_000_000.0), "1,606 MB");
        assert_eq!(bytes(1_500_000.0), "1.50 MB");
        assert_eq!(short(0.0), "0.00");
        assert_eq!(short(19.12), "19.1");
        assert_eq!(short(82_400.4), "82,400");
    }
}
