//! Sizes and counts as users type them: `256MiB`, `1G`, `10000000`, `10M`.

/// Parses a number of bytes. `k`, `M`, `G` (with or without `iB`) are powers of 1024; `kB`, `MB`,
/// `GB` powers of 1000.
pub fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        _ => return Err(format!("{unit} is not a unit of bytes; write for example 256MiB or 1GB")),
    };
    number.checked_mul(factor).ok_or_else(|| format!("{text} is too large"))
}

/// Parses a count of at least one; `k` is a thousand and `M` a million.
pub fn rows(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" => 1,
        "k" => 1_000,
        "m" => 1_000_000,
        _ => {
            return Err(format!("{unit} is not a unit of rows; write for example 10000000 or 10M"));
        }
    };
    match number.checked_mul(factor) {
        Some(0) => Err("there must be at least one".to_owned()),
        Some(rows) => Ok(rows),
        None => Err(format!("{text} is too large")),
    }
}

/// The least memory that an engine may be measured with, MiB.
const MEMORY_MIB_MIN: u64 = 8;

/// Parses the memory of an engine.
pub fn memory(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        bytes if bytes >= MEMORY_MIB_MIN << 20 => Ok(bytes),
        _ => Err(format!("an engine needs at least {MEMORY_MIB_MIN}MiB")),
    }
}

/// Parses a positive number with a fraction: seconds, or a factor.
pub fn positive(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 && number <= 1e9 => Ok(number),
        Ok(_) => Err("it must be above 0 and at most 1000000000".to_owned()),
        Err(_) => Err(format!("{text} is not a number")),
    }
}

/// Formats a number of bytes: in MiB if it is a whole number of MiB, otherwise in bytes.
pub fn show(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 20) {
        format!("{} MiB", bytes >> 20)
    } else {
        format!("{bytes} bytes")
    }
}

fn split(text: &str) -> Result<(u64, &str), String> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let number = digits.replace('_', "").parse().map_err(|_| format!("{text} is not a number"))?;
    Ok((number, unit.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_as_typed() {
        assert_eq!(show(256 << 20), "256 MiB");
        assert_eq!(show(1_000), "1000 bytes");
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        assert_eq!(bytes("256MiB"), Ok(256 << 20));
        assert_eq!(bytes("1G"), Ok(1 << 30));
        assert_eq!(bytes("1 GB"), Ok(1_000_000_000));
        assert_eq!(bytes("4096"), Ok(4096));
        assert_eq!(rows("10M"), Ok(10_000_000));
        assert_eq!(rows("2_000"), Ok(2_000));
        for bad in ["", "MiB", "12 parsecs", "99999999999999G"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
        assert_eq!(memory("8MiB"), Ok(8 << 20));
        assert!(memory("0").is_err() && memory("7MiB").is_err());
        assert_eq!(positive("0.5"), Ok(0.5));
        for bad in ["0", "-1", "nan", "inf", "x", ""] {
            assert!(positive(bad).is_err(), "{bad}");
        }
        for bad in ["0", "x", "1G"] {
            assert!(rows(bad).is_err(), "{bad}");
        }
    }
}
