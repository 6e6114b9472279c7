//! Checks the first lines of commit messages, as CONTRIBUTING.md requires them: at most 72
//! characters, a capital letter first, no full stop at the end, no mark of unfinished work.
//!
//! Only commits after [`SINCE`] are checked, because earlier commits were made before this check
//! and break some of the rules. Without git or without that commit (an archive, a shallow clone)
//! nothing is checked.

use crate::Result;
use crate::step::Cmd;

/// The last commit that is not checked.
const SINCE: &str = "7294423e4d0ee953b078cc166b09e35454fe10e4";

/// Maximum number of characters in a subject: git's own tools cut or wrap longer ones.
const CHARS_MAX: usize = 72;

/// First words of commits that must still be squashed or reworded.
const UNFINISHED: [&str; 4] = ["fixup!", "squash!", "amend!", "wip"];

/// Returns the subjects of commits after [`SINCE`] that break a rule, with the rule.
pub(crate) fn check() -> Result<Vec<String>> {
    if !Cmd::new("git", &format!("merge-base --is-ancestor {SINCE} HEAD")).succeeds() {
        return Ok(Vec::new());
    }
    let log = Cmd::new("git", &format!("log --format=%s {SINCE}..HEAD")).output()?;
    Ok(log.lines().filter_map(fault).collect())
}

fn fault(subject: &str) -> Option<String> {
    let first = subject.split_whitespace().next().unwrap_or_default();
    let what = if subject.chars().count() > CHARS_MAX {
        format!("longer than {CHARS_MAX} characters")
    } else if UNFINISHED.contains(&&*first.to_lowercase()) {
        "not finished".to_owned()
    } else if !subject.starts_with(|c: char| c.is_uppercase()) {
        "without a capital letter at its beginning".to_owned()
    } else if subject.ends_with('.') {
        "closed by a full stop".to_owned()
    } else {
        return None;
    };
    Some(format!("commit `{subject}`: the subject is {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_that_break_a_rule_are_found() {
        assert_eq!(fault("Keep a torn superblock from hiding the older one"), None);
        assert_eq!(fault(&format!("K{}", "x".repeat(CHARS_MAX - 1))), None);
        for (subject, rule) in [
            (&*format!("K{}", "x".repeat(CHARS_MAX)), "longer than"),
            ("fix manifest bug", "capital letter"),
            ("Fix the manifest.", "full stop"),
            ("WIP", "not finished"),
            ("fixup! Fix the manifest", "not finished"),
            ("", "capital letter"),
        ] {
            assert!(fault(subject).is_some_and(|found| found.contains(rule)), "{subject}");
        }
    }
}
