//! A row of `tree_options!`, and the types of values.

use frondb_block::Codec;
use frondb_core::{Error, Result};

use crate::filter_policy::FilterPolicy;

/// One option of `Options`.
#[derive(Debug)]
pub struct OptionRow<Options> {
    /// Its number in files.
    pub tag: u32,
    /// Its name, that of the field.
    pub name: &'static str,
    /// Whether it is fixed when the tree is created.
    pub is_fixed: bool,
    /// The value as a text that `set` reads.
    pub text: fn(&Options) -> String,
    /// Sets the value that a text names, whether or not it is in its range. "0" is the number 0.
    pub set: fn(&mut Options, &str) -> Result<()>,
    /// Sets the default.
    pub reset: fn(&mut Options),
    /// Checks the value; its range or its own rule.
    pub check: fn(&Options) -> Result<()>,
}

/// The type of an option.
pub(super) trait Value: Sized {
    fn text(&self) -> String;
    fn read(text: &str) -> Result<Self>;
    /// `limits`: the smallest and the largest value, for numbers.
    fn check(&self, name: &str, limits: Option<&(u64, u64)>) -> Result<()>;
}

/// A number with an optional suffix K, M or G.
fn number(text: &str) -> Option<u64> {
    let shift = match text.as_bytes().last()? {
        b'K' | b'k' => 10,
        b'M' | b'm' => 20,
        b'G' | b'g' => 30,
        _ => return text.parse().ok(),
    };
    text[..text.len() - 1].parse::<u64>().ok()?.checked_mul(1 << shift)
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Value for $type {
            fn text(&self) -> String {
                self.to_string()
            }

            fn read(text: &str) -> Result<Self> {
                let number = number(text).and_then(|number| Self::try_from(number).ok());
                number.ok_or_else(|| Error::invalid(format!("{text:?} is not a number, or too large")))
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

impl Value for Codec {
    fn text(&self) -> String {
        self.to_string()
    }

    fn read(text: &str) -> Result<Self> {
        text.parse()
    }

    fn check(&self, _: &str, _: Option<&(u64, u64)>) -> Result<()> {
        self.validate()
    }
}

impl Value for FilterPolicy {
    fn text(&self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Full => "full".to_owned(),
            Self::Runs => "runs".to_owned(),
            Self::Prefix(bytes) => format!("prefix:{bytes}"),
        }
    }

    fn read(text: &str) -> Result<Self> {
        let prefix = text.strip_prefix("prefix:").and_then(|bytes| bytes.parse().ok());
        match (text, prefix) {
            ("none", _) => Ok(Self::None),
            ("full", _) => Ok(Self::Full),
            ("runs", _) => Ok(Self::Runs),
            (_, Some(bytes)) => Ok(Self::Prefix(bytes)),
            _ => Err(Error::invalid(format!(
                "{text:?} is no filter: use none, full, runs, or prefix:N with the number of bytes"
            ))),
        }
    }

    fn check(&self, _: &str, _: Option<&(u64, u64)>) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::TrunkOptions;

    #[test]
    fn tags_and_names_are_unique() {
        let mut tags: Vec<_> = TrunkOptions::ROWS.iter().map(|row| row.tag).collect();
        let mut names: Vec<_> = TrunkOptions::ROWS.iter().map(|row| row.name).collect();
        for list_is_unique in [
            {
                tags.sort_unstable();
                tags.windows(2).all(|pair| pair[0] < pair[1])
            },
            {
                names.sort_unstable();
                names.windows(2).all(|pair| pair[0] < pair[1])
            },
        ] {
            assert!(list_is_unique, "{tags:?} {names:?}");
        }
    }

    #[test]
    fn each_value_is_set_to_its_own_text() {
        let mut from = TrunkOptions { filter: FilterPolicy::Prefix(9), ..TrunkOptions::default() };
        for row in TrunkOptions::ROWS {
            if row.name != "filter" {
                // A value other than the default.
                let other = if row.name.ends_with("codec") { "zlib:2" } else { "77" };
                (row.set)(&mut from, other).unwrap();
            }
            let mut to = TrunkOptions::default();
            assert_ne!((row.text)(&from), (row.text)(&to), "{}", row.name);
            (row.set)(&mut to, &(row.text)(&from)).unwrap();
            assert_eq!((row.text)(&from), (row.text)(&to), "{}", row.name);
            to.set(row.name, "0").unwrap();
            assert_eq!(to, TrunkOptions::default(), "{}", row.name);
        }
    }

    #[test]
    fn sizes_have_suffixes() {
        for (text, number) in [("3", 3), ("16K", 16 << 10), ("2m", 2 << 20), ("1G", 1 << 30)] {
            assert_eq!(u64::read(text).unwrap(), number);
        }
        for text in ["", "K", "-1", "1.5M", "1 K", "99999999999G", "x"] {
            assert!(u64::read(text).is_err(), "{text}");
        }
        assert!(u8::read("256").is_err());
    }

    #[test]
    fn errors_name_the_option() {
        let mut options = TrunkOptions::default();
        let error = options.set("fan_out", "3").unwrap_err().to_string();
        assert!(error.contains("fan_out"), "{error}");
        let error = options.set("fanout", "many").unwrap_err().to_string();
        assert!(error.contains("fanout") && error.contains("many"), "{error}");
        let error = options.set("fanout", "1").unwrap_err().to_string();
        assert!(error.contains("fanout is 1; it must be 2 to 1024"), "{error}");
    }
}
