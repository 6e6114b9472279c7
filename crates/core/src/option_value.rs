//! Values of options as texts. Command lines, configurations and other languages can set every
//! option by its name and a text.

use std::path::PathBuf;
use std::time::Duration;

use crate::{Error, Result};

/// The type of an option.
pub trait OptionValue: Sized {
    /// Parses the value from a text, without checking its range.
    ///
    /// # Errors
    /// `Invalid`; the message says what is wrong with the text, or which texts are allowed.
    fn read(text: &str) -> Result<Self>;

    /// Checks the range of the value. `limits` are the smallest and the largest value, for times in
    /// milliseconds. Other types than numbers and times ignore `limits`.
    ///
    /// # Errors
    /// `Invalid`; for numbers and times, with the name of the option and its range.
    fn check(&self, _name: &str, _limits: Option<&(u64, u64)>) -> Result<()> {
        Ok(())
    }
}

/// Parses a number with an optional suffix, a power of 1024: K, M, G or T, or KiB, MiB, GiB or TiB.
fn number(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl OptionValue for $type {
            fn read(text: &str) -> Result<Self> {
                let number = number(text).and_then(|number| Self::try_from(number).ok());
                number.ok_or_else(|| {
                    Error::invalid(format!("{text:?} is negative, too large, or not a number"))
                })
            }

            fn check(&self, name: &str, limits: Option<&(u64, u64)>) -> Result<()> {
                let Some((min, max)) = limits else { return Ok(()) };
                if (*min..=*max).contains(&(*self as u64)) {
                    return Ok(());
                }
                Err(Error::invalid(format!("{name} is {self}; it must be {min} to {max}")))
            }
        }
    )*};
}

numbers!(u8, usize, u64);

impl OptionValue for bool {
    fn read(text: &str) -> Result<Self> {
        match text {
            "on" | "true" | "1" => Ok(true),
            "off" | "false" | "0" => Ok(false),
            _ => Err(Error::invalid(format!("{text:?} is neither on nor off"))),
        }
    }
}

impl OptionValue for Duration {
    fn read(text: &str) -> Result<Self> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let (number, unit) = (digits.parse::<u64>().ok(), &text[digits.len()..]);
        let millis = match unit {
            "ms" => Some(1),
            "s" => Some(1000),
            "m" => Some(60_000),
            "h" => Some(3_600_000),
            _ => None,
        };
        let millis = number.zip(millis).and_then(|(number, unit)| number.checked_mul(unit));
        let millis = millis.or(number.filter(|number| *number == 0 && unit.is_empty()));
        millis.map(Self::from_millis).ok_or_else(|| {
            Error::invalid(format!("{text:?} is no time: use a number with ms, s, m or h, or 0"))
        })
    }

    fn check(&self, name: &str, limits: Option<&(u64, u64)>) -> Result<()> {
        let Some((min, max)) = limits else { return Ok(()) };
        if (Self::from_millis(*min)..=Self::from_millis(*max)).contains(self) {
            return Ok(());
        }
        Err(Error::invalid(format!("{name} is {self:?}; it must be {min} to {max} ms")))
    }
}

impl OptionValue for PathBuf {
    fn read(text: &str) -> Result<Self> {
        Ok(text.into())
    }
}

impl<T: OptionValue> OptionValue for Option<T> {
    fn read(text: &str) -> Result<Self> {
        T::read(text).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_from_texts() {
        assert_eq!(u64::read("64K").unwrap(), 64 << 10);
        assert_eq!((u64::read("3m").unwrap(), u64::read("2G").unwrap()), (3 << 20, 2 << 30));
        assert_eq!((u64::read("64KiB").unwrap(), u64::read("1TiB").unwrap()), (64 << 10, 1 << 40));
        for wrong in ["", "K", "1.5M", "-1", "64KB", "99999999999999999999", "17179869184G"] {
            assert!(u64::read(wrong).is_err(), "{wrong}");
        }
        assert!(u8::read("256").is_err());
        assert_eq!(["on", "1", "true"].map(|text| bool::read(text).unwrap()), [true; 3]);
        assert_eq!(["off", "0", "false"].map(|text| bool::read(text).unwrap()), [false; 3]);
        assert!(bool::read("yes").is_err());
        for (text, millis) in [("0", 0), ("250ms", 250), ("60s", 60_000), ("2h", 7_200_000)] {
            assert_eq!(Duration::read(text).unwrap(), Duration::from_millis(millis));
        }
        for wrong in ["", "5", "s", "5 s", "5d", "99999999999999999999s"] {
            assert!(Duration::read(wrong).is_err(), "{wrong}");
        }
        assert!(17u64.check("n", Some(&(1, 16))).unwrap_err().message().contains("n is 17"));
        let limits = Some(&(0, 1000));
        assert!(Duration::from_secs(1).check("t", limits).is_ok());
        let error = Duration::from_micros(1_000_001).check("t", limits).unwrap_err();
        assert!(error.message().contains("must be 0 to 1000 ms"), "{error}");
    }
}
