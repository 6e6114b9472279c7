//! Plans which tables are converted, and which must be converted together. A pure function.
//!
//! A foreign key cannot connect tables of two engines. So all tables that foreign keys connect form
//! a family, which changes its engine as a whole or not at all.

use std::collections::BTreeMap;

use crate::catalog::{Catalog, ForeignKey, Name, Table};

/// An engine from or to which tables are converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    FronDb,
    InnoDb,
}

impl Engine {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::FronDb => "FronDB",
            Self::InnoDb => "InnoDB",
        }
    }

    pub(crate) fn other(self) -> Self {
        match self {
            Self::FronDb => Self::InnoDb,
            Self::InnoDb => Self::FronDb,
        }
    }
}

/// Tables connected by foreign keys, or a single table without any.
#[derive(Debug, Clone)]
pub(crate) struct Family {
    /// Small tables first, so that a failure of one of them comes early and costs little.
    pub(crate) tables: Vec<Table>,
    pub(crate) keys: Vec<ForeignKey>,
    /// The engine to which all tables are converted.
    pub(crate) goal: Engine,
}

impl Family {
    pub(crate) fn is_done(&self) -> bool {
        self.to_convert().next().is_none() && self.keys.iter().all(|key| !key.is_dropped)
    }

    /// Whether the tables can be locked. The server crashes when it alters a locked table with a
    /// default that uses a sequence.
    pub(crate) fn can_be_locked(&self) -> bool {
        self.tables.iter().all(|table| !table.uses_sequence)
    }

    /// The tables that do not have the goal's engine yet.
    pub(crate) fn to_convert(&self) -> impl Iterator<Item = &Table> {
        self.tables.iter().filter(|table| table.engine != self.goal.name())
    }
}

/// The families to convert, and the tables that are not converted.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) families: Vec<Family>,
    /// Tables that keep their engine, each with the reason.
    pub(crate) left: Vec<(Name, String)>,
}

/// Plans the conversion of all tables to `goal`.
pub(crate) fn plan(catalog: Catalog, goal: Engine) -> Plan {
    let mut families = Families::of(&catalog);
    for key in &catalog.keys {
        families.join(&key.child, &key.parent);
    }
    let mut members: BTreeMap<usize, (Vec<Table>, Vec<ForeignKey>)> = BTreeMap::new();
    for table in &catalog.tables {
        members.entry(families.find(&table.name)).or_default().0.push(table.clone());
    }
    for key in &catalog.keys {
        members.entry(families.find(&key.child)).or_default().1.push(key.clone());
    }
    let mut plan = Plan::default();
    for (mut tables, keys) in members.into_values() {
        tables.sort_by_key(|table| table.bytes);
        let mut family = Family { tables, keys, goal };
        if family.is_done() {
            continue;
        }
        if let Some((of, why)) = obstacle(&family, &catalog) {
            for table in family.to_convert() {
                let why = match table.name == of {
                    true => why.clone(),
                    false => format!("foreign keys connect it with {of}, which stays: {why}"),
                };
                plan.left.push((table.name.clone(), why));
            }
            // Reverts the work that an earlier run has begun on the family.
            family.goal = goal.other();
            if family.is_done() {
                continue;
            }
        }
        plan.families.push(family);
    }
    plan.left.sort();
    plan
}

/// A table that prevents the conversion of a family, and the reason.
fn obstacle(family: &Family, catalog: &Catalog) -> Option<(Name, String)> {
    let is_locked = family.can_be_locked();
    let stays = family.to_convert().find_map(|table| {
        // Without locks, rows that other sessions write between the copy and the exchange would be
        // lost.
        let unlocked = (table.is_versioned && !is_locked).then_some(
            "it is system-versioned, and a default of it or of a table that foreign keys connect with it uses a \
             sequence: such tables cannot be locked while the rows are copied",
        );
        Some((table.name.clone(), table.stays.or(unlocked)?.to_owned()))
    });
    stays.or_else(|| {
        let mut ends = family
            .keys
            .iter()
            .flat_map(|key| [(&key.child, &key.parent), (&key.parent, &key.child)]);
        let (outside, _) = ends.find(|(end, _)| !catalog.schemas.contains(&end.schema))?;
        let why = format!("database {} is not converted: name it, too", outside.schema);
        Some((outside.clone(), why))
    })
}

/// Sets of connected tables (union-find).
struct Families {
    numbers: BTreeMap<Name, usize>,
    parents: Vec<usize>,
}

impl Families {
    fn of(catalog: &Catalog) -> Self {
        let mut families = Self { numbers: BTreeMap::new(), parents: Vec::new() };
        for table in &catalog.tables {
            families.number(&table.name);
        }
        families
    }

