//! A row of `tree_options!`.

use frondb_core::Result;

/// One option of `Options`.
#[derive(Debug)]
pub struct OptionRow<Options> {
    /// The option's number in files.
    pub tag: u32,
    /// The option's name, which is the name of the field.
    pub name: &'static str,
    /// Whether the option is fixed when the tree is created.
    pub is_fixed: bool,
    /// Returns the value as a text that `set` can read.
    pub text: fn(&Options) -> String,
    /// Sets the value that a text names. Does not check that it is in the option's range. Here "0"
    /// is the number 0, while in `TrunkOptions::set` it means the default.
    pub set: fn(&mut Options, &str) -> Result<()>,
    /// Sets the default.
    pub reset: fn(&mut Options),
    /// Checks that the value is in its range, or is valid by the rule of its type.
    pub check: fn(&Options) -> Result<()>,
}

#[cfg(test)]
mod tests {
    use crate::filter_policy::FilterPolicy;
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
