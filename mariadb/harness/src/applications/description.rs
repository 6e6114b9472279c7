//! Describes a database as texts: definitions, numbers of rows, and checksums. The texts of both
//! databases must be equal.

use std::collections::BTreeMap;

use super::pair::Side;
use crate::error::Result;
use crate::options::Engine;

/// Queries on the information schema, each with what it describes. The queries select neither names
/// of schemas nor estimates, which may differ.
const QUERIES: [(&str, &str); 8] = [
    (
        "columns",
        "SELECT table_name, ordinal_position, column_name, column_default, is_nullable, column_type, \
         collation_name, extra FROM information_schema.columns WHERE table_schema = database()",
    ),
    (
        "indexes",
        "SELECT table_name, index_name, non_unique, seq_in_index, column_name, collation, sub_part, \
         nullable, index_type FROM information_schema.statistics WHERE table_schema = database()",
    ),
    (
        "constraints",
        "SELECT table_name, constraint_name, constraint_type \
         FROM information_schema.table_constraints WHERE constraint_schema = database()",
    ),
    (
        "foreign keys",
        "SELECT table_name, constraint_name, unique_constraint_name, match_option, update_rule, \
         delete_rule, referenced_table_name FROM information_schema.referential_constraints \
         WHERE constraint_schema = database()",
    ),
    (
        "columns of keys",
        "SELECT table_name, constraint_name, ordinal_position, column_name, \
         position_in_unique_constraint, referenced_table_name, referenced_column_name \
         FROM information_schema.key_column_usage WHERE constraint_schema = database()",
    ),
    (
        "triggers",
        "SELECT trigger_name, event_manipulation, event_object_table, action_statement, action_timing \
         FROM information_schema.triggers WHERE trigger_schema = database()",
    ),
    (
        "views",
        "SELECT table_name, check_option, is_updatable, algorithm FROM information_schema.views \
         WHERE table_schema = database()",
    ),
    (
        "routines",
        "SELECT routine_name, routine_type, routine_definition FROM information_schema.routines \
         WHERE routine_schema = database()",
    ),
];

/// Lines of text, by the described object.
#[derive(Default)]
pub(super) struct Description {
    texts: BTreeMap<String, Vec<String>>,
    /// The number of rows of all tables.
    pub(super) rows: u64,
}

impl Description {
    /// Describes a whole database.
    pub(super) fn of(side: &mut Side) -> Result<Self> {
        let mut all = Self::default();
        for (what, query) in QUERIES {
            let mut lines = side.lines(query)?;
            lines.sort();
            all.texts.insert(what.to_owned(), lines);
        }
        let tables = side.tables(None)?;
        for table in &tables {
            let definition = side.lines(&format!("SHOW CREATE TABLE `{table}`"))?.join("\n");
            let (ours, theirs) = (Engine::FronDb.name(), Engine::InnoDb.name());
            let definition =
                definition.replace(&format!("ENGINE={ours}"), &format!("ENGINE={theirs}"));
            let definition = definition.lines().map(str::to_owned).collect();
            all.texts.insert(format!("definition of {table}"), definition);
            let rows = side.client.number(&format!("SELECT count(*) FROM `{table}`"))?;
            all.rows += rows;
            all.texts.insert(format!("number of rows of {table}"), vec![rows.to_string()]);
            let checksum = side.lines(&format!("CHECKSUM TABLE `{table}`"))?;
            // The line begins with the table's name, qualified by the database.
            let checksum = checksum.iter().filter_map(|line| line.split('\t').nth(1));
            all.texts.insert(format!("checksum of {table}"), checksum.map(str::to_owned).collect());
        }
        all.texts.insert("tables".to_owned(), tables);
        Ok(all)
    }

    /// The differences: for each text that differs, the first line that differs.
    pub(super) fn differences(&self, names: [&str; 2], other: &Self) -> Vec<String> {
        let mut whats: Vec<&String> = self.texts.keys().chain(other.texts.keys()).collect();
        whats.sort();
        whats.dedup();
        let mut found = Vec::new();
        for what in whats {
            let of = |all: &Self| all.texts.get(what).cloned().unwrap_or_default();
            let (one, two) = (of(self), of(other));
            if one != two {
                let at = one.iter().zip(&two).position(|(one, two)| one != two);
                let at = at.unwrap_or(one.len().min(two.len()));
                let line = |all: &[String]| all.get(at).cloned().unwrap_or("nothing".to_owned());
                let [name, other_name] = names;
                found.push(format!(
                    "{what}: line {} of {} and {}\n  {name}: {}\n  {other_name}: {}",
                    at + 1,
                    one.len(),
                    two.len(),
                    line(&one),
                    line(&two)
                ));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_of_each_text_is_shown() {
        let of = |texts: &[(&str, &[&str])]| {
            let texts = texts.iter().map(|(what, lines)| {
                ((*what).to_owned(), lines.iter().map(|&line| line.to_owned()).collect())
            });
            Description { texts: texts.collect(), rows: 0 }
        };
        let ours = of(&[("rows", &["1", "2"]), ("same", &["x"])]);
        let theirs = of(&[("rows", &["1", "3"]), ("same", &["x"]), ("view", &["v"])]);
        assert_eq!(
            ours.differences(["FronDB", "InnoDB"], &theirs),
            [
                "rows: line 2 of 2 and 2\n  FronDB: 2\n  InnoDB: 3",
                "view: line 1 of 0 and 1\n  FronDB: nothing\n  InnoDB: v"
            ]
        );
        assert!(ours.differences(["FronDB", "InnoDB"], &ours).is_empty());
    }
}