    fn number(&mut self, name: &Name) -> usize {
        let next = self.parents.len();
        let number = *self.numbers.entry(name.clone()).or_insert(next);
        if number == next {
            self.parents.push(next);
        }
        number
    }

    fn find(&mut self, name: &Name) -> usize {
        let mut at = self.number(name);
        while self.parents[at] != at {
            at = self.parents[at];
        }
        at
    }

    fn join(&mut self, a: &Name, b: &Name) {
        let (a, b) = (self.find(a), self.find(b));
        self.parents[a.max(b)] = a.min(b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(table: &str) -> Name {
        Name::new(if table.starts_with('x') { "x" } else { "s" }, table)
    }

    fn table(of: &str, engine: &str, bytes: u64) -> Table {
        let (engine, is_versioned) = (engine.to_owned(), false);
        Table {
            name: name(of),
            engine,
            is_versioned,
            rows: 1,
            bytes,
            uses_sequence: false,
            stays: None,
        }
    }

    fn key(child: &str, parent: &str, is_dropped: bool) -> ForeignKey {
        let of = format!("{child}_{parent}");
        ForeignKey {
            child: name(child),
            name: of,
            parent: name(parent),
            clause: String::new(),
            is_dropped,
        }
    }

    fn planned(tables: Vec<Table>, keys: Vec<ForeignKey>) -> (Vec<String>, Vec<String>) {
        let schemas = ["s".to_owned()].into();
        let plan = plan(Catalog { schemas, tables, keys }, Engine::FronDb);
        let family = |family: &Family| {
            let names: Vec<_> = family.tables.iter().map(|table| &*table.name.table).collect();
            format!("{} -> {}", names.join(" "), family.goal.name())
        };
        let left = plan.left.iter().map(|(name, why)| format!("{name}: {why}"));
        (plan.families.iter().map(family).collect(), left.collect())
    }

    #[test]
    fn foreign_keys_make_families_also_in_circles() {
        let tables = ["a", "b", "c", "d", "e"].map(|of| table(of, "InnoDB", of.len() as u64));
        let keys = vec![
            key("a", "c", false),
            key("c", "a", false),
            key("c", "e", false),
            key("b", "b", false),
        ];
        let (families, left) = planned(tables.into(), keys);
        assert_eq!(families, ["a c e -> FronDB", "b -> FronDB", "d -> FronDB"]);
        assert!(left.is_empty());
    }

    #[test]
    fn a_family_of_which_one_stays_stays() {
        let mut tables: Vec<Table> = ["a", "b", "c"].map(|of| table(of, "InnoDB", 1)).into();
        tables[1].stays = Some("it has a FULLTEXT index");
        let (families, left) = planned(tables, vec![key("a", "b", false)]);
        assert_eq!(families, ["c -> FronDB"]);
        let with = "s.a: foreign keys connect it with s.b, which stays: it has a FULLTEXT index";
        assert_eq!(left, [with, "s.b: it has a FULLTEXT index"]);
    }

    #[test]
    fn rows_are_copied_only_where_tables_can_be_locked() {
        let mut tables: Vec<Table> = ["a", "b", "c"].map(|of| table(of, "InnoDB", 1)).into();
        (tables[0].is_versioned, tables[1].uses_sequence) = (true, true);
        assert_eq!(planned(tables.clone(), Vec::new()).0.len(), 3, "the two have no foreign key");
        let (families, left) = planned(tables, vec![key("b", "a", false)]);
        assert_eq!((families.as_slice(), left.len()), (&["c -> FronDB".to_owned()][..], 2));
    }

    #[test]
    fn a_table_of_another_database_keeps_its_family() {
        let (families, left) = planned(vec![table("a", "InnoDB", 1)], vec![key("x", "a", false)]);
        assert!(families.is_empty());
        let why = "database x is not converted: name it, too";
        assert_eq!(left, [format!("s.a: foreign keys connect it with x.x, which stays: {why}")]);
    }

    #[test]
    fn changes_of_an_interrupted_run_are_completed_or_undone() {
        let mixed = || vec![table("a", "FronDB", 1), table("b", "InnoDB", 2)];
        let dropped = || vec![key("a", "b", true)];
        assert_eq!(planned(mixed(), dropped()).0, ["a b -> FronDB"]);
        let mut tables = mixed();
        tables[1].stays = Some("it has a SPATIAL index");
        let (families, left) = planned(tables, dropped());
        assert_eq!((families.as_slice(), left.len()), (&["a b -> InnoDB".to_owned()][..], 1));
        let all = vec![table("a", "FronDB", 1), table("b", "FronDB", 2)];
        assert_eq!(planned(all.clone(), dropped()).0, ["a b -> FronDB"]);
        assert!(planned(all, vec![key("a", "b", false)]).0.is_empty());
    }
}
