//! Compares the cycles found with modules.toml, whose numbers may only shrink.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::graph::Graph;
use crate::Result;

/// For each crate of modules.toml, the sizes of its large cycles, the largest first.
pub(super) type Allowed = BTreeMap<String, Vec<usize>>;

/// Reads `crate = [size, ...]`.
pub(super) fn parse(table: &Table) -> Result<Allowed> {
    let size = |value: &Value| value.as_integer().and_then(|size| usize::try_from(size).ok());
    let sizes = |(name, row): (&String, &Value)| {
        let sizes = row.as_array().and_then(|row| row.iter().map(size).collect());
        Ok((name.clone(), sizes.ok_or(format!("modules.toml: {name} is not a list of sizes"))?))
    };
    table.iter().map(sizes).collect()
}

/// The crates whose large cycles differ from the table, each with what to do.
pub(super) fn check(allowed: &Allowed, graphs: &[(String, Graph)]) -> Vec<String> {
    let mut findings = Vec::new();
    for (name, graph) in graphs {
        let found = graph.large_cycles();
        let allowed = allowed.get(name).map_or(&[][..], Vec::as_slice);
        findings.extend(compare(name, &found, allowed));
    }
    let unknown = allowed.keys().filter(|name| graphs.iter().all(|(known, _)| known != *name));
    findings.extend(unknown.map(|name| format!("modules.toml: {name} is not a crate")));
    findings
}

fn compare(name: &str, found: &[usize], allowed: &[usize]) -> Option<String> {
    if found == allowed {
        return None;
    }
    let grown = found.first() > allowed.first()
        || found.iter().sum::<usize>() > allowed.iter().sum::<usize>();
    Some(if grown {
        format!(
            "{name}: cycles of {found:?}, and modules.toml allows {allowed:?}; \
             `cargo xtask modules {name}` shows the imports that tie them"
        )
    } else if found.is_empty() {
        format!("modules.toml: {name} has no large cycle any more: remove its line")
    } else {
        format!("modules.toml: {name} has shrunk: lower the numbers to {found:?}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read() {
        let table = "a = [9, 4]\nb = []".parse().unwrap();
        let expected = [("a".to_owned(), vec![9, 4]), ("b".to_owned(), Vec::new())];
        assert_eq!(parse(&table), Ok(expected.into()));
        assert!(parse(&"a = 9".parse().unwrap()).is_err_and(|e| e.contains("a is not a list")));
    }

    #[test]
    fn cycles_may_only_shrink_and_the_table_follows_them() {
        let compare = |found: &[usize], allowed: &[usize]| compare("k", found, allowed);
        assert_eq!(compare(&[9, 4], &[9, 4]), None);
        for (found, allowed) in [(&[4][..], &[][..]), (&[10], &[9, 4]), (&[9, 4], &[9])] {
            assert!(compare(found, allowed).unwrap().contains("cargo xtask modules k"));
        }
        // A cycle that is split in two has shrunk as well.
        assert!(compare(&[9, 9], &[41]).unwrap().ends_with("lower the numbers to [9, 9]"));
        assert!(compare(&[], &[4]).unwrap().ends_with("remove its line"));
    }

    #[test]
    fn small_cycles_need_no_entry_and_an_entry_needs_its_crate() {
        let mut graph = Graph::default();
        for (from, to) in [("a", "b"), ("b", "c"), ("c", "a")] {
            graph.add(from, to);
        }
        let graphs = [("k".to_owned(), graph)];
        assert!(check(&Allowed::new(), &graphs).is_empty());
        let gone = Allowed::from([("gone".to_owned(), vec![4])]);
        assert_eq!(check(&gone, &graphs), ["modules.toml: gone is not a crate"]);
    }
}
