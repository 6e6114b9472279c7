//! Names for salvaged trees whose rows are not certain.

use std::collections::BTreeSet;

use frondb_core::limits::TREE_NAME_BYTES_MAX;

/// Suffix of the name of a tree whose rows may be older than the last commits.
const UNCERTAIN: &str = ".uncertain";

/// Returns a new name for each of `names`; the new names are unique if `names` are. A name that
/// would be too long is shortened.
pub(super) fn uncertain(names: &[String]) -> Vec<String> {
    let with_suffix = |name: &String| format!("{name}{UNCERTAIN}");
    let fits = |name: &String| name.len() <= TREE_NAME_BYTES_MAX;
    let mut taken: BTreeSet<String> = names.iter().map(with_suffix).filter(fits).collect();
    let mut fit = |name: &String| {
        let new = with_suffix(name);
        if fits(&new) {
            return new;
        }
        let shortened = (1_u64..).map(|number| shorten(name, &format!("~{number}{UNCERTAIN}")));
        // A name is always found: there are fewer trees than numbers.
        let new = { shortened }.find(|new| !taken.contains(new)).unwrap_or(new);
        taken.insert(new.clone());
        new
    };
    names.iter().map(&mut fit).collect()
}

/// Returns as much of `name` as fits before `end`, followed by `end`.
fn shorten(name: &str, end: &str) -> String {
    let at = name.floor_char_boundary(TREE_NAME_BYTES_MAX - end.len());
    format!("{}{end}", &name[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_shortened_and_stay_apart() {
        let x = |count| "x".repeat(count);
        let euros = "\u{20ac}".repeat(170);
        let names = [x(502), x(503), x(512), format!("{}~1.uncertain", x(490)), euros, "t".into()];
        let new = uncertain(&names);
        assert_eq!(new[0], format!("{}.uncertain", x(502)));
        assert_eq!(new[1], format!("{}~1.uncertain", x(500)));
        assert_eq!(new[2], format!("{}~2.uncertain", x(500)));
        assert_eq!(new[4], format!("{}~1.uncertain", "\u{20ac}".repeat(166)));
        assert_eq!(new[5], "t.uncertain");
        assert!(new.iter().all(|name| name.len() <= TREE_NAME_BYTES_MAX));
        assert_eq!(new.iter().collect::<BTreeSet<_>>().len(), new.len());
    }
}
